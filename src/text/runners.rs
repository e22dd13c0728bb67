//! Which commands run code that somebody gives them (pure).

use super::argv::Argv;

/// Shells.
const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "lksh", "loksh", "mksh",
    "murex", "nu", "oksh", "osh", "pwsh", "rbash", "rksh", "rzsh", "sash", "sh", "tcsh", "toybox",
    "xonsh", "yash", "ysh", "zsh",
];

/// Interpreters and compilers, which run the program that they are given.
const INTERPRETERS: &[&str] = &[
    "asy",
    "awk",
    "babashka",
    "bb",
    "bpftrace",
    "bun",
    "clisp",
    "clj",
    "clojure",
    "crystal",
    "csi",
    "d8",
    "dart",
    "dc",
    "deno",
    "ecl",
    "elixir",
    "erl",
    "escript",
    "expect",
    "gawk",
    "gdb",
    "gforth",
    "ghc",
    "ghci",
    "gnuplot",
    "goawk",
    "gprolog",
    "groovy",
    "gs",
    "gsed",
    "guile",
    "iex",
    "ipython",
    "irb",
    "java",
    "jjs",
    "jruby",
    "jshell",
    "julia",
    "jython",
    "kotlin",
    "latex",
    "lldb",
    "lua",
    "luajit",
    "lualatex",
    "luatex",
    "m4",
    "matlab",
    "mawk",
    "maxima",
    "micropython",
    "mongo",
    "mongosh",
    "mono",
    "mysqlsh",
    "nawk",
    "nim",
    "node",
    "nodejs",
    "ocaml",
    "octave",
    "octave-cli",
    "original-awk",
    "osascript",
    "pdb",
    "pdflatex",
    "pdftex",
    "perl",
    "php",
    "pry",
    "psysh",
    "pypy",
    "python",
    "qjs",
    "R",
    "racket",
    "raku",
    "Rscript",
    "ruby",
    "runghc",
    "runhaskell",
    "sage",
    "sbcl",
    "scala",
    "scheme",
    "scilab",
    "sed",
    "stap",
    "swift",
    "swipl",
    "tclsh",
    "tex",
    "ts-node",
    "tsx",
    "utop",
    "wish",
    "xelatex",
    "xetex",
    "zig",
];

/// Editors and pagers, which have commands that run programs.
const EDITORS: &[&str] = &[
    "ed",
    "emacs",
    "emacsclient",
    "ex",
    "gvim",
    "helix",
    "hx",
    "jed",
    "joe",
    "kak",
    "less",
    "micro",
    "more",
    "nano",
    "neovim",
    "nvim",
    "pico",
    "rnano",
    "rvim",
    "vi",
    "vim",
    "vimdiff",
    "vimx",
];

/// Programs whose arguments are, or name, another program.
const WRAPPERS: &[&str] = &[
    "at",
    "batch",
    "bsdtar",
    "bwrap",
    "capsh",
    "cgexec",
    "choom",
    "chpst",
    "chroot",
    "chrt",
    "cpulimit",
    "crontab",
    "dbus-run-session",
    "direnv",
    "doas",
    "dumb-init",
    "entr",
    "env",
    "fakechroot",
    "fakeroot",
    "faketime",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flatpak",
    "flock",
    "fzf",
    "gosu",
    "gtar",
    "gxargs",
    "hyperfine",
    "ionice",
    "ltrace",
    "mpiexec",
    "mpirun",
    "multitime",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pexec",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "rlwrap",
    "rr",
    "run-parts",
    "runcon",
    "runuser",
    "sbatch",
    "schroot",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "srun",
    "ssh-agent",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "sudo-rs",
    "systemd-inhibit",
    "systemd-run",
    "tar",
    "taskset",
    "tcpdump",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "trickle",
    "tsocks",
    "uftrace",
    "unbuffer",
    "unshare",
    "valgrind",
    "viddy",
    "watch",
    "watchexec",
    "wine",
    "xargs",
    "xterm",
    "xvfb-run",
    "zellij",
];

/// Builders and package managers, whose files and packages are programs that they run.
const BUILDERS: &[&str] = &[
    "ant",
    "asdf",
    "bazel",
    "brew",
    "bundle",
    "bunx",
    "cabal",
    "cargo",
    "cmake",
    "composer",
    "conda",
    "corepack",
    "dotnet",
    "gem",
    "gmake",
    "go",
    "gradle",
    "gradlew",
    "guix",
    "hatch",
    "just",
    "lein",
    "make",
    "mamba",
    "maven",
    "meson",
    "micromamba",
    "mise",
    "mix",
    "msbuild",
    "mvn",
    "ninja",
    "nix",
    "nix-build",
    "nix-shell",
    "nox",
    "npm",
    "npx",
    "pdm",
    "pip",
    "pipx",
    "pixi",
    "pnpm",
    "pnpx",
    "poetry",
    "pyenv",
    "rake",
    "rbenv",
    "rustup",
    "rye",
    "sbt",
    "scons",
    "stack",
    "tox",
    "uv",
    "uvx",
    "volta",
    "yarn",
    "yarnpkg",
];

