//! Conversations that are meant by a name: `-s NAME`, `-s FILE.json`, and the slots of `Q_SESSION`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Recorded, Reply, Server};

/// When the stored conversations were begun and last changed: long enough ago to have expired.
pub const CREATED: &str = "2026-01-02T03:04:05.678Z";
pub const UPDATED: &str = "2026-01-02T03:09:00.000Z";
/// The name under which such a one is set aside.
pub const ASIDE: &str = "session_20260102030405.json";

/// A conversation with OpenAI of these texts, questions and answers by turns.
pub fn stored(texts: &[&str]) -> Value {
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages: Vec<Value> = texts
        .iter()
        .zip(roles)
        .map(|(text, role)| json!({"role": role, "content": text, "timestamp": CREATED}))
        .collect();
    json!({
        "version": 1, "provider": "openai", "model": "stored-model", "created": CREATED, "updated": UPDATED,
        "messages": messages,
    })
}

/// Everything of a file that a write could change.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub name: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
    inode: u64,
    modified: (i64, i64),
}

/// What is in a folder, by name; nothing where it does not exist.
pub fn snapshot(folder: &Path) -> Vec<Seen> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let metadata = entry.path().symlink_metadata().expect("its metadata");
        files.push(Seen {
            name: entry.file_name().to_string_lossy().into_owned(),
            mode: metadata.mode(),
            // The bytes of pipes and devices are not to be had.
            bytes: if metadata.is_file() { fs::read(entry.path()).unwrap_or_default() } else { Vec::new() },
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        });
    }
    files.sort();
    files
}

/// The user message of a request to OpenAI.
#[track_caller]
pub fn prompt(request: &Recorded) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message");
    last["content"].as_str().expect("text").to_owned()
}

/// A server whose answers tell their number, and a sandbox that asks it.
pub fn numbered() -> (Server, Sandbox) {
    let server = Server::openai_each(|number| format!("answer {number}"));
    let sandbox = Sandbox::new().server_env(&server);
    (server, sandbox)
}

/// The texts of a conversation.
pub fn texts(conversation: &Value) -> Vec<&str> {
    let messages = conversation["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["content"].as_str().expect("text")).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o7777
}

/// As if nobody had changed the file for so many days.
fn age(path: &Path, days: u64) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    file.set_modified(then).expect("a time of change");
}

#[test]
fn a_name_starts_a_conversation_and_continues_it() {
    let (server, sandbox) = numbered();
    sandbox.q(&["-s", "work", "one"]).run().success().stdout("answer 0\n");
    sandbox.q(&["current"]).run().success();
    sandbox.q(&["--session=work", "two"]).run().success().stdout("answer 2\n");

    assert_eq!(prompt(&server.requests()[0]), "one");
    assert_eq!(
        prompt(&server.requests()[2]),
        "Previous conversation:\nHuman: one\n\nAssistant: answer 0\n\nHuman: two"
    );
    assert_eq!(sandbox.session_files(), ["current.json", "work.json"]);
    assert_eq!(texts(&sandbox.session("work.json")), ["one", "answer 0", "two", "answer 2"]);
    assert_eq!(texts(&sandbox.current()), ["current", "answer 1"]);
    assert_eq!(mode(&sandbox.sessions().join("work.json")), 0o600);
}

#[test]
fn a_pipeline_by_name_sees_what_its_first_half_has_saved() {
    let (server, sandbox) = numbered();
    sandbox.shell("q -s work one | q -s work two").run().success().stdout("answer 1\n");
    let second = "Previous conversation:\nHuman: one\n\nAssistant: answer 0\n\nHuman: \
                  <context>\nanswer 0\n</context>\n\ntwo";
    assert_eq!(prompt(&server.requests()[1]), second);
}

