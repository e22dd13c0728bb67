//! The main job: words and input become a question, question and conversation a prompt, the prompt a request; the reply
//! goes to standard output, and the exchange into the conversation's file.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use time::OffsetDateTime;

use crate::call::{Call, Ended};
use crate::discover;
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::http::Client;
use crate::interrupt;
use crate::key_command;
use crate::output::{Broken, Notes, Stdout};
use crate::prompt::{self, Said};
use crate::provider::Prompt;
use crate::provider::reply::{Finish, Reply};
use crate::question;
use crate::record::Record;
use crate::secret::Secret;
use crate::session::commit::{Committer, Intent};
use crate::session::folder::{self, Folder};
use crate::session::rules::{self, Found, Wanted};
use crate::session::timestamp::Timestamp;
use crate::settings::{Environment, Key, Provider, Settings};

/// Asks one question.
///
/// # Errors
/// Why there is no answer, or not all of it.
pub(crate) fn ask(
    arguments: &Arguments,
    environment: Environment,
    configuration: &Path,
    notes: &Notes,
) -> Result<(), Error> {
    let settings = Settings::load(arguments, environment, configuration)?;
    let target = Target::choose(&settings, environment, notes)?;
    let question = ask_for_question(arguments, notes)?;
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let session = Session::load(arguments, environment, &settings, &target, asked, notes);
    let client =
        Client::new(target.provider.address()?, settings.values.timeout, settings.values.retries, environment)?;
    let target = target.with_key()?;
    let model = target.model(session.model.as_deref(), &client)?;
    let mut history = Window::new(session.window, settings.values.max_history, notes);
    let system = system_prompt(arguments, &settings, environment, asked, notes);
    let record = session.committer.map(|committer| {
        Arc::new(Record::new(committer, &target.provider.name, &model, question.clone(), asked, *notes))
    });
    let call = target.call(&client)?;
    let mut shown = Shown { stdout: Stdout::open().map_err(broken)?, record: record.as_ref() };
    loop {
        let prompt = Prompt {
            model: &model,
            system: &system,
            turns: prompt::turns(&history.messages, &question, settings.values.history),
            max_tokens: settings.values.max_tokens,
            stream: !arguments.no_stream,
        };
        let mut request = target.provider.api.ask(&prompt, target.provider.habits, target.key.as_ref());
        request.headers.extend(target.provider.headers.iter().cloned());
        let mut reply = Reply::default();
        match call.ask(&request, &mut reply, &mut |piece| shown.show(piece)) {
            Err(Ended::Failed(failed)) if failed.too_long && reply.text().is_empty() && history.halve() => {}
            ended => {
                history.tell(notes);
                return finish(ended, &reply, shown, notes);
            }
        }
    }
}

/// The messages of the conversation that go with the question.
struct Window {
    messages: Vec<Said>,
    /// How many the provider found too many.
    left_out: usize,
}

impl Window {
    fn new(messages: Vec<Said>, most_bytes: usize, notes: &Notes) -> Window {
        let (messages, left_out) = prompt::fit(messages, most_bytes);
        if left_out > 0 {
            notes.note(&format!(
                "{} not sent: together they have more than {most_bytes} bytes (max_history)",
                counted(left_out)
            ));
        }
        Window { messages, left_out: 0 }
    }

    /// Leaves out the older half. Returns whether there was one.
    fn halve(&mut self) -> bool {
        let half = self.messages.len().div_ceil(2);
        self.messages.drain(..half);
        self.left_out += half;
        half > 0
    }

    fn tell(&self, notes: &Notes) {
        if self.left_out > 0 {
            notes.note(&format!("{} not sent: the conversation is too long for the model", counted(self.left_out)));
        }
    }
}

fn counted(messages: usize) -> String {
    if messages == 1 { "the oldest message was".to_owned() } else { format!("the {messages} oldest messages were") }
}

/// Whom to ask.
struct Target<'a> {
    provider: &'a Provider,
    key: Option<Secret>,
    /// The model that is named somewhere, by a person.
    named_model: Option<String>,
    /// The one to ask where none is named and no conversation has one.
    default_model: Option<String>,
}