/// Programs that run others in containers, clusters and machines.
const CONTAINERS: &[&str] = &[
    "ansible",
    "ansible-playbook",
    "apptainer",
    "buildah",
    "chef-client",
    "crictl",
    "crun",
    "ctr",
    "distrobox",
    "docker",
    "docker-compose",
    "incus",
    "k3s",
    "kubectl",
    "lxc",
    "lxc-attach",
    "lxc-execute",
    "machinectl",
    "microk8s",
    "minikube",
    "multipass",
    "nerdctl",
    "oc",
    "podman",
    "podman-compose",
    "puppet",
    "runc",
    "salt",
    "singularity",
    "systemd-nspawn",
    "terraform",
    "tofu",
    "toolbox",
    "vagrant",
    "wsl",
];

/// Programs that reach a shell on another machine, or through a connection.
const REMOTE: &[&str] = &[
    "adb",
    "autossh",
    "clush",
    "dbclient",
    "ftp",
    "lftp",
    "mosh",
    "nc",
    "ncat",
    "netcat",
    "parallel-ssh",
    "pdsh",
    "pssh",
    "rexec",
    "rlogin",
    "rsh",
    "rsync",
    "scp",
    "sftp",
    "socat",
    "ssh",
    "sshpass",
    "telnet",
];

/// All of them, by the reason why they run what somebody gives them.
const RUNNERS: &[&[&str]] = &[
    SHELLS,
    INTERPRETERS,
    EDITORS,
    WRAPPERS,
    BUILDERS,
    CONTAINERS,
    REMOTE,
];

/// Returns the element of a command that names a program which runs code that somebody gives it: the first element, or a later
/// one that is a bare word or the absolute path of a program. Where the code is, is not guessed. `file` finds the program's file
/// behind all links: that of the first element, or of a path.
pub fn runner(argv: &Argv, file: impl Fn(&str) -> Option<String>) -> Option<&str> {
    let run = &argv.run;
    for (index, element) in run.iter().enumerate() {
        let is_path = element.contains('/');
        let found = if index == 0 || is_path {
            file(element)
        } else {
            None
        };
        let may_be_program = index == 0 || !is_path || found.is_some();
        let arguments = &run[index + 1..];
        let is_runner = |program: &str| {
            runs_code(program, arguments) || runs_code_of_model(program, argv, index)
        };
        if may_be_program && is_runner(element) {
            return Some(element);
        }
        if let Some(found) = found
            && !MANY_IN_ONE.contains(&name_of(&found))
            && is_runner(&found)
        {
            return Some(element);
        }
    }
    None
}

/// Programs that act by the name that they are called by: what is a link to one is not called that.
const MANY_IN_ONE: &[&str] = &["busybox", "toybox"];

/// Whether a program runs code that somebody gives it, with these arguments.
fn runs_code(program: &str, arguments: &[String]) -> bool {
    let name = name_of(program);
    // The configuration of git can name programs, and so can its directory of programs.
    let is_configured = |argument: &String| {
        let mut options = ["-c", "--config-env", "--exec-path="].into_iter();
        options.any(|option| argument.starts_with(option))
    };
    // A digit at the end of a name may be a version, or belong to the name: m4.
    let full = file_name(program);
    let mut runners = RUNNERS.iter();
    runners.any(|group| group.contains(&name) || group.contains(&full))
        || (name == "git" && arguments.iter().any(is_configured))
}

/// Programs that run others if an option says so: git and its brothers, those that search, sort, pack, show and load, and
/// compilers with plugins.
const RUNNERS_BY_OPTION: &[&str] = &[
    "ack",
    "ag",
    "apt",
    "apt-get",
    "aptitude",
    "aria2c",
    "bat",
    "batcat",
    "c++",
    "cc",
    "clang",
    "clang++",
    "cpio",
    "delta",
    "diff3",
    "dpkg",
    "exiftool",
    "g++",
    "gcc",
    "gh",
    "git",
    "gpg",
    "gsort",
    "hg",
    "ld",
    "logrotate",
    "man",
    "mpv",
    "mutt",
    "nmap",
    "openssl",
    "pandoc",
    "psql",
    "rg",
    "rpm",
    "sdiff",
    "sort",
    "split",
    "ssh-keygen",
    "svn",
    "tshark",
    "wget",
    "yt-dlp",
    "zip",
];

