//! Confined commands: the question about one, system calls, descriptors, temporary directories, and kernels that cannot.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{case, in_foreground};
use crate::machine::{cannot_confine, lacks};
use crate::pty::Terminal;
use crate::sandbox::Sandbox;
use crate::server::Server;
use crate::times::wait_until;
use crate::toolserver;

const DIALECT: &Dialect = &DIALECTS[2];

/// A server of models that calls this tool once, and then answers.
fn model(tool: &'static str, arguments: Value) -> Server {
    Server::start(move |request, number| {
        if number > 0 {
            return (DIALECT.reply)(request, "the answer");
        }
        DIALECT.calling("", &[("call00001", tool, arguments.clone())])
    })
}

/// A sandbox in which `c__x` runs a script of a shell, confined to nothing but these lines.
fn with_script(script: &str, lines: &str) -> Sandbox {
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    let config =
        format!("[tools.c.x]\nrun = [\"sh\", \"-c\", {script:?}]\nreads = true\n{lines}\n");
    sandbox.config(&config);
    sandbox
}

/// The result of the call of `c__x`.
fn result(sandbox: &Sandbox) -> String {
    let server = model("c__x", json!({}));
    // Root could remove everything.
    let asked = DIALECT.q(sandbox, &server, &["-t", "c", "go"]);
    asked.obeying_modes().run().success();
    let conversation = sandbox.current();
    let call = &conversation["messages"][1]["steps"][0]["calls"][0];
    call["result"].as_str().expect("a result").to_owned()
}

/// The temporary directories that there are.
fn temporary(sandbox: &Sandbox) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(sandbox.home().join(".cache/q/tmp")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn a_request_for_approval_shows_to_what_a_command_is_confined() {
    if cannot_confine() {
        return;
    }
    for (confine, said) in [
        ("{}", "no files; no network"),
        ("{ read = [\"~/shop.db\"] }", "reads shop.db; no network"),
        (
            "{ read = [\"~/shop.db\", \"/usr\"], write = [\"~/out\"], network = true }",
            "reads shop.db, usr; writes out; network",
        ),
        (
            "{ read = [\"~/a\\u202eb/x\", \"~/shop.db/../out/x\"] }",
            "reads ~home/a\\u{202e}b/x, ~home/shop.db/../out/x; no network",
        ),
    ] {
        let _case = case(confine);
        let sandbox = Sandbox::new();
        for file in ["shop.db", "out/x", "a\u{202e}b/x"] {
            let file = sandbox.home().join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, "").expect("a file");
        }
        if confine.contains("..") {
            fs::remove_file(sandbox.home().join("shop.db")).expect("a file");
            fs::create_dir(sandbox.home().join("shop.db")).expect("a directory");
        }
        sandbox.config(&format!(
            "[tools.c.x]\nrun = [\"touch\", \"{{f}}\"]\nconfine = {confine}"
        ));
        let server = model("c__x", json!({"f": "made"}));
        let terminal = Terminal::new(500);
        let running = in_foreground(&sandbox, &terminal, &["-t", "c", "go"])
            .speaks(DIALECT, &server)
            .spawn();
        let said = said.replace("~home", &sandbox.home().display().to_string());
        let question = format!(
            "q: c__x wants to run:\r\n   f = made\r\nq: confined: {said}\r\n\
             q: run c__x? [y]es, [N]o, [a]lways"
        );
        terminal.wait_for(&question, 0);
        terminal.type_in("y\n");
        running.wait().exit(0);
        assert!(!sandbox.home().join("made").exists());
    }
}

/// Tries system calls. Prints the number of the error of each, or 0.
const CALLS: &str = r#"
import ctypes, fcntl, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(number, *arguments) == -1 else 0
def error(function, *arguments):
    try:
        function(*arguments)
        return 0
    except OSError as error:
        return error.errno