#[test]
fn a_conversation_by_name_or_path_never_expires_and_keeps_all_pairs() {
    let numbers: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let long: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "1s").env("Q_PAIRS", "1");
    sandbox.write_bytes("work.json", stored(&long).to_string());
    fs::write(sandbox.home().join("talk.json"), stored(&long).to_string()).unwrap();
    for (number, name) in ["work", "talk.json"].into_iter().enumerate() {
        sandbox.q(&["-s", name, "more"]).run().success();
        let sent = prompt(&server.requests()[number]);
        assert!(sent.starts_with("Previous conversation:\nHuman: 40\n\nAssistant: 41\n"), "{name}: {sent}");
    }
    assert_eq!(sandbox.session_files(), ["work.json"]);
    let file = fs::read(sandbox.home().join("talk.json")).unwrap();
    for conversation in [sandbox.session("work.json"), serde_json::from_slice(&file).unwrap()] {
        assert_eq!(texts(&conversation).len(), 52);
        assert_eq!(texts(&conversation)[..50], long);
        assert_eq!(conversation["created"], CREATED);
    }
}

#[test]
fn a_named_conversation_keeps_its_own_provider_and_model() {
    let (openai, claude) = (Server::openai("from openai"), Server::anthropic("from anthropic"));
    for (variables, config) in [
        (&[][..], ""),
        (&[("Q_PROVIDER", "openai"), ("Q_MODEL", "named")], ""),
        (&[("Q_MODEL", "named")], ""),
        (&[], "provider = \"openai\"\nmodel = \"named\""),
        (&[], "[providers.anthropic]\nmodel = \"named\""),
    ] {
        let mut sandbox = Sandbox::new().server_env(&openai).anthropic_env(&claude);
        for (key, value) in variables {
            sandbox = sandbox.env(key, value);
        }
        sandbox.config(config);
        let mut conversation = stored(&["one", "two"]);
        conversation["provider"] = json!("anthropic");
        sandbox.write_bytes("work.json", conversation.to_string());
        sandbox.q(&["-s", "work", "three"]).run().success().stdout("from anthropic\n");
        let written = sandbox.session("work.json");
        assert_eq!((&written["provider"], &written["model"]), (&json!("anthropic"), &json!("stored-model")));
    }
    assert!(openai.requests().is_empty());
    assert!(claude.requests().iter().all(|request| request.json()["model"] == "stored-model"));
}

#[test]
fn another_model_or_provider_takes_the_history_over_and_stays() {
    let (openai, claude) = (Server::openai("from openai"), Server::anthropic("from anthropic"));
    for (options, provider, model) in [
        (&["-m", "other"][..], "openai", "other"),
        (&["-p", "openai"], "openai", "stored-model"),
        (&["-p", "anthropic"], "anthropic", "claude-haiku-5-5"),
        (&["-p", "anthropic", "-m", "other"], "anthropic", "other"),
    ] {
        let sandbox = Sandbox::new().server_env(&openai).anthropic_env(&claude);
        sandbox.write_bytes("work.json", stored(&["one", "two"]).to_string());
        sandbox.q(&["-s", "work"]).args(options).arg("three").run().success();
        sandbox.q(&["-s", "work", "four"]).run().success();
        let server = if provider == "openai" { &openai } else { &claude };
        let requests = server.requests();
        let [.., first, second] = &requests[..] else { panic!("{options:?}: not both requests went to {provider}") };
        for (request, question) in [(first, "three"), (second, "four")] {
            assert_eq!(request.json()["model"], model, "{options:?}: {question}");
            let sent = prompt(request);
            assert!(sent.starts_with("Previous conversation:\nHuman: one\n\nAssistant: two\n"), "{options:?}: {sent}");
        }
        let written = sandbox.session("work.json");
        assert_eq!((&written["provider"], &written["model"]), (&json!(provider), &json!(model)), "{options:?}");
        assert_eq!(texts(&written).len(), 6, "{options:?}");
        assert_eq!(sandbox.session_files(), ["work.json"], "{options:?}");
    }
}

