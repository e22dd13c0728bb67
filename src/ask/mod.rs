//! The main job: words and input become a question, question and conversation a prompt, the prompt a request; the reply
//! goes to standard output, and the exchange into the conversation's file.

mod answer;
mod delivery;
mod prompt;
mod question;
mod record;
mod session;
mod window;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::manual;
use crate::message::Role;
use crate::output::{Notes, print};
use crate::provider::reply::Reply;
use crate::provider::request::{Prompt, Request};
use crate::server::call::CallEnd;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;
use delivery::{Delivery, Facts, Form};
use record::Record;
use window::Window;

/// Asks one question, in the conversation that is meant.
///
/// # Errors
/// Why there is no answer, or not all of it.
pub(crate) fn ask(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let notes = &context.notes;
    let words = question::joined(&arguments.words, notes);
    let says_nothing = words.trim().is_empty();
    // The last question as it was has its input.
    let has_all = arguments.again && says_nothing;
    let reads = !arguments.no_stdin && !io::stdin().is_terminal() && !has_all;
    if !reads && says_nothing && !arguments.again {
        return Err(no_question());
    }
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    if arguments.system.as_ref().is_some_and(|system| system.to_str().is_none()) {
        question::note_replaced("the system prompt", notes);
    }
    // What is wrong with these is reported before input is waited for. A conversation that has a provider of its own tells
    // which only once its file has been read.
    let keeps_own = arguments.again || !context.which.is_current();
    let known =
        (!keeps_own || arguments.provider.is_some()).then(|| discover::find(&settings, None, notes)).transpose()?;
    let interrupts = Interrupts::new(notes.sign());
    let input = if reads { Some(question::read(io::stdin().lock(), notes)?) } else { None };
    if let Some(input) = input.as_ref().filter(|_| !says_nothing) {
        question::note_empty(input, notes);
    }
    let question = match arguments.again {
        true => None,
        false => Some(question::compose(&words, input.as_deref()).ok_or_else(no_question)?),
    };
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let (mut target, session) = session::open(arguments, known, &settings, context, asked)?;
    let again = || question::again(&session.last_question().unwrap_or_default(), &words, input.as_deref());
    let question = question.unwrap_or_else(again);
    let model = if arguments.dry_run {
        target.model_without_key(notes)?
    } else {
        target.fetch_key(notes)?;
        target.model(notes)?
    };
    let given = arguments.system.as_ref().map(|system| system.to_string_lossy().into_owned());
    let system = given.clone().or_else(|| session.system.clone());
    let system = system.unwrap_or_else(|| system_prompt(&settings, asked));
    let committer = session.committer(&target, &model, given, asked, &settings.values);
    let window = Window::new(session.window, &settings.values);
    window.report_limit(&settings.values, notes);
    window.report_hand_over(session.handed_to.as_deref(), notes);
    let stream = !arguments.no_stream;
    let refuses_storage = target.stores_by_default();
    let settings = &settings;
    let mut asking = Asking { target: &target, model, system, window, question, settings, refuses_storage, stream };
    if arguments.dry_run {
        asking.report(notes);
        return print(&String::from_utf8_lossy(&asking.request()?.body.unwrap_or_default()));
    }
    let record = Record::new(asking.question.clone(), committer, notes.clone());
    let delivery = Delivery::new(Form::of(arguments), record, &context.which, interrupts, notes)?;
    asking.run(delivery, notes)
}

/// One question to one provider, with as much of the conversation as it takes.
struct Asking<'a> {
    target: &'a Target<'a>,
    model: String,
    system: String,
    window: Window,
    question: String,
    settings: &'a Settings,
    /// The provider is asked not to store the request.
    refuses_storage: bool,
    stream: bool,
}

