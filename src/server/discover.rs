//! Finds a server to ask: the chosen provider, else the first server on this machine that has a model.

use std::sync::Arc;
use std::time::Instant;

use super::probe::{Located, PROBE_TIMEOUT, Probe, Search};
use super::target::Target;
use super::whom::{self, Choice, Claim, Model};
use crate::error::Error;
use crate::output::Notes;
use crate::provider::table;
use crate::server_url::ServerUrl;
use crate::settings::{Cached, Key, Provider, Settings};

/// How many variables for keys an error names.
const SHOWN_VARIABLES: usize = 3;

/// Returns the server that is about to be asked. Where nothing has named it, a note says which one that is, unless it is a dry
/// run.
///
/// # Errors
/// Nobody can be asked, or the provider, its key or its address is wrong.
pub fn find_server_with_note(
    settings: &Settings,
    claim: Claim,
    notes: &Notes,
) -> Result<Target, Error> {
    let target = find_server(settings, claim)?;
    let provider = target.provider();
    if !settings.arguments.dry_run && !is_named(provider, settings, claim) {
        let name = &provider.name;
        let address = target.known_address()?;
        notes.note(&format!(
            "no provider is set: asking {name} at {address}; Q_PROVIDER={name} silences this note"
        ));
    }
    Ok(target)
}

/// Returns the server that a question would go to: the chosen one, else the first local one that answers.
///
/// # Errors
/// Nobody can be asked, or the provider, its key or its address is wrong.
pub fn find_server(settings: &Settings, claim: Claim) -> Result<Target, Error> {
    if let Some(choice) = whom::decide(settings, claim)? {
        return Target::new(choice, settings);
    }
    if settings.caching == Cached::Only {
        return Err(unknown_without_asking("provider", "-p or Q_PROVIDER"));
    }
    match search_locally(settings, claim) {
        LocalSearch::Found { choice, address } => Target::at(&address, choice, settings),
        LocalSearch::NotFound { locked } => Err(no_provider(settings, &locked)),
    }
}

/// Whether settings, a key or the conversation say that this provider is to be asked.
fn is_named(provider: &Provider, settings: &Settings, claim: Claim) -> bool {
    let continued = match claim {
        Claim::Keeps(conversation) | Claim::Suggests(conversation) => Some(conversation),
        Claim::None => None,
    };
    let is_of_conversation = continued.is_some_and(|it| it.provider == provider.name);
    is_of_conversation || settings.chosen_provider().is_some()
}

/// Returns the error if the provider or the model is not named, and nobody may be asked.
pub fn unknown_without_asking(what: &str, names: &str) -> Error {
    let message = format!("cached = only sends no requests, and no {what} is named");
    Error::settings(message).advise(format!("name one with {names}"))
}

/// The result of a search for a local server.
enum LocalSearch {
    /// One that can be asked, and where it is.
    Found { choice: Choice, address: ServerUrl },
    /// None can be asked. Those that are there want a key.
    NotFound { locked: Vec<LockedServer> },
}

/// A local server that wants a key.
struct LockedServer {
    provider: String,
    /// What to do about that.
    advice: String,
}

/// Asks the local servers for their models, and chooses the first that answers in time.
fn search_locally(settings: &Settings, claim: Claim) -> LocalSearch {
    let asked = ask_local_servers(settings);
    let deadline = Instant::now() + PROBE_TIMEOUT;
    // They are awaited in their order, and no longer than until one can be chosen.
    let answers = asked.into_iter().map(|(provider, search)| {
        let located = search.finish(Some(deadline));
        // Its key goes nowhere if a server before it can be chosen.
        (
            provider,
            located.retry_with_key(provider, &settings.environment),
        )
    });
    choose_first(answers, settings, claim)
}

/// Asks each server that may need no key for its models, all at once.
fn ask_local_servers(settings: &Settings) -> Vec<(&Arc<Provider>, Search)> {
    let mut asked = Vec::new();
    for provider in &settings.providers {
        if provider.key.is_optional()
            && let Ok(search) = Search::begin(provider, &settings.environment)
        {
            asked.push((provider, search));
        }
    }
    asked
}

/// Chooses the first server that has a model or is loading one.
fn choose_first<'a>(
    answers: impl IntoIterator<Item = (&'a Arc<Provider>, Located)>,
    settings: &Settings,
    claim: Claim,
) -> LocalSearch {
    let mut locked = Vec::new();
    for (provider, Located { address, probe }) in answers {
        let listed = match probe {
            Probe::Ready(first) => Model::Listed(first),
            Probe::Loading => Model::First,
            Probe::KeyRequired(advice) => {
                locked.push(LockedServer {
                    provider: provider.name.clone(),
                    advice,
                });
                continue;
            }
            Probe::Absent => continue,
        };
        let model = match whom::model_of(provider, settings, claim) {
            Model::First => listed,
            chosen => chosen,
        };
        let choice = Choice {
            provider: Arc::clone(provider),
            model,
        };
        return LocalSearch::Found { choice, address };
    }
    LocalSearch::NotFound { locked }
}