#[test]
fn a_conversation_whose_provider_is_gone_names_those_that_are_there() {
    let (server, sandbox) = numbered();
    sandbox.config("[providers.desk]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let mut conversation = stored(&["one", "two"]);
    conversation["provider"] = json!("cellar");
    sandbox.write_bytes("work.json", conversation.to_string());
    let before = snapshot(&sandbox.sessions());
    let refused = sandbox.q(&["-s", "work", "three"]).run();
    refused.exit(2).stdout_is_empty();
    for word in ["cellar", "desk", "openai", "ollama", "-p"] {
        refused.stderr_contains(word);
    }
    assert!(server.requests().is_empty());
    assert_eq!(snapshot(&sandbox.sessions()), before);

    sandbox.q(&["-s", "work", "-p", "openai", "three"]).run().success();
    assert!(prompt(&server.request()).contains("Human: one\n\nAssistant: two\n"));
    assert_eq!(sandbox.session("work.json")["provider"], "openai");
    sandbox.q(&["-s", "work", "four"]).run().success();
}

#[test]
fn a_question_that_fails_or_leaves_no_trace_changes_no_named_file() {
    let server = Server::start(|request, _| match prompt(request).contains("fail") {
        true => Reply::json(400, json!({"error": {"message": "no"}})),
        false => crate::server::openai_reply(request, "fine"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_bytes("work.json", stored(&["one", "two"]).to_string());
    fs::write(sandbox.home().join("talk.json"), stored(&["one", "two"]).to_string()).unwrap();
    let before = (snapshot(&sandbox.sessions()), snapshot(&sandbox.home()));
    for name in ["work", "new", "talk.json", "new.json"] {
        sandbox.q(&["-s", name, "fail"]).run().exit(1);
        sandbox.q(&["-s", name, "--no-save", "answer"]).run().success().stdout("fine\n");
    }
    assert_eq!(server.requests().len(), 8);
    assert_eq!((snapshot(&sandbox.sessions()), snapshot(&sandbox.home())), before);
}

const NO_NAMES: &[&str] = &[
    ".",
    "..",
    ".hidden",
    "../work",
    "../../work",
    "/tmp/work",
    "a/b",
    "a/",
    "a b",
    "a\nb",
    "a\tb",
    "ä",
    "a\\b",
    "a:b",
    "~",
    "*",
    "current",
    "current-1",
    "currently",
];

#[test]
fn what_is_no_name_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    let long = "x".repeat(101);
    for name in NO_NAMES.iter().chain([&"", &long.as_str()]) {
        for action in [&["--history"][..], &["--last"], &["--undo"], &["--clear"], &[]] {
            // An open standard input shows that none is waited for.
            let refused = sandbox.q(&["-s", name]).args(action).stdin_open().run();
            refused.exit(2).stdout_is_empty().stderr_contains("q: ");
        }
    }
    assert!(server.requests().is_empty());
    assert_eq!(snapshot(&sandbox.state()), []);
}

#[test]
fn every_kind_of_name_stays_in_the_folder() {
    let (_server, sandbox) = numbered();
    let long = "x".repeat(100);
    let names = ["a", "A-Z_0.9", "-x", "a..b", "a.json.txt", "session", &long];
    for name in names {
        sandbox.q(&["-s", name, "one"]).run().success();
        sandbox.q(&["-s", name, "two"]).run().success();
        assert_eq!(texts(&sandbox.session(&format!("{name}.json"))).len(), 4, "{name}");
    }
    assert_eq!(sandbox.session_files().len(), names.len());
    assert_eq!(snapshot(&sandbox.home()), []);
}

#[test]
fn one_that_was_set_aside_is_continued_by_its_name_but_none_is_started_so() {
    let (server, sandbox) = numbered();
    let name = ASIDE.strip_suffix(".json").unwrap();
    sandbox.q(&["-s", name, "one"]).run().exit(2).stdout_is_empty().stderr_contains(name);
    assert!(server.requests().is_empty());
    assert!(sandbox.session_files().is_empty());

    sandbox.write_bytes(ASIDE, stored(&["one", "two"]).to_string());
    sandbox.q(&["-s", name, "three"]).run().success();
    assert!(prompt(&server.request()).contains("Human: one\n\nAssistant: two\n"));
    assert_eq!(sandbox.session_files(), [ASIDE]);
    assert_eq!(texts(&sandbox.session(ASIDE)).len(), 4);
}

#[test]
fn a_file_elsewhere_may_have_any_name_and_any_way_to_it() {
    let (server, sandbox) = numbered();
    fs::create_dir(sandbox.home().join("talks")).unwrap();
    let absolute = sandbox.home().join("absolute.json");
    for path in [
        "talk.json",
        "./talks/../dotted.json",
        "talks/a talk.json",
        "current.json",
        ".json",
        "session_notes.json",
        absolute.to_str().unwrap(),
    ] {
        sandbox.q(&["-s", path, "one"]).run().success();
        sandbox.q(&["-s", path, "two"]).run().success();
        let file = sandbox.home().join(path);
        let conversation: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(texts(&conversation).len(), 4, "{path}");
        assert_eq!(mode(&file), 0o600, "{path}");
    }
    assert_eq!(server.requests().len(), 14);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let (server, sandbox) = numbered();
    for action in [&["--history"][..], &["--last"], &["--undo"], &["--clear"], &[]] {
        let refused = sandbox.q(&["-s", "missing/talk.json"]).args(action).stdin_open().run();
        refused.exit(2).stdout_is_empty().stderr_contains("missing/talk.json");
    }
    assert!(server.requests().is_empty());
    assert_eq!(snapshot(&sandbox.home()), []);
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_rewritten() {
    let (server, sandbox) = numbered();
    let (real, near, far) = (sandbox.root().join("real.json"), "near.json", "far.json");
    fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
    symlink("../real.json", sandbox.home().join(near)).unwrap();
    symlink(near, sandbox.home().join(far)).unwrap();
    sandbox.q(&["-s", far, "three"]).run().success();
    sandbox.q(&["--undo", "-s", near]).run().success().stdout("three\n");
    sandbox.q(&["-s", near, "four"]).run().success();
    assert_eq!(server.requests().len(), 2);
    assert_eq!(fs::read_link(sandbox.home().join(near)).unwrap(), Path::new("../real.json"));
    assert_eq!(fs::read_link(sandbox.home().join(far)).unwrap(), Path::new(near));
    assert_eq!(texts(&serde_json::from_slice(&fs::read(&real).unwrap()).unwrap()), ["one", "two", "four", "answer 1"]);
    assert_eq!(snapshot(&sandbox.home()).len(), 2, "nothing is left behind");
}

#[test]
fn a_link_whose_file_was_emptied_leads_to_a_new_one() {
    let (_server, sandbox) = numbered();
    let real = sandbox.root().join("real.json");
    symlink("../real.json", sandbox.home().join("link.json")).unwrap();
    for emptied_by in ["--undo", "--clear"] {
        fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
        sandbox.q(&[emptied_by, "-s", "link.json"]).run().exit(0);
        assert!(!real.exists());
        sandbox.q(&["-s", "link.json", "again"]).run().success();
        assert!(real.is_file(), "after {emptied_by}");
    }
}

#[test]
fn a_file_keeps_its_mode_whatever_the_umask() {
    let (_server, sandbox) = numbered();
    let file = sandbox.home().join("talk.json");
    for (given, umask) in [(0o600, "000"), (0o640, "022"), (0o644, "022"), (0o644, "077"), (0o664, "022")] {
        for script in ["q -s talk.json more", "q --undo -s talk.json"] {
            fs::write(&file, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(given)).unwrap();
            sandbox.shell(&format!("umask {umask}; {script}")).run().success();
            assert_eq!(format!("{:o}", mode(&file)), format!("{given:o}"), "{script} with umask {umask}");
        }
    }
}

/// Contents that are no conversation, each with a word for it.
fn no_conversations() -> Vec<(&'static str, String)> {
    let sound = stored(&["one", "two"]).to_string();
    let with = |key: &str, value: Value| {
        let mut conversation = stored(&["one", "two"]);
        conversation[key] = value;
        conversation.to_string()
    };
    let message = |message: Value| with("messages", json!([message]));
    vec![
        ("empty", String::new()),
        ("text", "hello\n".to_owned()),
        ("half", sound[..sound.len() / 2].to_owned()),
        ("more", format!("{sound}x")),
        ("a list", "[]".to_owned()),
        ("another version", with("version", json!(2))),
        ("no messages", with("messages", Value::Null)),
        ("no time", with("created", json!("yesterday"))),
        ("a role of another kind", message(json!({"role": "system", "content": "x"}))),
        ("no role", message(json!({"content": "x"}))),
        ("no text", message(json!({"role": "user"}))),
        ("parts", message(json!({"role": "user", "content": [{"text": "x"}]}))),
        ("too large", format!("{sound}{}", " ".repeat(10_000_001 - sound.len()))),
    ]
}

#[test]
fn a_file_that_is_no_conversation_is_refused_and_untouched() {
    let (server, sandbox) = numbered();
    for (what, text) in no_conversations() {
        fs::write(sandbox.home().join("talk.json"), &text).unwrap();
        sandbox.write_bytes("work.json", &text);
        let before = (snapshot(&sandbox.home()), snapshot(&sandbox.sessions()));
        for arguments in [&["--history"][..], &["--last"], &["--undo"], &["--clear"], &[]] {
            let question: &[&str] = if arguments.is_empty() { &["x"] } else { &[] };
            let refused = sandbox.q(arguments).args(&["-s", "talk.json"]).args(question).run();
            refused.exit(2).stdout_is_empty().stderr_contains("talk.json");
        }
        let refused = sandbox.q(&["--history", "--json", "-s", "talk.json"]).run();
        refused.exit(2).stdout_contains("{\"error\"").stderr_contains("talk.json");
        for action in ["--history", "--last", "--undo"] {
            sandbox.q(&[action, "-s", "work"]).run().exit(1).stdout_is_empty().stderr_contains("work.json");
        }
        sandbox.q(&["-s", "work", "x"]).run().exit(2).stdout_is_empty().stderr_contains("work.json");
        assert!((snapshot(&sandbox.home()), snapshot(&sandbox.sessions())) == before, "{what}: something has changed");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_time_at_the_end_of_the_calendar_is_read_or_refused() {
    let (_server, sandbox) = numbered();
    let file = sandbox.home().join("talk.json");
    for time in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999Z"] {
        for key in ["created", "updated"] {
            let mut conversation = stored(&["one", "two"]);
            conversation[key] = json!(time);
            fs::write(&file, conversation.to_string()).unwrap();
            let before = snapshot(&sandbox.home());
            let asked = sandbox.q(&["-s", "talk.json", "three"]).run();
            if asked.status.code() != Some(0) {
                asked.exit(2);
                assert_eq!(snapshot(&sandbox.home()), before, "{key} {time}");
                continue;
            }
            // What q has written it can read.
            sandbox.q(&["--last", "-s", "talk.json"]).run().success();
        }
    }
}

#[test]
fn what_is_no_regular_file_is_refused_and_left_alone() {
    let (server, sandbox) = numbered();
    let zoo = "mkdir folder.json; mkfifo pipe.json; ln -s loop.json loop.json; ln -s /dev/zero device.json";
    sandbox.shell(zoo).run().success();
    fs::create_dir_all(sandbox.sessions()).unwrap();
    sandbox.shell("cp -a *.json ../state/q/sessions/").run().success();
    let before = (snapshot(&sandbox.home()), snapshot(&sandbox.sessions()));
    for name in ["folder", "pipe", "loop", "device"] {
        let file = format!("{name}.json");
        for action in ["--history", "--last", "--undo", "--clear"] {
            sandbox.q(&[action, "-s", &file]).run().exit(2).stdout_is_empty().stderr_contains("q: ");
        }
        for action in ["--history", "--last", "--undo"] {
            sandbox.q(&[action, "-s", name]).run().exit(1).stdout_is_empty().stderr_contains("q: ");
        }
        for session in [name, &file] {
            sandbox.q(&["-s", session, "x"]).run().exit(2).stdout_is_empty().stderr_contains("q: ");
        }
    }
    assert!(server.requests().is_empty());
    assert_eq!((snapshot(&sandbox.home()), snapshot(&sandbox.sessions())), before);
}

#[test]
fn a_file_without_permission_is_refused_and_left_alone() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return eprintln!("skipped: root may read everything");
    }
    let (server, sandbox) = numbered();
    let file = sandbox.home().join("talk.json");
    fs::write(&file, stored(&["one", "two"]).to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let before = snapshot(&sandbox.home());
    for action in ["--history", "--last", "--undo", "--clear", "x"] {
        let arguments = if action == "x" { ["-s", "talk.json", "x"] } else { [action, "-s", "talk.json"] };
        sandbox.q(&arguments).run().exit(2).stdout_is_empty().stderr_contains("talk.json");
    }
    assert!(server.requests().is_empty());
    assert_eq!(snapshot(&sandbox.home()), before);
}

#[test]
fn thin_and_odd_conversations_are_continued_as_they_are() {
    let (user, assistant) =
        (|text| json!({"role": "user", "content": text}), |text| json!({"role": "assistant", "content": text}));
    let (server, sandbox) = numbered();
    for (number, (messages, sent)) in [
        (vec![], "more"),
        (vec![user("one")], "Previous conversation:\nHuman: one\n\nHuman: more"),
        (vec![assistant("one")], "Previous conversation:\nAssistant: one\n\nHuman: more"),
        (vec![user("one"), user("two")], "Previous conversation:\nHuman: one\n\nHuman: two\n\nHuman: more"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut conversation = stored(&[]);
        conversation["messages"] = Value::from(messages.clone());
        sandbox.write_bytes("work.json", conversation.to_string());
        sandbox.q(&["-s", "work", "more"]).run().success();
        assert_eq!(prompt(&server.requests()[number]), sent);
        let written = sandbox.session("work.json");
        let kept = written["messages"].as_array().unwrap();
        assert_eq!(kept[..messages.len()], messages);
        assert_eq!(kept.len(), messages.len() + 2);
    }
}

#[test]
fn a_conversation_of_100_000_messages_is_continued() {
    let (server, sandbox) = numbered();
    let text = stored(&vec!["x"; 100_000]).to_string();
    assert!(text.len() < 10_000_000);
    sandbox.write_bytes("work.json", text);
    sandbox.q(&["-s", "work", "more"]).run().success();
    assert_eq!(prompt(&server.request()).matches("Human: x").count(), 5);
    assert_eq!(texts(&sandbox.session("work.json")).len(), 100_002);
    sandbox.q(&["--undo", "-s", "work"]).run().success().stdout("more\n");
    assert_eq!(texts(&sandbox.session("work.json")).len(), 100_000);
}

/// A question in the slot of this name; none where it is empty.
#[track_caller]
fn in_slot(sandbox: &Sandbox, slot: &str, arguments: &[&str]) -> Outcome {
    sandbox.q(arguments).env("Q_SESSION", slot).run()
}

#[test]
fn each_slot_has_a_current_conversation_of_its_own() {
    let (server, sandbox) = numbered();
    let slots = [("", "current.json"), ("tty1", "current-tty1.json"), ("tty2", "current-tty2.json")];
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &[&format!("first of {slot}")]).success();
    }
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &["-f", "more"]).success();
    }
    for (number, (slot, file)) in slots.into_iter().enumerate() {
        let sent = prompt(&server.requests()[3 + number]);
        let expected =
            format!("Previous conversation:\nHuman: first of {slot}\n\nAssistant: answer {number}\n\nHuman: more");
        assert_eq!(sent, expected, "{slot}");
        assert_eq!(texts(&sandbox.session(file)).len(), 4, "{slot}");
        assert_eq!(mode(&sandbox.sessions().join(file)), 0o600, "{slot}");
    }
    assert_eq!(sandbox.session_files().len(), 3);
}

#[test]
fn a_new_question_in_a_slot_sets_aside_that_one_alone() {
    let (_server, sandbox) = numbered();
    for file in ["current.json", "current-tty2.json", "work.json"] {
        sandbox.write_bytes(file, stored(&["other", "terminal"]).to_string());
    }
    sandbox.write_bytes("current-tty1.json", stored(&["one", "two"]).to_string());
    let before = snapshot(&sandbox.sessions());
    let untouched = |now: &[Seen]| before.iter().filter(|file| now.contains(file)).count();

    in_slot(&sandbox, "tty1", &["three"]).success();
    assert_eq!(texts(&sandbox.session(ASIDE)), ["one", "two"]);
    assert_eq!(texts(&sandbox.session("current-tty1.json")), ["three", "answer 0"]);
    assert_eq!(untouched(&snapshot(&sandbox.sessions())), 3);

    // What follows wherever the named conversation goes on, no slot has a part in it.
    in_slot(&sandbox, "tty1", &["-s", "work", "more"]).success();
    assert_eq!(texts(&sandbox.session("work.json")).len(), 4);
    assert_eq!(texts(&sandbox.session("current-tty1.json")).len(), 2);
    assert_eq!(sandbox.session_files().len(), 5);
}

#[test]
fn a_slot_has_all_the_rules_of_the_current_conversation() {
    let conversation = |key: &str, value: Value| {
        let mut conversation = stored(&["one", "two", "three", "four"]);
        conversation["updated"] = json!("2999-01-01T00:00:00.000Z");
        conversation[key] = value;
        conversation.to_string()
    };
    for (what, text, variable, aside) in [
        ("another provider", conversation("provider", json!("groq")), ("Q_PAIRS", "20"), Some("session_")),
        ("another model", conversation("model", json!("m")), ("Q_MODEL", "n"), Some("session_")),
        ("idle", stored(&["one", "two"]).to_string(), ("Q_EXPIRE", "1h"), Some("session_")),
        ("another version", conversation("version", json!(2)), ("Q_PAIRS", "20"), Some(".json.unreadable")),
        ("the same", conversation("version", json!(1)), ("Q_PAIRS", "2"), None),
    ] {
        let (server, sandbox) = numbered();
        let sandbox = sandbox.env("Q_SESSION", "tty1").env(variable.0, variable.1);
        sandbox.write_bytes("current-tty1.json", &text);
        let outcome = sandbox.q(&["-f", "more"]).run();
        let sent = prompt(&server.request());
        let now = sandbox.session("current-tty1.json");
        let Some(aside) = aside else {
            outcome.success();
            assert!(sent.starts_with("Previous conversation:\nHuman: one\n"), "{what}: {sent}");
            assert_eq!(texts(&now), ["three", "four", "more", "answer 0"], "{what}");
            continue;
        };
        outcome.exit(0).stderr_contains("q: ");
        assert_eq!(sent, "more", "{what}");
        assert_eq!(texts(&now), ["more", "answer 0"], "{what}");
        let files = sandbox.session_files();
        let kept = files.iter().find(|name| name.starts_with("session_") && name.contains(aside));
        assert_eq!(sandbox.read_bytes(kept.expect("one set aside")), text.as_bytes(), "{what}");
    }
}

#[test]
fn a_slot_that_is_no_name_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    let long = "x".repeat(101);
    for slot in NO_NAMES.iter().chain([&long.as_str()]) {
        for arguments in [&["one"][..], &["-f", "one"], &[]] {
            let refused = sandbox.q(arguments).env("Q_SESSION", slot).stdin_open().run();
            refused.exit(2).stdout_is_empty().stderr_contains("Q_SESSION");
        }
    }
    assert!(server.requests().is_empty());
    assert_eq!(snapshot(&sandbox.state()), []);
}