pair = lambda kind: error(socket.socketpair, socket.AF_UNIX, kind)
x86 = os.uname().machine == "x86_64"
own = lambda request: error(fcntl.ioctl, socket.socketpair()[0], request, struct.pack("i", os.getpid()))
key, shm, getpid, io_uring, clone = (248, 29, 39, 425, 56) if x86 else (217, 194, 172, 425, 220)
open("f", "w").close()
file = os.open("f", os.O_RDWR)
found = {
    "inet": error(socket.socket, socket.AF_INET, socket.SOCK_STREAM),
    "inet6": error(socket.socket, socket.AF_INET6, socket.SOCK_DGRAM),
    "netlink": error(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW),
    "unix": error(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM),
    "packet": error(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
    "vsock": error(socket.socket, 40, socket.SOCK_STREAM),
    "pair of streams": pair(socket.SOCK_STREAM),
    "pair of packets": pair(socket.SOCK_SEQPACKET),
    "pair of datagrams": pair(socket.SOCK_DGRAM),
    "raw pair": pair(socket.SOCK_RAW),
    "pair with flags": pair(socket.SOCK_DGRAM | socket.SOCK_CLOEXEC),
    "keys": call(key, b"user", b"q", b"x", 1, -3),
    "shared memory": call(shm, 0, 4096, 0o600 | 0o1000),
    "io_uring": call(io_uring, 1, ctypes.create_string_buffer(256)),
    "a namespace": call(clone, 0x10000000, 0, 0, 0, 0),
    "clone3": call(435, 0, 0),
    "x32": call(getpid | 0x40000000) if x86 else 1,
    "x32 without a number": call(0x40000fff) if x86 else 1,
    "mode by path": error(os.chmod, "f", 0o600),
    "mode of an open file": error(os.fchmod, file, 0o600),
    "times by path": error(os.utime, "f"),
    "times of an open file": error(os.utime, file),
    "attribute by path": error(os.setxattr, "f", "user.q", b"x"),
    "attributes": error(os.listxattr, "f"),
    "attributes of a link": error(lambda: os.listxattr("f", follow_symlinks=False)),
    "an attribute": error(os.getxattr, "f", "user.q"),
    "that of a link": error(lambda: os.getxattr("f", "user.q", follow_symlinks=False)),
    "attributes of an open file": error(os.listxattr, file),
    "limit of its own": call(302 if x86 else 261, 0, 4, ctypes.create_string_buffer(16), 0),
    "limit of others": call(302 if x86 else 261, os.getppid(), 4, ctypes.create_string_buffer(16), 0),
    "owner of a socket": own(0x8901),
    "owner by another request": own(0x8902),
    "signal by a descriptor": call(424, file, 0, 0, 0),
    "a file for ever": error(fcntl.ioctl, file, 0x40806685, bytearray(128)),
    "an encrypted directory": error(fcntl.ioctl, file, 0x800c6613, bytearray(12)),
    "a subvolume": error(fcntl.ioctl, file, 0x5000940e, bytearray(4096)),
    "a snapshot": error(fcntl.ioctl, file, 0x50009417, bytearray(4096)),
    "no subvolume": error(fcntl.ioctl, file, 0x5000940f, bytearray(4096)),
    "shared blocks": 2 * (error(fcntl.ioctl, file, 0x40049409, file) in (1, 38)),
    "a thread": 0,
}
import threading
thread = threading.Thread(target=lambda: None)
thread.start(); thread.join()
print(",".join(name for name, number in found.items() if number == 1))
print(",".join(name for name, number in found.items() if number == 0))
print(",".join(f"{name} {number}" for name, number in found.items() if number > 1))
"#;

#[test]
fn system_calls_around_the_confinement_are_refused() {
    if cannot_confine() || lacks("python3", "python3 --version") {
        return;
    }
    let refused = "packet,vsock,pair of datagrams,raw pair,pair with flags,keys,shared memory,io_uring,a namespace,x32,\
                   x32 without a number,mode by path,times by path,attribute by path,limit of others,owner of a socket,\
                   owner by another request,signal by a descriptor,a file for ever,an encrypted directory,a subvolume,a snapshot,no subvolume";
    let allowed = "pair of streams,pair of packets,mode of an open file,times of an open file,attributes of an open file,limit of its own,\
                   shared blocks,a thread";
    let otherwise =
        "clone3 38,attributes 95,attributes of a link 95,an attribute 95,that of a link 95";
    for (confine, expected) in [
        (
            "{ read = [\"~/calls.py\"] }",
            format!("inet,inet6,netlink,unix,{refused}\n{allowed}\n{otherwise}\n"),
        ),
        (
            "{ read = [\"~/calls.py\"], network = true }",
            format!("unix,{refused}\ninet,inet6,netlink,{allowed}\n{otherwise}\n"),
        ),
    ] {
        let _case = case(confine);
        let script = "exec python3 \"$FILE\"";
        let sandbox = with_script(script, &format!("confine = {confine}"));
        let file = sandbox.home().join("calls.py");
        fs::write(&file, CALLS).expect("a file");
        let config = fs::read_to_string(sandbox.config_file()).expect("a configuration");
        sandbox.config(&format!("{config}env = {{ FILE = {file:?} }}\n"));
        assert_eq!(result(&sandbox), expected);
    }
}

#[test]
fn a_command_that_reads_proc_sees_nothing_of_the_memory_of_q() {
    if cannot_confine() {
        return;
    }
    // The keys of q are in its environment. Root may list which files are open, but not what they are.
    let script = "for n in $(seq 20); do \
                  tr '\\0' '\\n' </proc/$PPID/environ | cut -c1-14 | grep ^GEMINI_API_KEY; \
                  cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ | tr '\\0' '\\n' | cut -c1-14 | grep ^GEMINI_API_KEY; \
                  readlink /proc/$PPID/task/*/fd/0 /proc/$PPID/task/*/cwd; done 2>/dev/null; \
                  cat /proc/self/stat >/dev/null && echo seen";
    let sandbox = with_script(script, "confine = { read = [\"/proc\"] }");
    assert_eq!(result(&sandbox), "seen\n");
}

#[test]
fn files_that_q_inherits_open_are_closed_in_commands() {
    let script = "for n in 3 7 9; do cat <&$n; done 2>&1; echo done";
    let mut kinds = vec![""];
    if !cannot_confine() {
        kinds.push("confine = {}");
    }
    for lines in kinds {
        let _case = case(lines);
        let sandbox = with_script(script, lines);
        sandbox.write_home("private", "private");
        let server = model("c__x", json!({}));
        let opened = "exec 3<private 7<private 9<private; q -t c go";
        let asked = sandbox.shell(opened).speaks(DIALECT, &server);
        asked.run().success();
        let conversation = sandbox.current();
        let call = &conversation["messages"][1]["steps"][0]["calls"][0];
        let text = call["result"].as_str().expect("a result");
        assert!(!text.contains("private") && text.contains("done"), "{text}");
    }
}

#[test]
fn a_temporary_directory_is_removed_whatever_is_in_it() {
    if cannot_confine() {
        return;
    }
    let script = "mkdir -m 0 none; mkdir -p a/b; echo x >a/b/c; ln -s \"$OUT\" link; ln -s \"$OUT\" a/link; \
                  ln -s \"$OUT/kept\" file; i=0; p=.; while [ $i -lt 300 ]; do mkdir $p/d && cd $p/d; i=$((i+1)); done; \
                  mkfifo pipe; mkdir -p ../ro/x; mkdir -m 500 ../ro/r; echo made";
    let sandbox = with_script(script, "confine = { write = [\"~/out\"] }");
    let out = sandbox.home().join("out");
    fs::create_dir(&out).expect("a directory");
    fs::write(out.join("kept"), "kept").expect("a file");
    let config = fs::read_to_string(sandbox.config_file()).expect("a configuration");
    sandbox.config(&format!("{config}env = {{ OUT = {out:?} }}\n"));
    assert_eq!(result(&sandbox), "made\n");
    assert_eq!(temporary(&sandbox), Vec::<PathBuf>::new());
    assert_eq!(
        fs::read_to_string(out.join("kept")).expect("a file"),
        "kept"
    );
}

#[test]
fn a_temporary_directory_is_removed_when_q_ends_or_else_by_the_sweep() {
    if cannot_confine() {
        return;
    }
    let script = "mkdir -m 0 none; ln -s \"$HOME/../../../..\" up; echo x >ready; \
                  while [ -e \"$HOME/ready\" ]; do sleep 1; done";
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let _case = case(signal);
        let sandbox = with_script(script, "confine = {}");
        let server = model("c__x", json!({}));
        let mut running = DIALECT.q(&sandbox, &server, &["-t", "c", "go"]).spawn();
        wait_until(|| {
            temporary(&sandbox)
                .iter()
                .any(|path| path.join("ready").exists())
        });
        let swept = sandbox.state().join("q/swept");
        let sweep = || {
            fs::create_dir_all(sandbox.state().join("q")).expect("a directory");
            fs::write(&swept, "").expect("a file");
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(90_000);
            let file = fs::File::options()
                .write(true)
                .open(&swept)
                .expect("a file");
            file.set_modified(old).expect("a time");
            let server = Server::start(|request, _| (DIALECT.reply)(request, "hello"));
            DIALECT.q(&sandbox, &server, &["hi"]).run().success();
        };
        sweep();
        assert_eq!(temporary(&sandbox).len(), 1, "it is in use");
        running.signal(signal);
        running.wait().killed_by(signal);
        if signal == libc::SIGKILL {
            assert_eq!(temporary(&sandbox).len(), 1);
            sweep();
        }
        assert_eq!(temporary(&sandbox).len(), 0);
        assert!(sandbox.config_file().exists());
    }
}