impl<'a> Target<'a> {
    fn choose(settings: &'a Settings, environment: Environment, notes: &Notes) -> Result<Target<'a>, Error> {
        let named_model = settings.model.as_ref().map(|given| given.text.clone());
        if let Some(provider) = settings.chosen_provider(environment) {
            provider.address()?;
            let key = provider.key(environment)?;
            let own = provider.model.as_ref();
            let named_model = named_model.or_else(|| own.filter(|own| !own.is_default()).map(|own| own.text.clone()));
            return Ok(Target { provider, key, named_model, default_model: own.map(|own| own.text.clone()) });
        }
        let Some(running) = discover::running(&settings.providers, environment) else {
            return Err(nobody(settings));
        };
        let name = &running.provider.name;
        notes.note(&format!(
            "asking {name} at {}, the first local server that answers; Q_PROVIDER={name}, or provider = \"{name}\" in {}, \
             silences this note",
            running.provider.address()?,
            settings.file.display()
        ));
        Ok(Target { provider: running.provider, key: None, named_model, default_model: Some(running.model) })
    }

    /// Runs the command that tells the key, where there is one: only now, when a request is about to be sent.
    fn with_key(mut self) -> Result<Target<'a>, Error> {
        if let Key::Command(command) = &self.provider.key {
            self.key = Some(key_command::run(command)?);
        }
        Ok(self)
    }

    /// The model to ask: the one that is named, else the conversation's, else the provider's.
    fn model(&self, conversation: Option<&str>, client: &Client) -> Result<String, Error> {
        let known = self.named_model.as_deref().or(conversation).or(self.default_model.as_deref());
        if let Some(model) = known {
            return Ok(model.to_owned());
        }
        discover::first_model(self.provider, client)?.ok_or_else(|| {
            Error::new(Kind::Provider { status: None }, format!("{} has no model loaded", self.provider.name))
                .advise("load one, or name one with -m")
        })
    }

    fn call<'c>(&'c self, client: &'c Client) -> Result<Call<'c>, Error> {
        let address = self.provider.address()?;
        let headers = self.provider.headers.iter().map(|(_, value)| value.clone());
        let key_advice = match &self.provider.key {
            Key::None => None,
            Key::Variables(names) => Some(format!("check the key in {}", names.join(" or "))),
            Key::Command(command) => Some(format!("check the key that {} prints", command.join(" "))),
        };
        Ok(Call {
            client,
            provider: &self.provider.name,
            api: self.provider.api,
            address,
            secrets: self.key.iter().cloned().chain(headers).chain(address.password()).collect(),
            key_advice,
        })
    }
}

/// Nobody to ask: every way out in one message.
fn nobody(settings: &Settings) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match (&provider.key, provider.address()) {
            (Key::Variables(names), _) => variables.extend(names.iter().map(String::as_str)),
            (Key::None, Ok(address)) => servers.push(match provider.start {
                Some(start) => format!("{} at {address} ({start})", provider.name),
                None => format!("{} at {address}", provider.name),
            }),
            _ => {}
        }
    }
    Error::settings("no provider is configured: no key is set, and no local server answers").advise(format!(
        "set one of {}; or start one of {}",
        variables.join(", "),
        servers.join(", ")
    ))
}

fn ask_for_question(arguments: &Arguments, notes: &Notes) -> Result<String, Error> {
    let words = question::joined(&arguments.words, notes);
    let stdin = io::stdin();
    let input = match arguments.no_stdin || stdin.is_terminal() {
        true => None,
        false => Some(question::read(stdin.lock(), notes)?),
    };
    question::compose(&words, input.as_deref()).ok_or_else(|| {
        Error::usage("there is no question")
            .advise("q \"a question\", or COMMAND | q \"a question\"; q -h lists the options")
    })
}

/// What the conversation has to do with this question.
struct Session {
    window: Vec<Said>,
    /// The conversation's own model.
    model: Option<String>,
    /// `None`: nothing is saved.
    committer: Option<Committer>,
}

