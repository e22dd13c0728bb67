//! Leaves out of further requests what the provider does not accept, and asks another model where it does not serve this one.

use super::dialogue::Dialogue;
use super::run::Run;
use crate::provider::failure::{self, ErrorClass};
use crate::provider::request::OptionalField;
use crate::server::api_error::ApiError;
use crate::server::model_choice;

/// Advice for a prompt that cannot be made shorter.
const TOO_LONG: &str =
    "a question with less input, or a model with a larger context (-m), may work";

/// A request that failed, so that another one may do better.
pub struct FailedRequest<'a> {
    pub run: &'a Run<'a>,
    pub failed: &'a mut ApiError,
}

impl FailedRequest<'_> {
    /// Changes what the provider did not accept, for another request. Returns whether anything can be changed; if not, the
    /// failure may have got advice.
    pub fn adapt(self, dialogue: &mut Dialogue) -> bool {
        let failed = &mut *self.failed;
        match failed.meaning {
            ErrorClass::TooLong => {
                let is_shorter = dialogue.window.halve();
                if !is_shorter {
                    failed.error = failed.error.clone().advise_also(TOO_LONG);
                }
                is_shorter
            }
            ErrorClass::UnknownModel => self.replace_retired_model(dialogue),
            ErrorClass::CannotChat => self.ask_next_model(dialogue),
            ErrorClass::Rejects(field) => self.retry_without(field, dialogue),
            ErrorClass::RejectsTool(place) => {
                let toolbox = dialogue.toolbox.as_ref();
                failed.error.advice = toolbox.and_then(|toolbox| toolbox.leave_out_advice(place));
                false
            }
            _ => false,
        }
    }

    /// Leaves out of further requests what the server has refused in this one, unless only the user can leave it out.
    fn retry_without(self, field: OptionalField, dialogue: &mut Dialogue) -> bool {
        let FailedRequest { run, failed } = self;
        let notes = run.notes;
        let provider = &run.target.provider().name;
        let error = &mut failed.error;
        match field {
            OptionalField::Effort => {
                let effort = run.effort().unwrap_or_default();
                let mut levels = failure::levels_in(&error.message, effort);
                if !levels.is_empty() {
                    levels = format!(" (levels that {provider} names: {levels})");
                }
                if run.settings.effort_is_explicit {
                    error.advice = Some(format!("choose another level, or leave out -e{levels}"));
                    return false;
                }
                notes.note(&format!(
                    "{provider} does not accept the effort {effort}; retrying without it{levels}"
                ));
            }
            OptionalField::Store => notes.note(&format!(
                "{provider} does not accept store = false, so it may keep this request"
            )),
            OptionalField::Attachments if !run.record.leave_out_images() => return false,
            OptionalField::Attachments => {
                let model = &dialogue.model;
                dialogue.reads_no_images = failure::says_no_images(&error.message);
                notes.note(&if dialogue.reads_no_images {
                    format!("{model} does not read images; those of tools are left out")
                } else {
                    format!("{provider} refuses this request; retrying without the images of tools")
                });
            }
            // The limit has two names: the usual one was rejected before, and now the other one.
            OptionalField::Limit if dialogue.rejects(field) => return false,
            OptionalField::Form => dialogue.form = dialogue.form.after_refusal(),
            // These only tune the request, or are said in another way.
            OptionalField::Cache
            | OptionalField::Usage
            | OptionalField::Encrypted
            | OptionalField::Choice
            | OptionalField::Limit
            | OptionalField::System => {}
        }
        notes.detail(|| format!("{error}; retrying without what it rejects"));
        dialogue.rejected_fields.push(field);
        true
    }

    /// Asks the next model of the server's list, once, where nobody named the one that cannot chat.
    fn ask_next_model(self, dialogue: &mut Dialogue) -> bool {
        let run = self.run;
        if std::mem::replace(&mut dialogue.has_next_model, true) {
            return false;
        }
        let model = &dialogue.model;
        let Some(next) = model_choice::next_after(run.target, model, run.notes) else {
            return false;
        };
        run.notes
            .detail(|| format!("{model} cannot chat; asking {next}"));
        dialogue.model = next;
        true
    }

    /// Replaces a model that the server does not know with the newest one of its family, if that is another one.
    fn replace_retired_model(self, dialogue: &mut Dialogue) -> bool {
        let FailedRequest { run, failed } = self;
        let model = &dialogue.model;
        let error = failed.error.clone();
        let replacement = model_choice::replace_retired(run.target, model, error, run.notes);
        let newest = match replacement {
            Ok(newest) => newest,
            Err(error) => {
                failed.error = error;
                return false;
            }
        };
        let provider = &run.target.provider().name;
        let file = run.settings.file.display();
        run.notes.note(&format!(
            "{provider} no longer serves {model}; asking {newest}: model = \"{newest}\" in {file}, or Q_MODEL={newest}, \
             silences this note"
        ));
        dialogue.model = newest;
        true
    }
}