/// Clients of databases that have commands of their own, which run programs, among the SQL that they are given; and those of
/// them that have none with the option -safe.
const SQL_CLIENTS: &[&str] = &["duckdb", "mariadb", "mysql", "sqlite", "sqlite3"];
const SAFE_SQL_CLIENTS: &[&str] = &["duckdb", "sqlite", "sqlite3"];

/// Programs whose option -e is followed by a pattern.
const PATTERN_AFTER_E: &[&str] = &["git", "rg"];

/// Options of git itself whose value is the next argument.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--attr-source",
    "--super-prefix",
    "--config-env",
];

/// Whether a program, the element at `index`, runs code because of what the model may write in this command.
fn runs_code_of_model(program: &str, argv: &Argv, index: usize) -> bool {
    let name = name_of(program);
    let places = index + 1..argv.run.len();
    let takes_patterns = PATTERN_AFTER_E.contains(&name);
    let writes_options = places
        .clone()
        .any(|at| argv.may_be_option(at, index, takes_patterns));
    let is_safe = || {
        let mut words = argv.run[index + 1..].iter();
        words.any(|word| matches!(word.as_str(), "-safe" | "--safe"))
    };
    let full = file_name(program);
    let has = |programs: &[&str]| programs.contains(&name) || programs.contains(&full);
    if has(SQL_CLIENTS) {
        return writes_options || !has(SAFE_SQL_CLIENTS) || !is_safe();
    }
    if writes_options && has(RUNNERS_BY_OPTION) {
        return true;
    }
    match name {
        // A setting can be an alias, which is a command.
        "git" => argv.begins_freely(first_word(argv, index)),
        // Its own commands begin with a backslash.
        "psql" => {
            let begins = |at: usize| {
                let sets_variable = argv.run[at].starts_with("--set=");
                argv.begins_freely(at) || (!sets_variable && argv.value_begins_freely(at))
            };
            argv.has_free_stdin() || places.into_iter().any(begins)
        }
        // The value of -e is itself a program, or a setting that names one.
        "hg" | "wget" => places
            .into_iter()
            .any(|at| argv.run[at - 1] == "-e" && argv.begins_freely(at)),
        _ => false,
    }
}

/// Returns the place of the first argument of git that is no option, which is what git is to do.
fn first_word(argv: &Argv, index: usize) -> usize {
    let mut at = index + 1;
    while let Some(element) = argv.run.get(at)
        && element.starts_with('-')
    {
        let has_value = OPTIONS_WITH_VALUE.contains(&element.as_str());
        at += if has_value { 2 } else { 1 };
    }
    at
}