impl Asking<'_> {
    fn request(&self) -> Result<Request, Error> {
        let values = &self.settings.values;
        let prompt = Prompt {
            model: &self.model,
            system: &self.system,
            messages: prompt::messages(self.window.messages(), &self.question, values.history),
            max_tokens: values.max_tokens,
            effort: values.effort.as_deref().or(self.target.provider().effort),
            refuses_storage: self.refuses_storage,
            stream: self.stream,
        };
        self.target.request(&prompt, &self.settings.options)
    }

    fn run(&mut self, mut delivery: Delivery, notes: &Notes) -> Result<(), Error> {
        let call = self.target.call(notes)?;
        let mut healed = false;
        loop {
            self.report(notes);
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let ended = call.stream(&self.request()?, &mut reply, &mut |piece, complete| {
                if !piece.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed());
                }
                delivery.take(piece, complete)
            });
            let ended = match ended {
                Err(CallEnd::Failed(mut failed)) if first_word.is_none() => {
                    if failed.too_long && self.window.halve() {
                        continue;
                    }
                    if failed.refuses_store && std::mem::take(&mut self.refuses_storage) {
                        continue;
                    }
                    if failed.unknown_model && !healed {
                        healed = true;
                        match self.heal(failed.error, notes) {
                            Ok(()) => {
                                delivery.asks(&self.model);
                                continue;
                            }
                            Err(error) => failed.error = error,
                        }
                    }
                    Err(CallEnd::Failed(failed))
                }
                ended => ended,
            };
            let whole = began.elapsed();
            let facts = Facts {
                provider: &self.target.provider().name,
                model: &self.model,
                messages_sent: self.window.messages().len(),
            };
            // Notes come after the answer's last line.
            let done = delivery.finish(ended, &reply, &facts);
            self.window.report_too_long(notes);
            report_reply(&reply, first_word, whole, notes);
            return done;
        }
    }

    /// Puts the newest model of its family in the place of one that the server does not know.
    fn heal(&mut self, error: Error, notes: &Notes) -> Result<(), Error> {
        let newest = self.target.heal(&self.model, error, notes)?;
        let provider = &self.target.provider().name;
        notes.note(&format!(
            "{provider} no longer serves {}; asking {newest}: model = \"{newest}\" in {}, or Q_MODEL={newest}, \
             silences this note",
            self.model,
            self.settings.file.display()
        ));
        self.model = newest;
        Ok(())
    }

    /// Says which server q asks, and what it sends.
    fn report(&self, notes: &Notes) {
        let provider = self.target.provider();
        notes.detail(|| {
            let address = provider.address().map_or_else(|error| error.to_string(), ToString::to_string);
            format!("provider {}, model {}, at {address}", provider.name, self.model)
        });
        let window = self.window.messages().iter().map(|message| (message.role, message.to_text().len()));
        for (index, (role, length)) in window.chain([(Role::User, self.question.len())]).enumerate() {
            notes.detail(|| format!("message {}: {role}, {length} bytes", index + 1));
        }
    }
}

/// Says how long the answer took and what it used.
fn report_reply(reply: &Reply, first_word: Option<Duration>, whole: Duration, notes: &Notes) {
    if let Some(first_word) = first_word {
        let (first_word, whole) = (first_word.as_secs_f64(), whole.as_secs_f64());
        notes.detail(|| format!("first word after {first_word:.3} s, all after {whole:.3} s"));
    }
    if let Some(finish) = reply.finished() {
        notes.detail(|| format!("the answer ended with {}", finish.word()));
    }
    if let Some(usage) = reply.usage() {
        let counted = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
        let part = |tokens: Option<u64>, what| tokens.map_or_else(String::new, |tokens| format!(" ({tokens} {what})"));
        notes.detail(|| {
            format!(
                "usage: {} tokens in{}, {} tokens out{}",
                counted(usage.input_tokens),
                part(usage.cached, "from a cache"),
                counted(usage.output_tokens),
                part(usage.reasoning, "of reasoning")
            )
        });
    }
}

fn no_question() -> Error {
    Error::usage("there is no question").advise(format!("usage:\n{}q -h lists the options", manual::SYNOPSIS))
}

/// The system prompt of the settings, else the built-in one.
fn system_prompt(settings: &Settings, now: Timestamp) -> String {
    let built_in = || prompt::system(std::env::consts::OS, settings.environment.get("SHELL"), now.date());
    settings.values.system.clone().unwrap_or_else(built_in)
}