/// Returns the error if there is no provider to ask. It shows the quickest ways to get one, and where the others are listed.
fn no_provider(settings: &Settings, locked: &[LockedServer]) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match (&provider.key, provider.row.start) {
            (Key::Variables(names), _) => variables.extend(names.first().cloned()),
            (_, Some(command)) => servers.push(format!("{} ({command})", provider.name)),
            _ => {}
        }
    }
    variables.truncate(SHOWN_VARIABLES);
    let (variables, servers) = (variables.join(" or "), servers.join(", "));
    let message =
        "no provider is configured: no key is set, and no local server answers with a model";
    let keys = format!("export {variables} with your key; run q --status to list all of them");
    // A server that runs and wants a key needs the least, and then one that the user has set up.
    let mut nearest = Vec::from_iter(locked.iter().map(|server| server.advice.clone()));
    nearest.extend(silent_servers(settings, locked));
    nearest.extend(keyless_servers(settings));
    let advice = if nearest.is_empty() {
        format!("{keys}; or start a local server: {servers}")
    } else {
        format!("{}; or {keys}", nearest.join("; "))
    };
    let error = Error::settings(message).advise(advice);
    if settings.caching == Cached::Off {
        return error;
    }
    error.advise_also(
        "name provider and model with -p and -m, or in the configuration, to reuse a cached answer without a key",
    )
}

/// Returns what to do about each local server that does not answer at the address that the user has set, unless it wants a key.
fn silent_servers(settings: &Settings, locked: &[LockedServer]) -> Vec<String> {
    let mut silent = Vec::new();
    for provider in &settings.providers {
        let is_locked = locked.iter().any(|server| server.provider == provider.name);
        if provider.key.is_optional()
            && !is_locked
            && let Ok(address) = provider.address()
            && let Some(origin) = origin_of_address(provider, settings)
        {
            let name = &provider.name;
            let what = match provider.row.start {
                Some(command) => format!("start {name} ({command})"),
                None => format!("start {name}"),
            };
            silent.push(format!(
                "{what}, because it does not answer with a model at {address}, which {origin} names"
            ));
        }
    }
    silent
}

/// Returns what to do about each other server whose address a variable names and that lacks a key.
fn keyless_servers(settings: &Settings) -> Vec<String> {
    let mut keyless = Vec::new();
    for provider in &settings.providers {
        if let Key::Variables(names) = &provider.key
            && let Some(variable) = names.first()
            && let name = &provider.name
            && let Some(address) = address_variable(provider, settings)
        {
            keyless.push(format!(
                "export {variable} for {name}, whose address is in {address}, with any text if that server needs no key"
            ));
        }
    }
    keyless
}

/// Returns the variable or the setting that names a provider's address; `None` if it is the built-in one.
fn origin_of_address(provider: &Provider, settings: &Settings) -> Option<String> {
    let variable = address_variable(provider, settings);
    if variable.is_some() {
        return variable;
    }
    let built_in = ServerUrl::parse(provider.row.base_url).ok();
    (provider.address().ok() != built_in.as_ref()).then(|| "base_url in config.toml".to_owned())
}