/// Returns the name of a program without its directory, and without digits and dots at its end.
fn name_of(program: &str) -> &str {
    file_name(program).trim_end_matches(|last: char| last.is_ascii_digit() || last == '.')
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::short_form::{FieldKind, ShortField};
    use crate::text::table::rows;

    /// A command in which the model writes `{x}`, `{l}`, a list, and `{n}`, a number.
    fn command(line: &str, dashes: bool) -> Argv {
        let field = |name: &str, kind| {
            let mut field = ShortField::text(name);
            field.kind = kind;
            field
        };
        let (run, stdin) = line.split_once(" < ").unwrap_or((line, ""));
        Argv {
            run: run.split(' ').map(|word| word.replace('␠', " ")).collect(),
            stdin: Some(stdin.to_owned()),
            inputs: vec![
                field("x", FieldKind::Text),
                field("l", FieldKind::List),
                field("n", FieldKind::Integer),
            ],
            dashes,
        }
    }

    #[test]
    fn a_program_runs_code_where_the_model_may_write_the_option_for_it() {
        for [line, by_dashes, without] in rows(
            "
            git {l}                        | git     | git
            git {x} a                      | git     | git
            git -P {x}                     | git     | git
            git -C {x} log                 | git     | -
            git --git-dir /a {l}           | git     | git
            git log {l}                    | git     | -
            git log {l} -- a               | git     | -
            git log -n{n} {x}              | git     | -
            git log {n}                    | -       | -
            git log a{x}                   | -       | -
            git log --since={x}            | -       | -
            git grep -e {x} -- {l}         | -       | -
            git grep -e {l}                | git     | -
            git grep -n {x}                | git     | -
            wrap git log {x}               | git     | -
            /bin/config log {x}            | /bin/config | -
            rg -n -e {x} notes             | -       | -
            rg -n {x}                      | rg      | -
            sort {l}                       | sort    | -
            cat {l}                        | -       | -
            date {x}                       | -       | -
            sqlite3 shop.db {x}            | sqlite3 | sqlite3
            sqlite3 shop.db ␠{x}           | sqlite3 | sqlite3
            sqlite3 -safe shop.db ␠{x}     | -       | -
            sqlite3 -safe shop.db {x}      | sqlite3 | -
            duckdb -c {x}                  | duckdb  | duckdb
            mysql -safe -e ␠{x}            | mysql   | mysql
            psql -c {x}                    | psql    | psql
            psql -c ␠{x}                   | -       | -
            psql --command={x}             | psql    | psql
            split -e {x} data              | split   | -
            hg pull -e {x}                 | hg      | hg
            sqlite3 --safe shop.db ␠{x}    | -       | -
            psql --set=query={x} < :query  | -       | -
            psql < SELECT␠{x}              | psql    | psql",
        ) {
            let file = |path: &str| (path == "/bin/config").then(|| "/usr/bin/git".to_owned());
            for (dashes, expected) in [(true, by_dashes), (false, without)] {
                let argv = command(line, dashes);
                let found = runner(&argv, file).unwrap_or_default();
                assert_eq!(found, expected, "{line} {dashes}");
            }
        }
    }

    #[test]
    fn a_program_that_runs_code_is_found_anywhere_in_a_command() {
        let found = |line: &str| {
            let argv = command(line, false);
            let file = |path: &str| match path {
                "/bin/link" | "link" => Some("/usr/bin/bash".to_owned()),
                "/bin/config" => Some("/usr/bin/git".to_owned()),
                "/bin/cat" | "cat" => Some("/bin/busybox".to_owned()),
                _ => path.starts_with("/bin/").then(|| path.to_owned()),
            };
            runner(&argv, file).map(str::to_owned)
        };
        let names = "sh bash dash zsh fish ksh rbash busybox pwsh tclsh python pypy perl ruby node nodejs deno bun php lua java \
                     Rscript awk gawk mawk nawk sed env nice nohup timeout setsid stdbuf xargs parallel find make tar watch strace \
                     gdb ssh sudo doas su chroot unshare systemd-run docker podman npx npm uv uvx pipx \
                     ash csh tcsh mksh yash nu elvish xonsh toybox luajit julia guile expect osascript tsx ts-node nsenter runuser \
                     pkexec ionice chrt taskset flock bwrap firejail script time \
                     fd fdfind vim vi nvim ex ed emacs emacsclient nano less R octave gnuplot ghci raku swipl erl iex jshell dc gs \
                     entr watchexec tmux screen valgrind ltrace perf hyperfine capsh setpriv fakeroot proot direnv at \
                     kubectl nerdctl lxc systemd-nspawn cargo go rake cmake ninja just mvn gradle pip pnpm yarn poetry nix-shell \
                     scp sftp rsync mosh telnet socat ncat ansible terraform";
        for name in names.split(' ') {
            for form in [
                "{}",
                "/gone/{}",
                "{}3",
                "{}5.36.0",
                "/gone/{}3.",
                "/bin/{}1",
            ] {
                let program = form.replace("{}", name);
                let expected = Some(program.clone());
                assert_eq!(found(&format!("{program} x")), expected);
                let later = found(&format!("wrap -v {program} x"));
                let is_found = !program.starts_with("/gone");
                assert_eq!(later, expected.filter(|_| is_found));
            }
        }
        for (line, program) in [
            // A digit may be a part of the name.
            ("m4 x", Some("m4")),
            ("wrap /bin/m4 x", Some("/bin/m4")),
            ("m x", None),
            ("git -c a=b grep x", Some("git")),
            ("/usr/bin/git grep -c x", Some("/usr/bin/git")),
            ("wrap git -c a=b x", Some("git")),
            ("git -ca.b=c grep x", Some("git")),
            ("git --config-env=a=b grep x", Some("git")),
            ("git --config-env a=b grep x", Some("git")),
            ("git --exec-path=/x grep x", Some("git")),
            ("git grep x", None),
            ("git log --cc --exec-path", None),
            ("link x", Some("link")),
            ("/bin/link x", Some("/bin/link")),
            ("wrap /bin/link x", Some("/bin/link")),
            ("wrap link x", None),
            ("/bin/config -c a=b x", Some("/bin/config")),
            ("/bin/config x", None),
            ("cat x", None),
            ("wrap /bin/cat x", None),
            ("wrap -c git x", None),
            ("/bin/wrap x", None),
            ("rg -e sh-like /home/sh", None),
            ("wrap --shell=sh -sh SH ./sh bin/sh sh.py shx 3", None),
            ("wrap", None),
        ] {
            assert_eq!(found(line).as_deref(), program, "{line}");
        }
    }
}