#[test]
fn a_confined_server_works_and_its_directory_is_removed() {
    if cannot_confine() {
        return;
    }
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    let log = sandbox.home().join("log");
    fs::create_dir(&log).expect("a directory");
    let log = log.join("db.log").display().to_string();
    let section = toolserver::section_with_log(
        "db",
        "plain",
        &log,
        "confine = { write = [\"~/log\"] }\nallow = [\"*\"]",
    );
    sandbox.config(&section);
    let server = model("db__write", json!({"text": "x"}));
    let asked = DIALECT
        .q(&sandbox, &server, &["-v", "-t", "db", "go"])
        .run();
    asked.exit(0);
    asked.stderr_contains("db__write is confined: writes ");
    let conversation = sandbox.current();
    let call = &conversation["messages"][1]["steps"][0]["calls"][0];
    assert!(call["error"].is_null(), "{call}");
    assert_eq!(temporary(&sandbox).len(), 0);
}

/// Where the kernel has no Landlock, nothing that is to be confined runs.
#[test]
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn a_confined_command_does_not_run_where_the_kernel_cannot_confine_it() {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    const LANDLOCK: [i64; 3] = [444, 445, 446];
    for (numbers, error, said) in [
        (&LANDLOCK[..], libc::ENOSYS, "this kernel has no Landlock"),
        (&LANDLOCK[..], libc::EPERM, "Landlock is forbidden here"),
        (&LANDLOCK[..], libc::EACCES, "Landlock is forbidden here"),
        (&LANDLOCK[..], libc::EIO, "Landlock refused: Input/output"),
        (&LANDLOCK[..], libc::EOPNOTSUPP, "Landlock is disabled"),
        (
            &[317, 277],
            libc::EINVAL,
            "the kernel takes no seccomp filter",
        ),
        (
            &[libc::SYS_capset],
            libc::EINVAL,
            "the kernel takes no rights from it",
        ),
    ] {
        let _case = case(said);
        let rules: BTreeMap<i64, _> = numbers.iter().map(|number| (*number, vec![])).collect();
        let error = SeccompAction::Errno(error.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().expect("a machine");
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, arch);
        let filter: BpfProgram = filter.expect("a filter").try_into().expect("a filter");
        let outcomes = std::thread::spawn(move || {
            apply_filter(&filter).expect("a filter");
            let sandbox = with_script("touch \"$MARK\"", "confine = {}");
            let mark = sandbox.home().join("ran");
            let config = fs::read_to_string(sandbox.config_file()).expect("a configuration");
            sandbox.config(&format!("{config}env = {{ MARK = {mark:?} }}\n"));
            let server = model("c__x", json!({}));
            let run = |arguments: &[&str]| DIALECT.q(&sandbox, &server, arguments).run();
            run(&["-t", "c", "--yes", "go"])
                .exit(2)
                .stderr_contains(&format!(
                    "q: tools.c.x: it cannot be confined, so it does not run: {said}"
                ));
            run(&["--status"]).success().stdout_contains(said);
            run(&["--list-tools"]).exit(0).stderr_contains(said);
            assert!(!mark.exists(), "it ran unconfined");
            let server = Server::start(|request, _| (DIALECT.reply)(request, "hello"));
            DIALECT.q(&sandbox, &server, &["hi"]).run().success();
        });
        outcomes.join().expect("no panic");
    }
}
