//! Decides which commands run code that somebody gives them (pure).

mod programs;

use self::programs::{
    MANY_IN_ONE, PATTERN_AFTER_E, PROGRAM_OPTIONS, READERS, RUNNERS, RUNNERS_BY_OPTION,
    SAFE_SQL_CLIENTS, SQL_CLIENTS, SURE_RUNNERS, WORDS_OF_OTHERS, name_of,
};
use super::argv::Argv;
use super::short_form::{FieldKind, ShortField};

/// Returns the element of a command that names a program which runs code that somebody gives it: the first element, or a later
/// one that is a bare word or the absolute path of a program. Where the code is, is not guessed. `file` finds the program's file
/// behind all links: that of the first element, or of a path.
pub fn runner(argv: &Argv, file: impl Fn(&str) -> Option<String>) -> Option<&str> {
    let takes_words = takes_words(argv);
    for (index, element) in argv.run.iter().enumerate() {
        let is_runner = if index == 0 {
            is_runner(element, argv, index) || is_linked_runner(file(element), argv, index)
        } else if element.contains('/') {
            let found = file(element);
            found.is_some() && is_runner(element, argv, index)
                || is_linked_runner(found, argv, index)
        } else if takes_words || WORDS_OF_OTHERS.contains(element) {
            is_sure_runner(element, argv, index)
        } else {
            is_runner(element, argv, index)
        };
        if is_runner {
            return Some(element);
        }
    }
    None
}

/// Whether the words of a command are no programs, because its own program runs none: `go` in `rg -t go {x}`.
fn takes_words(argv: &Argv) -> bool {
    let names_program = |element: &String| PROGRAM_OPTIONS.contains(&element.as_str());
    let program = argv.run.first();
    program.is_some_and(|program| READERS.contains(program)) && !argv.run.iter().any(names_program)
}

/// Whether a program, the element at `index`, runs code that somebody gives it.
fn is_runner(program: &str, argv: &Argv, index: usize) -> bool {
    RUNNERS.iter().any(|group| group.contains(program))
        || is_configured_git(program, argv, index)
        || runs_code_of_model(program, argv, index)
}

/// Whether the file behind the links of the element at `index` does.
fn is_linked_runner(file: Option<String>, argv: &Argv, index: usize) -> bool {
    file.is_some_and(|file| !MANY_IN_ONE.contains(&file) && is_runner(&file, argv, index))
}

/// Whether a word, the element at `index`, is the name of a program that runs code, and hardly ever anything else.
fn is_sure_runner(word: &str, argv: &Argv, index: usize) -> bool {
    SURE_RUNNERS.iter().any(|group| group.contains(word)) || is_configured_git(word, argv, index)
}

/// Whether a program is git with an option that may name programs: by its configuration, or by its directory of programs.
fn is_configured_git(program: &str, argv: &Argv, index: usize) -> bool {
    let is_option = |argument: &String| {
        let mut options = ["-c", "--config-env", "--exec-path="].into_iter();
        options.any(|option| argument.starts_with(option))
    };
    name_of(program) == "git" && argv.run[index + 1..].iter().any(is_option)
}

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
    let mut places = index + 1..argv.run.len();
    let takes_patterns = PATTERN_AFTER_E.contains(program);
    let writes_options = places
        .clone()
        .any(|at| may_be_option(argv, at, index, takes_patterns));
    if SQL_CLIENTS.contains(program) {
        return writes_options || !is_safe_client(program, argv, index);
    }
    if writes_options && RUNNERS_BY_OPTION.contains(program) {
        return true;
    }
    match name_of(program) {
        // A setting can be an alias, which is a command.
        "git" => begins_freely(argv, first_word(argv, index)),
        // Its own commands begin with a backslash.
        "psql" => has_free_stdin(argv) || places.any(|at| begins_psql_command(argv, at)),
        // The value of -e is itself a program, or a setting that names one.
        "hg" | "wget" => places.any(|at| argv.run[at - 1] == "-e" && begins_freely(argv, at)),
        _ => false,
    }
}

/// Whether the client of a database, the element at `index`, is told to have no commands that run programs.
fn is_safe_client(program: &str, argv: &Argv, index: usize) -> bool {
    let mut words = argv.run[index + 1..].iter();
    SAFE_SQL_CLIENTS.contains(program)
        && words.any(|word| matches!(word.as_str(), "-safe" | "--safe"))
}