impl Session {
    fn load(
        arguments: &Arguments,
        environment: Environment,
        settings: &Settings,
        target: &Target,
        now: Timestamp,
        notes: &Notes,
    ) -> Session {
        let values = &settings.values;
        let Some(folder) = Folder::find(environment) else {
            notes.note("there is no home folder: conversations are neither read nor saved");
            return Session { window: Vec::new(), model: None, committer: None };
        };
        let path = folder.current();
        let (intent, window, model) = match arguments.follow {
            false => (Intent::New, Vec::new(), None),
            true => follow(&path, settings, target, now, notes),
        };
        let committer = values.save.then(|| Committer {
            folder,
            path,
            intent,
            pairs: values.pairs,
            keep: values.keep,
            expire: values.expire,
        });
        Session { window, model, committer }
    }
}

fn follow(
    path: &Path,
    settings: &Settings,
    target: &Target,
    now: Timestamp,
    notes: &Notes,
) -> (Intent, Vec<Said>, Option<String>) {
    let wanted = Wanted {
        provider: &target.provider.name,
        model: target.named_model.as_deref(),
        expire: settings.values.expire,
    };
    let found = folder::read(path).map_err(|error| format!("the conversation cannot be read: {error}"));
    let reason = match found {
        Err(reason) => reason,
        Ok(found) => match (rules::obstacle(&found, &wanted, now), found) {
            (None, Found::Conversation(conversation)) => {
                let intent = Intent::Follow { created: conversation.created };
                return (intent, conversation.window(settings.values.messages), Some(conversation.model));
            }
            (reason, Found::Nothing) => reason.map_or_else(String::new, |reason| reason.to_string()),
            (reason, _) => reason.map_or_else(String::new, |reason| format!("{reason}; it is set aside")),
        },
    };
    notes.note(&format!("{reason}: this is a new one"));
    (Intent::FollowAnew, Vec::new(), None)
}

fn system_prompt(
    arguments: &Arguments,
    settings: &Settings,
    environment: Environment,
    now: Timestamp,
    notes: &Notes,
) -> String {
    if let Some(system) = &arguments.system {
        return question::text(system.as_encoded_bytes().to_vec(), "the system prompt", notes);
    }
    settings
        .values
        .system
        .clone()
        .unwrap_or_else(|| prompt::system(std::env::consts::OS, environment("SHELL").as_deref(), now.date()))
}

/// The answer on its way to the user.
struct Shown<'a> {
    stdout: Stdout,
    record: Option<&'a Arc<Record>>,
}

impl Shown<'_> {
    fn show(&mut self, piece: &str) -> Result<(), Broken> {
        if piece.is_empty() {
            return Ok(());
        }
        let Some(record) = self.record else { return self.stdout.write(piece, |_| {}) };
        let begin = record.add(piece);
        if begin == 0 {
            // Until now a signal found nothing to save, and ended q by itself.
            interrupt::install(record);
        }
        self.stdout.write(piece, |bytes| record.shown(begin + bytes))
    }
}

/// Saves what has come, and says how it ended.
fn finish(ended: Result<(), Ended>, reply: &Reply, mut shown: Shown, notes: &Notes) -> Result<(), Error> {
    let began = !reply.text().is_empty();
    let save = |whole: bool| {
        if let Some(record) = shown.record.filter(|_| began) {
            if whole {
                record.save_whole()
            } else {
                record.save_shown()
            };
        }
    };
    match ended {
        Ok(()) => {
            let line = shown.stdout.end_line();
            save(true);
            if reply.finished() == Some(&Finish::Length) {
                notes.note("the answer was cut at the limit of tokens; max_tokens (Q_MAX_TOKENS) raises it");
            }
            match line {
                Ok(()) | Err(Broken::Gone) => Ok(()),
                Err(error) => Err(broken(error)),
            }
        }
        Err(Ended::Output(error)) => {
            save(reply.ended() && reply.failure().is_none());
            match error {
                Broken::Gone => Ok(()),
                Broken::Failed(_) => Err(broken(error)),
            }
        }
        Err(Ended::Failed(failed)) => {
            // What went wrong is not hidden by a line that cannot be ended.
            let _ = shown.stdout.end_line();
            save(false);
            Err(failed.error)
        }
    }
}

fn broken(error: Broken) -> Error {
    match error {
        Broken::Gone => Error::new(Kind::Output, "nobody reads standard output any more"),
        Broken::Failed(error) => Error::new(Kind::Output, format!("cannot write to standard output: {error}")),
    }
}