#[test]
fn idle_slots_are_swept_and_what_has_a_name_is_not() {
    let (_server, sandbox) = numbered();
    for (file, days) in [
        ("current.json", 31),
        ("current-old.json", 31),
        ("current-new.json", 29),
        ("session_20250101000000.json", 31),
        ("session_20250101000001.json", 29),
        ("work.json", 3000),
    ] {
        sandbox.write_bytes(file, stored(&["one", "two"]).to_string());
        age(&sandbox.sessions().join(file), days);
    }
    in_slot(&sandbox, "tty1", &["one"]).success();
    let kept = ["current-new.json", "current-tty1.json", "current.json", "session_20250101000001.json", "work.json"];
    assert_eq!(sandbox.session_files(), kept);
}

#[test]
fn what_is_set_aside_today_is_kept_however_old_it_is() {
    for (file, slot, command) in [
        ("current.json", "", &["-f", "more"][..]),
        ("current.json", "", &["new"]),
        ("current-tty1.json", "tty1", &["new"]),
        ("work.json", "", &["--undo", "-s", "work"]),
    ] {
        let (_server, sandbox) = numbered();
        sandbox.write_bytes(file, stored(&["one", "two"]).to_string());
        age(&sandbox.sessions().join(file), 40);
        in_slot(&sandbox, slot, command).exit(0);
        in_slot(&sandbox, slot, &["another"]).success();
        assert_eq!(texts(&sandbox.session(ASIDE)), ["one", "two"], "{command:?}");
    }
}