/// Whether the model may write how an argument of psql begins that psql may read as a command. The value of a variable is none.
fn begins_psql_command(argv: &Argv, at: usize) -> bool {
    let sets_variable = argv.run[at].starts_with("--set=");
    begins_freely(argv, at) || (!sets_variable && value_begins_freely(argv, at))
}

/// Whether the model may write an option as the element at `at`, which is an argument of the program at `index`. After `--` there
/// are none. `takes_patterns` says that what follows -e is its value, as for grep.
fn may_be_option(argv: &Argv, at: usize, index: usize, takes_patterns: bool) -> bool {
    let Some(field) = free_beginning(argv, &argv.run[at]) else {
        return false;
    };
    let before = &argv.run[index + 1..at];
    let follows_e = before.last().is_some_and(|last| last == "-e");
    let is_value = takes_patterns && follows_e && field.kind != FieldKind::List;
    let is_after_options = before.iter().any(|element| element == "--");
    argv.dashes && !is_value && !is_after_options
}

/// Whether the element at `at` may begin with any text of the model's.
fn begins_freely(argv: &Argv, at: usize) -> bool {
    let element = argv.run.get(at).map_or("", String::as_str);
    free_beginning(argv, element).is_some()
}

/// Whether the value that the element at `at` gives to a long option may begin with any text of the model's.
fn value_begins_freely(argv: &Argv, at: usize) -> bool {
    let value = argv.run[at].split_once('=');
    value.is_some_and(|(option, value)| {
        option.starts_with("--") && free_beginning(argv, value).is_some()
    })
}

/// Returns the argument that a text begins with, if the model may write any text for it.
fn free_beginning<'a>(argv: &'a Argv, text: &str) -> Option<&'a ShortField> {
    let mut parts = argv.free_parts(text).into_iter();
    parts.find_map(|(start, field)| (start == 0).then_some(field))
}

/// Whether the model may write any text on standard input.
fn has_free_stdin(argv: &Argv) -> bool {
    let stdin = argv.stdin.as_deref().unwrap_or_default();
    !argv.free_parts(stdin).is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;
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
            psql < SELECT␠{x}              | psql    | psql
            sqlplus / @a ␠{x}              | sqlplus | sqlplus
            pgcli -safe shop ␠{x}          | pgcli   | pgcli
            mycli -e ␠{x}                  | mycli   | mycli
            litecli -safe shop.db ␠{x}     | litecli | litecli
            usql -c ␠{x}                   | usql    | usql",
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
    fn a_word_in_the_command_of_a_program_that_runs_no_other_is_no_program_unless_it_is_hardly_anything_else()
     {
        for [line, expected] in rows(
            "
            rg -t go -e {x}              | -
            rg -t julia {x} notes        | -
            rg script {x}                | -
            /usr/bin/rg go {x}           | -
            rg git {x}                   | -
            rg -t sh {x}                 | sh
            rg --file python3 {x}        | python3
            rg zsh {x}                   | zsh
            rg git -c {x}                | git
            rg go /bin/go1 {x}           | /bin/go1
            rg go /bin/x {x}             | -
            rg --pre go {x}              | go
            rg --hostname-bin less {x}   | less
            ls --sort time {x}           | -
            grep -r more {x}             | -
            rg open {x}                  | -
            gh issue list --state open {x} | -
            /usr/bin/open {x}            | /usr/bin/open
            wrap /bin/ip netns exec a {x} | /bin/ip
            ip {x}                       | ip
            cat /bin/git {x}             | /bin/git
            git grep go {x}              | go
            wrap go {x}                  | go
            chronic script -c {x}        | script
            go {x}                       | go
            time rg {x}                  | time",
        ) {
            let file = |path: &str| path.starts_with("/bin/").then(|| path.to_owned());
            let argv = command(line, false);
            assert_eq!(runner(&argv, file).unwrap_or_default(), expected, "{line}");
        }
    }

    #[test]
    fn a_program_that_only_looks_like_a_reader_is_one_by_its_file() {
        let argv = command("rg {x}", false);
        let file = |_: &str| Some("/usr/bin/bash".to_owned());
        assert_eq!(runner(&argv, file), Some("rg"));
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
                     scp sftp rsync mosh telnet socat ncat ansible terraform \
                     xdg-open gio gnome-open kde-open exo-open gtk-launch vis mg zile jmacs jove vile";
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