/// Returns the variable that is set and names a provider's address.
fn address_variable(provider: &Provider, settings: &Settings) -> Option<String> {
    let mut variables = vec![table::base_url_variable(&provider.name)];
    let (moved, old_variable) = table::OLD_BASE_URL;
    if provider.name == moved {
        variables.push(old_variable.to_owned());
    }
    variables.extend(provider.row.host_variable.map(str::to_owned));
    let is_set = |variable: &String| settings.environment.get(variable).is_some();
    variables.into_iter().find(is_set)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flags::Arguments;
    use crate::server::model_choice;
    use crate::server::probe::tests::{Requests, serve_noted, silent};
    use crate::session::Conversation;
    use crate::session::timestamp::Timestamp;
    use crate::settings::Environment;
    use crate::text::table::rows;
    use crate::threads::lock;

    fn settings(variables: &str) -> Settings {
        let pairs = variables.split(' ').filter_map(|set| set.split_once('='));
        let environment = Environment::new(&Vec::from_iter(pairs));
        let no_file = Path::new("/nonexistent/config.toml");
        Settings::load(&Arguments::default(), &environment, no_file).expect("settings")
    }

    #[test]
    fn the_first_local_server_with_a_model_is_chosen() {
        // What probes have found, in their order; variables; the model of a conversation with ollama, if one is continued;
        // who is asked, or the advice of those that want a key.
        let table = r##"
            ollama ready | - | - | ollama Listed("a")
            ollama absent, llamacpp ready, vllm ready | - | - | llamacpp Listed("a")
            ollama loading, llamacpp ready | - | - | ollama First
            ollama key, llamacpp ready | - | - | llamacpp Listed("a")
            ollama key, llamacpp loading | - | - | llamacpp First
            ollama key, llamacpp absent | - | - | key for ollama
            ollama key, llamacpp key | - | - | key for ollama; key for llamacpp
            ollama absent, llamacpp absent | - | - | -
            - | - | - | -
            ollama ready | Q_MODEL=b | - | ollama Named("b")
            ollama ready | - | own | ollama OfConversation("own")
            ollama ready | Q_MODEL=b | own | ollama Named("b")
            ollama absent, llamacpp ready | - | own | llamacpp Listed("a")
        "##;
        for [found, variables, own, expected] in rows(table) {
            let settings = settings(variables);
            let answers = found.split(", ").filter_map(|answer| {
                let (name, found) = answer.split_once(' ')?;
                let provider = settings.provider_named(name).expect(name);
                let probe = match found {
                    "ready" => Probe::Ready("a".to_owned()),
                    "loading" => Probe::Loading,
                    "key" => Probe::KeyRequired(format!("key for {name}")),
                    _ => Probe::Absent,
                };
                let address = provider.address().expect(name).clone();
                Some((provider, Located { address, probe }))
            });
            let conversation = Conversation {
                provider: "ollama".to_owned(),
                model: own.to_owned(),
                ..Conversation::new(Timestamp::now())
            };
            let claim = match own {
                "" => Claim::None,
                _ => Claim::Suggests(&conversation),
            };
            let chosen = match choose_first(answers, &settings, claim) {
                LocalSearch::Found { choice, address } => {
                    assert_eq!(choice.provider.address().ok(), Some(&address));
                    format!("{} {:?}", choice.provider.name, choice.model)
                }
                LocalSearch::NotFound { locked } => {
                    let advice = locked.into_iter().map(|server| server.advice);
                    Vec::from_iter(advice).join("; ")
                }
            };
            assert_eq!(chosen, expected, "{found} | {variables} | {own}");
        }
    }

    #[test]
    fn the_error_without_a_provider_says_what_is_nearest_first() {
        // Variables, the servers that want a key, and the advice.
        let keys = "export ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY with your key; run q --status to list all of them";
        let start = "or start a local server: ollama (ollama serve), llamacpp (llama-server -m MODEL.gguf), lmstudio (lms server start), vllm (vllm serve MODEL)";
        let ollama = "start ollama (ollama serve), because it does not answer with a model at http://[::1]:28733/v1, which OLLAMA_HOST names";
        let vllm = "start vllm (vllm serve MODEL), because it does not answer with a model at http://box/v1, which VLLM_BASE_URL names";
        let table = [
            ("", &[][..], format!("{keys}; {start}")),
            (
                "",
                &["one", "two"],
                format!("key of one; key of two; or {keys}"),
            ),
            (
                "OLLAMA_HOST=[::1]:28733",
                &[],
                format!("{ollama}; or {keys}"),
            ),
            (
                "OLLAMA_HOST=[::1]:28733 VLLM_BASE_URL=http://box/v1",
                &[],
                format!("{ollama}; {vllm}; or {keys}"),
            ),
            (
                "OLLAMA_HOST=[::1]:28733 VLLM_BASE_URL=http://box/v1",
                &["ollama"],
                format!("key of ollama; {vllm}; or {keys}"),
            ),
            (
                "OPENAI_BASE_URL=http://box/v1",
                &[],
                format!(
                    "export OPENAI_API_KEY for openai, whose address is in OPENAI_BASE_URL, with any text if that server needs no key; or {keys}"
                ),
            ),
            (
                "OPENAI_API_BASE=http://box/v1",
                &[],
                format!(
                    "export OPENAI_API_KEY for openai, whose address is in OPENAI_API_BASE, with any text if that server needs no key; or {keys}"
                ),
            ),
        ];
        for (variables, locked, expected) in table {
            let locked = locked.iter().map(|name| LockedServer {
                provider: (*name).to_owned(),
                advice: format!("key of {name}"),
            });
            let error = no_provider(&settings(variables), &Vec::from_iter(locked));
            assert_eq!(error.advice, Some(expected), "{variables}");
        }
    }

    /// What q does with a server that it may ask.
    fn act(action: &str, settings: &Settings) -> Result<(), Error> {
        let notes = Notes::default();
        let conversation = Conversation {
            provider: "llamacpp".to_owned(),
            model: "own".to_owned(),
            ..Conversation::new(Timestamp::now())
        };
        let claim = match action {
            "follow-up" => Claim::Suggests(&conversation),
            _ => Claim::None,
        };
        let target = find_server(settings, claim)?;
        match action {
            "status" => return Ok(()),
            "models" => return target.models(&notes).map(drop),
            _ => {}
        }
        model_choice::choose(&target, settings, &notes)?;
        if action != "dry run" {
            target.ready(&notes)?;
            target.ready(&notes)?;
        }
        Ok(())
    }

    #[test]
    fn a_local_server_is_found_in_time_although_what_has_taken_its_usual_port_is_silent() {
        let (usual, _open) = silent();
        let (other, _) = serve_noted("200", r#"{"data":[{"id":"m"}]}"#);
        let mut settings = settings(&format!("LLAMACPP_BASE_URL={usual}"));
        settings
            .providers
            .retain(|provider| provider.name == "llamacpp");
        Arc::make_mut(&mut settings.providers[0]).other_address = Some(other);
        let found = find_server(&settings, Claim::None).expect("a server");
        let address = found.known_address().expect("an address").to_string();
        assert_eq!(address.trim_end_matches("/v1"), other);
        assert_eq!(found.choice.model, Model::Listed("m".to_owned()));
    }

    #[test]
    fn the_command_of_a_key_runs_once_for_a_question_and_its_key_goes_to_one_address() {
        const LIST: &str = r#"{"data":[{"id":"m"}]}"#;
        const NO_KEY: &str = r#"{"error":"no key"}"#;
        let has_key = |requests: &Requests| {
            let requests = lock(requests);
            requests.iter().any(|it| it.contains("sk-from-command"))
        };
        // What answers at the usual address, and at the other one; what q does; how often the command runs; the requests to
        // each address, where q does not go on before the other one has got one; which of them have the key.
        let table = r##"
            list | list | question | 1 | 1 - | -
            list | list | follow-up | 1 | 1 - | -
            list | list | models | 1 | 2 - | usual
            list | list | status | 0 | 0 0 | -
            list | list | dry run | 0 | 0 0 | -
            page | list | question | 1 | 1 1 | -
            page | list | follow-up | 1 | 1 1 | -
            page | list | models | 1 | 1 2 | other
            page | list | status | 0 | 0 0 | -
            page | list | dry run | 0 | 0 0 | -
            wants a key | list | models | 1 | 1 2 | other
            page | wants a key | models | 1 | 1 2 | other
            wants a key | page | question | 1 | 2 1 | usual
            wants a key | wants a key | models | 1 | 2 1 | usual
        "##;
        let directory = tempfile::tempdir().expect("a directory");
        let ran = directory.path().join("ran");
        let file = directory.path().join("config.toml");
        let command = format!("echo >>{}; echo sk-from-command", ran.display());
        let text = format!(
            "provider = \"llamacpp\"\n[providers.llamacpp]\nkey_cmd = [\"sh\", \"-c\", \"{command}\"]\n"
        );
        fs_err::write(&file, text).expect("a file");
        for [usual, other, action, runs, counts, keyed] in rows(table) {
            let case = format!("{usual} | {other} | {action}");
            let serve = |what: &str| match what {
                "list" => serve_noted("200", LIST),
                "page" => serve_noted("200", "<html>"),
                _ => serve_noted("401", NO_KEY),
            };
            let ((usual, at_usual), (other, at_other)) = (serve(usual), serve(other));
            let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
            let arguments = Arguments {
                dry_run: action == "dry run",
                ..Arguments::default()
            };
            let mut settings = Settings::load(&arguments, &environment, &file).expect("settings");
            for provider in &mut settings.providers {
                if provider.name == "llamacpp" {
                    Arc::make_mut(provider).other_address = Some(other);
                }
            }
            fs_err::write(&ran, "").expect("a file");
            let _ = act(action, &settings);
            let lines = fs_err::read_to_string(&ran)
                .expect("a file")
                .lines()
                .count();
            assert_eq!(lines.to_string(), runs, "{case}: runs");
            let mut found = format!("{} {}", lock(&at_usual).len(), lock(&at_other).len());
            if counts.ends_with('-') {
                found = found.replace(" 0", " -").replace(" 1", " -");
            }
            assert_eq!(found, counts, "{case}: requests");
            let mut with_key = Vec::new();
            for (place, requests) in [("usual", &at_usual), ("other", &at_other)] {
                if has_key(requests) {
                    with_key.push(place);
                }
            }
            assert_eq!(with_key.join(" "), keyed, "{case}: keys");
        }
    }
}
