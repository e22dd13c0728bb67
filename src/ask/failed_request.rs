//! Leaves out of further requests what the provider does not accept, and asks another model where it does not serve this one.

use super::dialogue::Dialogue;
use super::run::Run;
use crate::provider::failure::{self, ErrorClass};
use crate::provider::request::OptionalField;
use crate::server::api_error::ApiError;
use crate::server::model_choice;

impl Run<'_> {
    /// Changes what the provider did not accept in a request that `failed`, for another one. Returns whether anything can be
    /// changed; if not, the failure may have got advice.
    pub fn adapt(&self, failed: &mut ApiError, dialogue: &mut Dialogue) -> bool {
        match failed.meaning {
            ErrorClass::TooLong | ErrorClass::TooLongWithLimit(_) => dialogue.window.halve(),
            // The user can lower the limit, unless q has lowered its own. What has begun to be left out goes on.
            ErrorClass::LimitFillsContext(_) => {
                let is_begun = dialogue.window.is_halved || dialogue.lowered_limit.is_some();
                is_begun && dialogue.window.halve()
            }
            ErrorClass::UnknownModel => self.replace_retired_model(failed, dialogue),
            ErrorClass::CannotChat => self.ask_next_model(dialogue),
            ErrorClass::Rejects(field) => self.retry_without(field, failed, dialogue),
            ErrorClass::MayRejectAttachments => {
                self.retry_without(OptionalField::Attachments, failed, dialogue)
            }
            // A limit that has been lowered is no longer q's own, so this happens once.
            ErrorClass::OwnLimitTooLarge(most) => {
                let error = &failed.error;
                let notes = self.notes;
                notes.detail(|| format!("{error}; retrying with at most {most} tokens"));
                dialogue.lowered_limit = Some(most);
                true
            }
            ErrorClass::RejectsTool(place) => {
                let toolbox = dialogue.toolbox.as_ref();
                failed.error.advice = toolbox.and_then(|toolbox| toolbox.leave_out_advice(place));
                false
            }
            ErrorClass::TooManyTools => {
                let toolbox = dialogue.toolbox.as_ref();
                let advice = toolbox.and_then(|toolbox| toolbox.fewer_tools_advice());
                failed.error.advice = advice.or(failed.error.advice.take());
                false
            }
            _ => false,
        }
    }

    /// Leaves out of further requests what the server has refused in this one, unless only the user can leave it out.
    fn retry_without(
        &self,
        field: OptionalField,
        failed: &mut ApiError,
        dialogue: &mut Dialogue,
    ) -> bool {
        let notes = self.notes;
        let can_do_without = match field {
            OptionalField::Effort => self.can_leave_out_effort(failed),
            OptionalField::Attachments => self.leave_out_images(failed, dialogue),
            // The limit has two names: the usual one was rejected before, and now the other one.
            OptionalField::Limit => !dialogue.rejects(field),
            OptionalField::Store => {
                let provider = &self.target.provider().name;
                notes.note(&format!(
                    "{provider} does not accept store = false, so it may keep this request"
                ));
                true
            }
            OptionalField::Form => {
                dialogue.form = dialogue.form.after_refusal();
                true
            }
            // These only tune the request, or are said in another way.
            OptionalField::Cache
            | OptionalField::Usage
            | OptionalField::Encrypted
            | OptionalField::ToolChoice
            | OptionalField::System
            | OptionalField::JsonSchemas
            | OptionalField::SealedReasoning
            | OptionalField::ReasonedTurns
            | OptionalField::UnreasonedTurns => self.is_changed_without(field, dialogue),
        };
        if can_do_without {
            let error = &failed.error;
            notes.detail(|| format!("{error}; retrying without what it rejects"));
            dialogue.rejected_fields.push(field);
        }
        can_do_without
    }

    /// Whether the request differs without this field. The server may mean something that q has not sent.
    fn is_changed_without(&self, field: OptionalField, dialogue: &mut Dialogue) -> bool {
        let body = |sent: &Dialogue| self.request(sent).ok().map(|request| request.body);
        let before = body(dialogue);
        dialogue.rejected_fields.push(field);
        let after = body(dialogue);
        dialogue.rejected_fields.pop();
        before != after
    }

    /// Whether q may ask without the effort, with a note; not if the user has given it, who gets advice then.
    fn can_leave_out_effort(&self, failed: &mut ApiError) -> bool {
        let error = &mut failed.error;
        let provider = &self.target.provider().name;
        let effort = self.effort().unwrap_or_default();
        let mut levels = failure::levels_in(&error.message, effort);
        if !levels.is_empty() {
            levels = format!(" (levels that {provider} names: {levels})");
        }
        if self.settings.effort_is_explicit {
            error.advice = Some(format!("choose another level, or leave out -e{levels}"));
            return false;
        }
        self.notes.note(&format!(
            "{provider} does not accept the effort {effort}; retrying without it{levels}"
        ));
        true
    }

    /// Leaves out the images of tools, with a note. Returns whether there were any.
    fn leave_out_images(&self, failed: &ApiError, dialogue: &mut Dialogue) -> bool {
        if !self.record.leave_out_images() {
            return false;
        }
        dialogue.reads_no_images = failure::says_no_images(&failed.error.message);
        self.notes.note(&if dialogue.reads_no_images {
            let model = &dialogue.model;
            format!("{model} does not read images; those of tools are left out")
        } else {
            let provider = &self.target.provider().name;
            format!("{provider} refuses this request; retrying without the images of tools")
        });
        true
    }

    /// Asks the next model of the server's list, once, where nobody named the one that cannot chat.
    fn ask_next_model(&self, dialogue: &mut Dialogue) -> bool {
        if std::mem::replace(&mut dialogue.has_taken_next_model, true) {
            return false;
        }
        let model = &dialogue.model;
        let Some(next) = model_choice::next_after(self.target, model, self.notes) else {
            return false;
        };
        self.notes
            .detail(|| format!("{model} cannot chat; asking {next}"));
        dialogue.model = next;
        true
    }

    /// Replaces a model that the server does not know with the newest one of its family, once, if that is another one.
    fn replace_retired_model(&self, failed: &mut ApiError, dialogue: &mut Dialogue) -> bool {
        // A list may name a newer model each time, and none that is served.
        if std::mem::replace(&mut dialogue.has_replaced_retired_model, true) {
            return false;
        }
        let model = &dialogue.model;
        let unknown = failed.error.clone();
        let replacement = model_choice::replace_retired(self.target, model, unknown, self.notes);
        let newest = match replacement {
            Ok(newest) => newest,
            Err(error) => {
                failed.error = error;
                return false;
            }
        };
        let provider = &self.target.provider().name;
        let setting = match &self.settings.file {
            Some(file) => format!(
                "model = \"{newest}\" in {}, or Q_MODEL={newest},",
                file.display()
            ),
            None => format!("Q_MODEL={newest}"),
        };
        self.notes.note(&format!(
            "{provider} no longer serves {model}; asking {newest}: {setting} silences this note"
        ));
        dialogue.model = newest;
        true
    }
}
