//! The main job: words and input become a question, question and conversation a prompt, the prompt a request; the reply
//! goes to standard output, and the exchange into the conversation's file.

mod delivery;
mod prompt;
mod question;
mod record;
mod session;
mod window;

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use crate::context::Context;
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::interrupt::{self, Interrupts};
use crate::manual;
use crate::message::Role;
use crate::output::{Notes, print};
use crate::provider::reply::Reply;
use crate::provider::request::{Prompt, Request};
use crate::server::call::Ended;
use crate::server::client::Client;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::commit::Committer;
use crate::session::timestamp::Timestamp;
use crate::settings::{Environment, Settings};
use delivery::{Delivery, Facts, Form};
use record::Record;
use session::{Place, Session};
use window::Window;

/// Asks one question, in the conversation that is meant.
///
/// # Errors
/// Why there is no answer, or not all of it.
pub(crate) fn ask(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let Context { environment, notes, .. } = *context;
    interrupt::survive_size_limit();
    let words = question::joined(&arguments.words, notes);
    let input = (!arguments.no_stdin && !io::stdin().is_terminal()).then(io::stdin);
    if input.is_none() && words.trim().is_empty() {
        return Err(no_question());
    }
    let settings = Settings::load(arguments, environment, &context.configuration)?;
    if arguments.system.as_ref().is_some_and(|system| system.to_str().is_none()) {
        question::note_replaced("the system prompt", notes);
    }
    let values = &settings.values;
    let client_of =
        |target: &Target| Client::new(target.provider.address()?, values.timeout, values.retries, environment);
    // What is wrong with these is told before input is waited for. A conversation by name has a provider of its own,
    // which is known only once its file has been read.
    let known = match context.which.is_current() || arguments.provider.is_some() {
        true => Some(discover::choose(&settings, environment, !arguments.dry_run, notes)?),
        false => None,
    };
    let known_client = known.as_ref().map(client_of).transpose()?;
    let interrupts = Interrupts::new(notes.sign());
    let input = input.map(|input| question::read(input.lock(), notes)).transpose()?;
    let question = question::compose(&words, input.as_deref()).ok_or_else(no_question)?;
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let place = Place::find(context)?;
    let (mut target, session) = match known {
        Some(target) if context.which.is_current() => {
            let session = Session::current(arguments.follow, place.as_ref(), &target, values, asked, notes);
            (target, session)
        }
        known => session::named(arguments, place.as_ref(), known, &settings, context)?,
    };
    let client = known_client.map_or_else(|| client_of(&target), Ok)?;
    let model = if arguments.dry_run {
        target.known_model(session.model.as_deref()).ok_or_else(unknown_without_request)?
    } else {
        target.fetch_key(notes)?;
        target.model(session.model.as_deref(), &client, notes)?
    };
    let mut asking = Asking {
        target: &target,
        model: &model,
        system: system_prompt(&settings, environment, asked),
        window: Window::new(session.window, values, notes),
        question: &question,
        settings: &settings,
        stream: !arguments.no_stream,
    };
    if arguments.dry_run {
        asking.tell(notes);
        return print(&String::from_utf8_lossy(&asking.request()?.body.unwrap_or_default()));
    }
    let committer = place.filter(|_| values.save).map(|place| Committer {
        folder: place.folder,
        path: place.path,
        intent: session.intent,
        pairs: values.pairs,
        keep: values.keep,
        expire: values.expire,
        seen: Mutex::new(session.seen),
    });
    let record = committer
        .map(|committer| Record::new(committer, &target.provider.name, &model, question.clone(), asked, notes.clone()));
    let form = match (arguments.json, arguments.extract) {
        (true, code) => Form::Json { code },
        (false, true) => Form::Code,
        (false, false) if arguments.no_stream => Form::Whole,
        (false, false) => Form::Text,
    };
    let delivery = Delivery::new(form, record, context.which.option(), interrupts, notes)?;
    asking.run(&client, delivery, notes)
}

/// One question to one provider, with as much of the conversation as it takes.
struct Asking<'a> {
    target: &'a Target<'a>,
    model: &'a str,
    system: String,
    window: Window,
    question: &'a str,
    settings: &'a Settings,
    stream: bool,
}

impl Asking<'_> {
    fn request(&self) -> Result<Request, Error> {
        let values = &self.settings.values;
        let prompt = Prompt {
            model: self.model,
            system: &self.system,
            turns: prompt::turns(&self.window.messages, self.question, values.history),
            max_tokens: values.max_tokens,
            stream: self.stream,
        };
        let provider = self.target.provider;
        self.target.complete(provider.api.ask(&prompt, provider.habits, self.target.key.as_ref()))
    }

    fn run(&mut self, client: &Client, mut delivery: Delivery, notes: &Notes) -> Result<(), Error> {
        let call = self.target.call(client, notes)?;
        loop {
            self.tell(notes);
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let ended = call.ask(&self.request()?, &mut reply, &mut |piece, whole| {
                if !piece.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed());
                }
                delivery.take(piece, whole)
            });
            match ended {
                Err(Ended::Failed(failed)) if failed.too_long && first_word.is_none() && self.window.halve() => {}
                ended => {
                    let whole = began.elapsed();
                    let facts = Facts {
                        provider: &self.target.provider.name,
                        model: self.model,
                        messages_sent: self.window.messages.len(),
                    };
                    // What is said comes behind the answer's last line.
                    let done = delivery.finish(ended, &reply, &facts);
                    self.window.tell(notes);
                    tell_reply(&reply, first_word, whole, notes);
                    return done;
                }
            }
        }
    }

    /// Says whom q asks, and what it sends.
    fn tell(&self, notes: &Notes) {
        let provider = self.target.provider;
        notes.detail(|| {
            let address = provider.address().map_or_else(|error| error.to_string(), ToString::to_string);
            format!("provider {}, model {}, at {address}", provider.name, self.model)
        });
        let window = self.window.messages.iter().map(|said| (said.role, said.text.len()));
        for (index, (role, length)) in window.chain([(Role::User, self.question.len())]).enumerate() {
            notes.detail(|| format!("message {}: {role}, {length} bytes", index + 1));
        }
    }
}

/// Says how long the answer took and what it used.
fn tell_reply(reply: &Reply, first_word: Option<Duration>, whole: Duration, notes: &Notes) {
    if let Some(first_word) = first_word {
        let (first_word, whole) = (first_word.as_secs_f64(), whole.as_secs_f64());
        notes.detail(|| format!("first word after {first_word:.3} s, all after {whole:.3} s"));
    }
    if let Some(usage) = reply.usage() {
        let counted = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
        notes.detail(|| {
            format!("usage: {} tokens in, {} tokens out", counted(usage.input_tokens), counted(usage.output_tokens))
        });
    }
}

fn no_question() -> Error {
    Error::usage("there is no question").advise(format!("usage:\n{}q -h lists the options", manual::SYNOPSIS))
}

fn unknown_without_request() -> Error {
    Error::new(Kind::Settings, "the model would be the first that the server lists, which only a request tells")
        .advise("name one with -m")
}

/// The system prompt of the option or the settings, else the built-in one.
fn system_prompt(settings: &Settings, environment: Environment, now: Timestamp) -> String {
    let built_in = || prompt::system(std::env::consts::OS, environment("SHELL").as_deref(), now.date());
    settings.values.system.clone().unwrap_or_else(built_in)
}
