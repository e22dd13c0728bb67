//! The main job: words and input become a question, question and conversation a prompt, the prompt a request; the reply
//! goes to standard output, and the exchange into the conversation's file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use time::OffsetDateTime;

use crate::call::Ended;
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::http::Client;
use crate::interrupt;
use crate::output::{Broken, Notes, Stdout};
use crate::prompt::{self, Said};
use crate::provider::Prompt;
use crate::provider::reply::{Finish, Reply};
use crate::question;
use crate::record::Record;
use crate::session::Conversation;
use crate::session::commit::{Committer, Intent};
use crate::session::folder::{self, Folder};
use crate::session::name::Which;
use crate::session::rules::{self, Found, Wanted};
use crate::session::timestamp::Timestamp;
use crate::settings::{Environment, Settings, Values};
use crate::target::Target;

/// Asks one question, in the conversation that is meant.
///
/// # Errors
/// Why there is no answer, or not all of it.
pub(crate) fn ask(
    arguments: &Arguments,
    which: &Which,
    environment: Environment,
    configuration: &Path,
    notes: &Notes,
) -> Result<(), Error> {
    let settings = Settings::load(arguments, environment, configuration)?;
    // What is wrong with these is told before input is waited for. A conversation by name has a provider of its own,
    // which is known only once its file has been read.
    let known = match which.is_current() || arguments.provider.is_some() {
        true => Some(Target::choose(&settings, environment, notes)?),
        false => None,
    };
    let question = ask_for_question(arguments, notes)?;
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let place = Place::find(which, environment, notes)?;
    let (mut target, session) = match which.is_current() {
        true => {
            let target = match known {
                Some(target) => target,
                None => Target::choose(&settings, environment, notes)?,
            };
            let session = Session::current(arguments.follow, place.as_ref(), &target, &settings.values, asked, notes);
            (target, session)
        }
        false => named(arguments, place.as_ref(), known, &settings, environment, notes)?,
    };
    let committer = place.filter(|_| settings.values.save).map(|place| Committer {
        folder: place.folder,
        path: place.path,
        intent: session.intent,
        pairs: settings.values.pairs,
        keep: settings.values.keep,
        expire: settings.values.expire,
    });
    let client =
        Client::new(target.provider.address()?, settings.values.timeout, settings.values.retries, environment)?;
    target.fetch_key()?;
    let model = target.model(session.model.as_deref(), &client)?;
    let mut history = Window::new(session.window, settings.values.max_history, notes);
    let system = system_prompt(arguments, &settings, environment, asked, notes);
    let record = committer.map(|committer| {
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

/// Where the conversation is.
struct Place {
    folder: Folder,
    path: PathBuf,
}

impl Place {
    /// `None`, with a note: there is no home, so nothing is read or saved.
    fn find(which: &Which, environment: Environment, notes: &Notes) -> Result<Option<Place>, Error> {
        let Some(folder) = Folder::find(environment) else {
            if !which.is_current() {
                return Err(Error::new(Kind::Session, "there is no home folder, so there are no conversations")
                    .advise("set HOME or XDG_STATE_HOME"));
            }
            notes.note("there is no home folder: conversations are neither read nor saved");
            return Ok(None);
        };
        Ok(Some(Place { path: folder.path(which), folder }))
    }
}

/// What the conversation has to do with this question.
struct Session {
    intent: Intent,
    window: Vec<Said>,
    /// The conversation's own model.
    model: Option<String>,
}

impl Session {
    fn without_history(intent: Intent) -> Session {
        Session { intent, window: Vec::new(), model: None }
    }

    fn going_on(intent: Intent, conversation: Conversation, values: &Values) -> Session {
        Session { intent, window: conversation.window(values.messages), model: Some(conversation.model) }
    }

    /// The current conversation, where a follow-up can go on with it; else a new one, with a note that says why.
    fn current(
        follow: bool,
        place: Option<&Place>,
        target: &Target,
        values: &Values,
        now: Timestamp,
        notes: &Notes,
    ) -> Session {
        let Some(place) = place.filter(|_| follow) else { return Session::without_history(Intent::New) };
        let wanted =
            Wanted { provider: &target.provider.name, model: target.named_model.as_deref(), expire: values.expire };
        let reason = match folder::read(&place.path) {
            Err(error) => format!("the conversation cannot be read ({error})"),
            Ok(found) => match (rules::obstacle(&found, &wanted, now), found) {
                (None, Found::Conversation(conversation)) => {
                    let intent = Intent::Follow { created: conversation.created };
                    return Session::going_on(intent, conversation, values);
                }
                (reason, Found::Conversation(_)) => {
                    format!("{} (q --list has it)", reason.map_or_else(String::new, |reason| reason.to_string()))
                }
                (reason, _) => reason.map_or_else(String::new, |reason| reason.to_string()),
            },
        };
        notes.note(&format!("{reason}: this is a new one"));
        Session::without_history(Intent::FollowAnew)
    }
}

/// A conversation by name or path: it is continued with its own provider and model, unless options name others.
fn named<'a>(
    arguments: &Arguments,
    place: Option<&Place>,
    known: Option<Target<'a>>,
    settings: &'a Settings,
    environment: Environment,
    notes: &Notes,
) -> Result<(Target<'a>, Session), Error> {
    let found = match place {
        None => Found::Nothing,
        Some(place) => folder::read(&place.path).map_err(|error| Error::new(Kind::Session, error.to_string()))?,
    };
    let path = place.map_or_else(PathBuf::new, |place| place.path.clone());
    match found {
        Found::Unusable(unusable) => Err(Error::new(Kind::Session, format!("{}: {unusable}", path.display()))
            .advise("it was left as it is; -s with another name starts another conversation")),
        Found::Nothing if path.file_name().is_some_and(folder::is_aside) => {
            Err(Error::new(Kind::Session, format!("there is no conversation {}", path.display()))
                .advise("names that begin with session_ are given by q itself; q --list lists those that are there"))
        }
        Found::Nothing => {
            let target = known.map_or_else(|| Target::choose(settings, environment, notes), Ok)?;
            Ok((target, Session::without_history(Intent::Named)))
        }
        Found::Conversation(conversation) => {
            let mut target =
                known.map_or_else(|| Target::of_conversation(settings, &conversation.provider, environment), Ok)?;
            if let Some(model) = &arguments.model {
                target.named_model = Some(model.clone());
            } else if target.provider.name == conversation.provider {
                target.named_model = Some(conversation.model.clone());
            }
            let mut session = Session::going_on(Intent::Named, conversation, &settings.values);
            // Of another provider's model this one knows nothing.
            session.model = None;
            Ok((target, session))
        }
    }
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
