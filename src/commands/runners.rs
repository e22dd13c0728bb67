//! Decides which commands run code that somebody gives them (pure).

mod program_names;
mod programs;

use std::ops::Range;

use self::program_names::ProgramForms;
use self::programs::{
    AtFile, CODE_WORDS, CodeValue, CodeWords, GIT, MANY_IN_ONE, OPTIONS_WITH_VALUE,
    PATTERN_AFTER_E, PSQL, READERS, READING_COMMANDS, REPOSITORY_OPTIONS, RUNNERS,
    SAFE_SQL_CLIENTS, SQL_CLIENTS, SURE_RUNNERS, WORDS_OF_OTHERS, is_name,
};
use super::argv::Argv;
use crate::text::short_form::{FieldKind, ShortField};

/// The place of a word in a command, by which it may be a program.
enum ElementPlace {
    /// The command runs it: it is the first element, or the value of an option that names a program.
    Program,
    /// It is a path, and may be that of a program.
    Path,
    /// It may be the name of a program that an earlier one runs.
    Word,
    /// It is hardly ever a program: the first one runs no other, or its name is a usual word.
    UsualWord,
}

/// What may be a program in a command: an element, or a part of one. The elements after it are its arguments.
struct ProgramCandidate<'a> {
    argv: &'a Argv,
    /// The place of the element.
    index: usize,
    /// The names that the program may have: those of the element, or of the file that it leads to.
    program: ProgramForms<'a>,
}

/// Returns the word of a command that names a program which runs code that somebody gives it: the first element, a later one that
/// is a bare word or the absolute path of a program, or the program that an option has as its value. Where the code is, is known
/// only of programs that run others because of a word. `file` finds the program's file behind all links: by a bare word in PATH,
/// or by an absolute path.
pub fn runner(argv: &Argv, file: impl Fn(&str) -> Option<String>) -> Option<&str> {
    for (index, element) in argv.run.iter().enumerate() {
        let named = named_program(argv, index);
        let word = named.unwrap_or(element);
        let candidate = ProgramCandidate::new(argv, index, word);
        let is_runner = match place_of(argv, index, named.is_some()) {
            ElementPlace::Program => {
                candidate.is_runner() || candidate.is_runner_behind_links(file(word))
            }
            ElementPlace::Path => {
                let found = file(word);
                found.is_some() && candidate.is_runner() || candidate.is_runner_behind_links(found)
            }
            ElementPlace::Word => candidate.is_runner() && (is_name(word) || file(word).is_some()),
            ElementPlace::UsualWord => {
                candidate.is_sure_runner() && (is_name(word) || file(word).is_some())
            }
        };
        if is_runner {
            return Some(word);
        }
    }
    None
}

/// Returns the place of the element at `index`. `is_named` says that an option before it, or in it, names it as a program.
fn place_of(argv: &Argv, index: usize, is_named: bool) -> ElementPlace {
    let element = &argv.run[index];
    // Words of a program that runs no other are no programs: `go` in `rg -t go {x}`.
    let first = argv.run.first();
    let takes_words = first.is_some_and(|program| READERS.has_word(program));
    if index == 0 || is_named {
        ElementPlace::Program
    } else if element.contains('/') {
        ElementPlace::Path
    } else if takes_words || WORDS_OF_OTHERS.has_word(element) {
        ElementPlace::UsualWord
    } else {
        ElementPlace::Word
    }
}

/// Returns the program that the user has written in the element at `at`, as the value of an option of a program before it.
fn named_program(argv: &Argv, at: usize) -> Option<&str> {
    let (code, _) = (0..at)
        .filter_map(|index| ProgramCandidate::new(argv, index, &argv.run[index]).code_and_words(at))
        .find(|(_, words)| words.value == CodeValue::Program)?;
    code.split_whitespace().next()
}

impl<'a> ProgramCandidate<'a> {
    /// Returns the program that a word, in the element at `index`, names.
    fn new(argv: &'a Argv, index: usize, word: &'a str) -> ProgramCandidate<'a> {
        ProgramCandidate {
            argv,
            index,
            program: ProgramForms::of(word),
        }
    }

    /// Returns the elements after it.
    fn arguments(&self) -> &'a [String] {
        &self.argv.run[self.index + 1..]
    }

    /// Returns the places of the elements after it.
    fn places(&self) -> Range<usize> {
        self.index + 1..self.argv.run.len()
    }

    /// Returns the elements between it and the one at `at`.
    fn before(&self, at: usize) -> &'a [String] {
        &self.argv.run[self.index + 1..at]
    }

    /// Returns the words after which it takes code.
    fn code_words(&self) -> impl Iterator<Item = &'static CodeWords> {
        CODE_WORDS
            .iter()
            .filter(|words| words.are_of(&self.program))
    }

    /// Whether it runs code that somebody gives it.
    fn is_runner(&self) -> bool {
        if self.chooses_repository() {
            return true;
        }
        // A path is no code, and neither is a number.
        !self.argv.text_parameters().is_empty()
            && (RUNNERS.iter().any(|group| group.contains(&self.program))
                || self.program.is_dynamic_linker()
                || self.is_configured_git()
                || self.runs_code_of_model())
    }

    /// Whether the file behind its links does.
    fn is_runner_behind_links(&self, file: Option<String>) -> bool {
        file.is_some_and(|file| {
            let linked = ProgramCandidate::new(self.argv, self.index, &file);
            !MANY_IN_ONE.contains(&linked.program) && linked.is_runner()
        })
    }

    /// Whether it is the name of a program that runs code, and hardly ever anything else.
    fn is_sure_runner(&self) -> bool {
        !self.argv.text_parameters().is_empty()
            && (SURE_RUNNERS
                .iter()
                .any(|group| group.contains(&self.program))
                || self.is_configured_git())
    }

    /// Whether it is git with an option that may name programs: by its configuration, or by its directory of programs.
    fn is_configured_git(&self) -> bool {
        let is_option = |argument: &String| {
            let mut options = ["-c", "--config-env", "--exec-path="].into_iter();
            options.any(|option| argument.starts_with(option))
        };
        // After its command, they are options of that.
        let options = self.before(self.command_at());
        GIT.contains(&self.program) && options.iter().any(is_option)
    }

    /// Whether the model may choose the repository that it uses. Its configuration may name programs, and it may be anybody's, also
    /// below a directory of the user's, where somebody has unpacked it.
    fn chooses_repository(&self) -> bool {
        let end = if GIT.contains(&self.program) {
            // What -C means to a command of git is something else.
            self.command_at()
        } else {
            self.argv.run.len()
        };
        let is_chosen = |words: &CodeWords, at: usize| {
            let directory = words.text_after(self.before(at), &self.argv.run[at]);
            directory.is_some_and(|directory| self.argv.has_chosen_path(directory))
        };
        let mut all = REPOSITORY_OPTIONS.iter();
        all.any(|words| {
            words.are_of(&self.program) && (self.index + 1..end).any(|at| is_chosen(words, at))
        })
    }

    /// Whether it runs code because of what the model may write in this command.
    fn runs_code_of_model(&self) -> bool {
        if self.places().any(|at| self.gives_code(at)) {
            return true;
        }
        let has_patterns = self.has_pattern_after_e();
        let writes_options = self.places().any(|at| self.may_be_option(at, has_patterns));
        if SQL_CLIENTS.contains(&self.program) {
            return writes_options || !self.is_safe_client();
        }
        if writes_options && self.code_words().next().is_some() {
            return true;
        }
        let reads_options = self
            .code_words()
            .any(|words| words.at_file == AtFile::Options);
        let mut arguments = self.arguments().iter();
        if reads_options && arguments.any(|argument| may_be_options_file(self.argv, argument)) {
            return true;
        }
        self.runs_psql_command() || self.writes_command()
    }

    /// Returns the text in the element at `at` that it runs or reads as code, with the words that say so.
    fn code_and_words(&self, at: usize) -> Option<(&'a str, &'static CodeWords)> {
        let element = &self.argv.run[at];
        let before = self.before(at);
        // A word of another command, such as the property in `systemctl show -p enable`, is no command.
        let only_reads = self.only_reads();
        self.code_words()
            .filter(|words| !only_reads || words.are_of_all_commands())
            .find_map(|words| Some((words.text_after(before, element)?, words)))
    }

    /// Whether its command runs nothing that is among its words.
    fn only_reads(&self) -> bool {
        let mut all = READING_COMMANDS.iter();
        all.any(|it| it.programs.contains(&self.program) && it.begin(self.arguments()))
    }

    /// Whether the model may write any text in what the element at `at` gives it to run.
    fn gives_code(&self, at: usize) -> bool {
        let Some((code, _)) = self.code_and_words(at) else {
            return false;
        };
        let is_stdin = matches!(code, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
        model_writes_in(self.argv, code) || (is_stdin && model_writes_stdin(self.argv))
    }

    /// Whether the model may write an option as the element at `at`. After `--` there are none. `has_patterns` says that what
    /// follows -e is its value, as for grep.
    fn may_be_option(&self, at: usize, has_patterns: bool) -> bool {
        let Some(field) = text_at_beginning(self.argv, &self.argv.run[at]) else {
            return false;
        };
        let before = self.before(at);
        // The value of -e may be -e.
        let options = before.iter().rev().take_while(|last| *last == "-e");
        let follows_e = options.count() % 2 == 1;
        let is_value = has_patterns && follows_e && field.kind != FieldKind::List;
        let is_after_options = before.iter().any(|element| element == "--");
        self.argv.dashes && !is_value && !is_after_options
    }

    /// Whether its option -e is followed by a pattern.
    fn has_pattern_after_e(&self) -> bool {
        let given = self.argv.run.get(self.command_at());
        let has_command =
            |command: &str| command.is_empty() || given.is_some_and(|it| it == command);
        let mut rows = PATTERN_AFTER_E.iter();
        rows.any(|(programs, command)| programs.contains(&self.program) && has_command(command))
    }

    /// Whether the client of a database is told to have no commands that run programs.
    fn is_safe_client(&self) -> bool {
        let mut words = self.arguments().iter();
        SAFE_SQL_CLIENTS.contains(&self.program)
            && words.any(|word| matches!(word.as_str(), "-safe" | "--safe"))
    }

    /// Whether it is psql, and the model may write one of its own commands, which begin with a backslash.
    fn runs_psql_command(&self) -> bool {
        let mut arguments = self.arguments().iter();
        PSQL.contains(&self.program)
            && (model_writes_stdin(self.argv)
                || arguments.any(|argument| begins_psql_command(self.argv, argument)))
    }

    /// Whether the model may write the word because of which it runs code. That of git can also be an alias of the user's, which is
    /// a command.
    fn writes_command(&self) -> bool {
        let elements = self.argv.run[self.command_at()..].iter();
        let elements = elements.map(String::as_str);
        let given = Vec::from_iter(elements.filter(|element| !element.starts_with('-')));
        let model_writes = |element: &str| model_writes_in(self.argv, element);
        self.code_words()
            .any(|words| words.may_be_written(&given, model_writes))
    }

    /// Returns the place of its first argument that is neither an option nor the value of one that is known: what the program is to
    /// do. Without one, it is the end.
    fn command_at(&self) -> usize {
        let mut rows = OPTIONS_WITH_VALUE.iter();
        let row = rows.find(|(programs, _)| programs.contains(&self.program));
        let with_value = row.map_or("", |(_, options)| options);
        let mut at = self.index + 1;
        while let Some(element) = self.argv.run.get(at)
            && element.starts_with('-')
        {
            let mut options = with_value.split_whitespace();
            let has_value = options.any(|option| option == element);
            at += if has_value { 2 } else { 1 };
        }
        // The value may be missing.
        at.min(self.argv.run.len())
    }
}

/// Whether the model may write any text in a part of this one.
fn model_writes_in(argv: &Argv, text: &str) -> bool {
    !argv.text_parts(text).is_empty()
}

/// Whether the model may write any text on standard input.
fn model_writes_stdin(argv: &Argv) -> bool {
    model_writes_in(argv, argv.stdin.as_deref().unwrap_or_default())
}

/// Whether the model may write a command of psql's own, or of a shell, in an argument: how it or its value begins, or what follows
/// the user's `\` or `|`. The value of a variable is none.
fn begins_psql_command(argv: &Argv, argument: &str) -> bool {
    let is_command = |text: &str| {
        text_at_beginning(argv, text).is_some()
            || (model_writes_in(argv, text) && text.starts_with(['\\', '|']))
    };
    let value = argument.split_once('=').map_or("", |(_, value)| value);
    let has_value = argument.starts_with("--") && !argument.starts_with("--set=");
    is_command(argument) || (has_value && is_command(value))
}

/// Whether an argument may be `@FILE` with a file that the model chooses. A path of the model's begins otherwise.
fn may_be_options_file(argv: &Argv, argument: &str) -> bool {
    let file = argument.strip_prefix('@');
    text_at_beginning(argv, argument).is_some()
        || file.is_some_and(|file| argv.has_chosen_path(file))
}

/// Returns the argument that a text begins with, if the model may write any text for it.
fn text_at_beginning<'a>(argv: &'a Argv, text: &str) -> Option<&'a ShortField> {
    let mut parts = argv.text_parts(text).into_iter();
    parts.find_map(|(start, field)| (start == 0).then_some(field))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    /// A command in which the model writes `{x}`, `{l}`, a list, and `{n}`, a number, and `{p}`, a path.
    fn command(line: &str, dashes: bool) -> Argv {
        let field = |name: &str, kind| {
            let mut field = ShortField::text(name);
            field.kind = kind;
            field
        };
        let (run, stdin) = line.split_once(" < ").unwrap_or((line, ""));
        Argv {
            run: run
                .split(' ')
                .map(|word| word.replace('␠', " ").replace('¦', "|"))
                .collect(),
            stdin: Some(stdin.to_owned()),
            parameters: vec![
                field("x", FieldKind::Text),
                field("l", FieldKind::List),
                field("n", FieldKind::Integer),
                field("p", FieldKind::Path),
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
            git -C {x} log                 | git     | git
            git --git-dir /a {l}           | git     | git
            git log {l}                    | git     | -
            git log {l} -- a               | git     | -
            git log -n{n} {x}              | git     | -
            git log {n}                    | -       | -
            git log a{x}                   | -       | -
            git log --since={x}            | -       | -
            git grep -e {x} -- {l}         | -       | -
            git grep -e {l}                | git     | -
            git -P grep -e {x}             | -       | -
            git grep -e -e {x}             | git     | -
            git shortlog -e {x} HEAD       | git     | -
            git log -e {x} grep            | git     | -
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
            usql -c ␠{x}                   | usql    | usql
            clickhouse local {x}           | clickhouse | clickhouse
            clickhouse-client --query={x}  | clickhouse-client | clickhouse-client
            clickhouse-local -q ␠{x}       | clickhouse-local | clickhouse-local
            ch -q ␠{x}                     | ch      | ch
            cqlsh -e ␠{x}                  | cqlsh   | cqlsh
            dolt sql -q ␠{x}               | dolt    | dolt
            mclient -s ␠{x}                | mclient | mclient
            ysqlsh -c ␠{x}                 | ysqlsh  | ysqlsh
            gp -q < {x}                    | gp      | gp
            gremlin -e {x}                 | gremlin | gremlin
            trino --execute={x}            | -       | -
            bq query ␠{x}                  | -       | -
            redis-cli get a{x}             | -       | -
            wrap --label gap {x}           | -       | -
            weather ch {x}                 | -       | -",
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
    fn a_program_runs_code_where_an_option_for_it_has_a_value_of_the_model() {
        for [line, expected] in rows(
            "
            git submodule foreach {x}            | git
            systemctl status {x}                 | -
            systemctl show -p enable {x}         | -
            systemctl status link {x}            | -
            systemctl is-active edit {x}         | -
            systemctl --user -q status edit {x}  | -
            systemctl show -p enable -H {x}      | systemctl
            systemctl enable status {x}          | systemctl
            systemctl --now enable status {x}    | systemctl
            systemctl -p status enable {x}       | systemctl
            systemctl status bash {x}            | bash
            systemctl -H {x} status a            | systemctl
            loginctl --host={x} list-users       | loginctl
            systemctl edit --user --stdin {x}    | systemctl
            systemctl --user link {x}            | systemctl
            tailscale ssh host {x}               | tailscale
            tailscale status {x}                 | -
            git submodule -q foreach --recursive ls␠{x} | git
            git submodule foreach ls {x}         | git
            git submodule foreach ls             | -
            git submodule status {x}             | -
            git log --grep foreach {x}           | -
            git bisect run {l}                   | git
            git bisect start {l}                 | -
            git for-each-repo --config=a {x}     | git
            git hook run {x}                     | git
            git difftool -y -x {x}               | git
            git difftool -yx {x}                 | git
            git difftool -x meld␠{x}             | git
            git difftool -x meld -- {x}          | -
            git difftool --extcmd={x}            | git
            git difftool --extcmd {x}            | git
            git difftool --ext={x}               | git
            git difftool -t {x}                  | git
            git difftool -y {x}                  | -
            git difftool -x sh {x}               | sh
            git difftool -xsh {x}                | sh
            git difftool --extcmd=sh␠-c {x}      | sh
            git cherry-pick -x {x}               | -
            git mergetool --tool={x}             | git
            git grep --open-files-in-pager={x} h | git
            git grep --op={x} h                  | git
            git grep -nO={x} h                   | git
            git grep -O=a{x} h                   | git
            git grep -C={x} h                    | -
            git grep -e --open-files {x}         | git
            git diff -O {x}                      | -
            git ls-remote --upload-pack={x} .    | git
            git ls-remote --upload-pack=a{x} .   | git
            git ls-remote --upload-pack {x} .    | git
            git ls-remote --upload-pack=a {x}    | -
            git ls-remote --upload-pack=/gone/sh {x} | /gone/sh
            git ls-remote --upload-pack=/bin/link {x} | /bin/link
            git ls-remote --exec={x} .           | git
            git ls-remote --sort={x} .           | -
            git push --receive-pack={x}          | git
            git archive --exec={x} a             | git
            git archive --prefix={x} a           | -
            git clone -u {x} a                   | git
            git clone --config core.x={x} a      | git
            git clone --template={x} a           | git
            git clone --branch={x} a             | -
            git fetch -u {x}                     | -
            git rebase --exec={x} a              | git
            git rebase -ix {x}                   | git
            git rebase --onto={x} a              | -
            git filter-branch --tree-filter {x}  | git
            git commit --template={x}            | -
            git a{x}                             | git
            git log --grep={x}                   | -
            git log --author={x}                 | -
            git log -S {x}                       | -
            git log -- {x}                       | -
            git log -n{n} --exec={n}             | -
            git -C {x} log                       | git
            git -C {p} log                       | git
            git -C /a/{p} log                    | git
            git --git-dir={x} log                | git
            git --git-dir={p} log                | git
            git --git-dir {p} log                | git
            git -P --work-tree={p} status        | git
            git -C /a log                        | -
            git -C {n} log                       | -
            git -C                               | -
            git --git-dir                        | -
            hg -R                                | -
            git log -- {p}                       | -
            git grep -C {p}                      | -
            wrap git -C {p} log                  | git
            /bin/config -C {p} log               | /bin/config
            hg -R {p} log                        | hg
            hg log --repository={x}              | hg
            hg log --cwd {p}                     | hg
            hg -R /a log {x}                     | -
            jj -R {p} log                        | jj
            gh {l}                               | gh
            gh {x} list                          | gh
            gh alias {l}                         | gh
            gh -R a/b alias {l}                  | gh
            gh alias set {x}                     | gh
            gh alias list {x}                    | -
            gh issue {l}                         | -
            gh -R {x} pr view                    | -
            gh -R {x} {l}                        | gh
            gh --repo {x} pr list {x}            | -
            hg {l}                               | hg
            hg log {l}                           | -
            openssl {l}                          | openssl
            openssl {x}                          | openssl
            openssl x509 {x}                     | -
            git bisect {l}                       | git
            git submodule {x}                    | git
            git submodule -q {x} a               | git
            git --no-pager log {x}               | -
            xdotool {l}                          | xdotool
            xdotool key {l}                      | xdotool
            pidstat {x}                          | -
            jj {x}                               | jj
            wrap git difftool -x {x}             | git
            /bin/config difftool -x {x}          | /bin/config
            rg --pre {x} h .                     | rg
            rg --pre={x} h .                     | rg
            rg --pre=./{x} h .                   | rg
            rg --hostname-bin={x} h              | rg
            rg --pre {n} h                       | -
            rg --pre=go {x}                      | go
            rg --pre cat -t go {x}               | -
            rg --pre-glob={x} h .                | -
            rg -e {x} --glob={x} .               | -
            wget --execute={x} u                 | wget
            wget --exe={x} u                     | wget
            wget -e {x} u                        | wget
            wget -qe {x} u                       | wget
            wget -e a={x} u                      | wget
            wget --use-askpass={x} u             | wget
            wget --user={x} u                    | -
            wget -q {x}                          | -
            curl --engine {x} u                  | curl
            curl -sK {x}                         | curl
            curl -K - < url={x}                  | curl
            curl -K a < {x}                      | -
            curl -d @- u < {x}                   | -
            curl -q -G --data-urlencode t={x} u  | -
            hg --config={x} log                  | hg
            hg --config a={x} log                | hg
            hg pull -e {x}                       | hg
            hg resolve --tool={x}                | hg
            hg bisect -c {x}                     | hg
            hg log -k {x}                        | -
            hg status -c {x}                     | -
            svn diff --diff-cmd={x}              | svn
            svn log --search={x}                 | -
            man -P {x} ls                        | man
            man --pager={x} ls                   | man
            man -H={x} ls                        | man
            man {x}                              | -
            man -k {x}                           | -
            sort --compress-program={x} a        | sort
            sort --comp {x} a                    | sort
            sort -t {x} a                        | -
            sort --key={x} a                     | -
            split --filter={x} a                 | split
            split --bytes={x} a                  | -
            zip -T -TT {x} a b                   | zip
            zip --unzip-command={x} a            | zip
            zip -T {x}                           | -
            gpg --agent-program={x} -k           | gpg
            gpg --output={x} a                   | -
            gpg -k {x}                           | -
            apt-get -o {x} update                | apt-get
            apt-get -yo a={x} update             | apt-get
            apt-cache show {x}                   | -
            openssl req -config {x}              | openssl
            openssl engine {x}                   | openssl
            openssl dgst -engine a -sign {x}     | -
            openssl x509 -in {x}                 | -
            ssh-keygen -D {x}                    | ssh-keygen
            ssh-keygen -lf {x}                   | -
            gcc -wrapper {x} a.c                 | gcc
            gcc -fplugin={x} a.c                 | gcc
            gcc -DBAR={x} a.c                    | -
            gcc -fsyntax-only {x}                | gcc
            gcc -fsyntax-only -- {l}             | gcc
            gcc -o {x} a.c                       | gcc
            gcc -fsyntax-only @{x}               | gcc
            cc -c @/a/{x}                        | cc
            cc -c @{p} {x}                       | cc
            cc -DBAR={x} {p}                     | -
            cc -DBAR={x} /a/{x}                  | -
            clang-15 a{x}                        | -
            clang-15 {x}                         | clang-15
            nm -D {x}                            | nm
            nm -D {p}                            | -
            nm --plugin={x} a                    | nm
            objdump -d {x}                       | objdump
            readelf -d {x}                       | -
            ld.gold -o {x} a.o                   | ld.gold
            cat @{x}                             | -
            exiftool -if {x} a                   | exiftool
            exiftool -Description={x} a          | -
            pandoc --filter={x} a                | pandoc
            pandoc -t {x} a                      | pandoc
            pandoc --to=latex {x}                | -
            pandoc --pdf-engine=xelatex {x}      | xelatex
            nmap --script={x} h                  | nmap
            nmap -p {x} h                        | -
            rpm --eval {x}                       | rpm
            rpm -qE {x}                          | rpm
            rpm -q {x}                           | -
            dpkg --pre-invoke={x} -l             | dpkg
            dpkg -l {x}                          | -
            dpkg-architecture -c {x}             | dpkg-architecture
            dpkg-architecture -q {x}             | -
            yt-dlp --exec {x} u                  | yt-dlp
            yt-dlp {x}                           | -
            prove -e {x} t                       | prove
            mlr put {x} a                        | mlr
            install --strip-program={x} a b      | install
            install -m 644 {x} b                 | -
            homectl with me {l}                  | homectl
            homectl inspect {x}                  | -
            snap run {x}                         | snap
            snap info {x}                        | -
            sqsh -C {x}                          | sqsh
            psql -c \\dt␠{x}                     | psql
            psql --command=\\dt␠{x}              | psql
            psql -c SELECT␠{x}                   | -
            psql -o ¦tee␠{x} -c a                | psql
            psql --file=/a/{x}                   | psql
            psql -c a -vfoo={x}                  | -
            sqlite3 -safe -init {x} a b          | sqlite3
            sqlite3 -cmd .a␠{x} -safe a b        | sqlite3
            sqlite3 -safe -cmd .a a ␠{x}         | -
            /lib64/ld-linux-x86-64.so.2 {l}      | /lib64/ld-linux-x86-64.so.2
            ld.so {l}                            | ld.so
            /lib/ld-musl-x86_64.so.1 {x}         | /lib/ld-musl-x86_64.so.1
            ld -o {x} a.o                        | ld
            ld -o a {p}                          | -
            tar -tf {x}                          | tar",
        ) {
            let file = |path: &str| match path {
                "/bin/config" => Some("/usr/bin/git".to_owned()),
                "/bin/link" => Some("/usr/bin/bash".to_owned()),
                _ => None,
            };
            let argv = command(line, false);
            assert_eq!(runner(&argv, file).unwrap_or_default(), expected, "{line}");
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
            rg git -c a=b {x}            | git
            journalctl -u gunicorn --grep {x} | -
            journalctl -u docker --grep {x} | docker
            gh issue list --label pytest --search {x} | -
            gh issue list --label powershell --search {x} | -
            weather kitty {x}            | -
            kitty {x}                    | kitty
            /usr/bin/powershell -c {x}   | /usr/bin/powershell
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
            wrap script -c {x}           | script
            chronic script -c {x}        | chronic
            go {x}                       | go
            time rg {x}                  | time
            gh issue list --label task --search {x} | -
            rg -t ts {x}                 | -
            wrap es {x}                  | -
            es -c {x}                    | es
            rc -c {x}                    | rc
            wp eval {x}                  | wp
            ts {l}                       | ts
            sem {l}                      | sem
            i386 {l}                     | i386
            linux32 {l}                  | linux32
            wrap linux32 {l}             | linux32
            qemu-aarch64-static {l}      | qemu-aarch64-static
            qemu-img info {x}            | -
            run0 {l}                     | run0
            qdbus6 {l}                   | qdbus6
            llm {x}                      | llm
            code --wait {x}              | code
            gh search code {x}           | -
            gh issue list --label llm {x} | -
            gh issue list --label gp {x} | -
            gh issue list --label et {x} | -
            gp -c {x}                    | gp
            scheme48 {x}                 | scheme48
            buck2 {x}                    | buck2",
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
                "editor" => Some("/usr/bin/vim.basic".to_owned()),
                "nc.openbsd" => Some("/usr/bin/nc.openbsd".to_owned()),
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
                     rview gvimdiff sensible-editor vigor mcedit pydoc \
                     sphinx-build php-cgi tcc debconf systemd-cat sotruss msgexec run-mailcap xdotool \
                     xdg-open gio gnome-open kde-open exo-open gtk-launch vis mg zile jmacs jove vile \
                     chronic eatmydata bmake envdir nodemon pipenv s6-setuidgid dtach dbx niceload ifne zrun lckdo \
                     envuidgid pgrphack s6-softlimit execlineb ifelse gnohup genv newgrp uclampset enosys systemd-vmspawn \
                     sudoedit catatonit tilda nnn vipe abduco tmate run-one nocache torify truss dtrace cgdb delve \
                     mvnw go-task waf spack salt-call lxc-start sshuttle slogin gptme caffeinate xcrun \
                     busctl gdbus dbus-send qdbus qdbus-qt kioclient virsh virt-install distrobox-host-exec trace-cmd formail \
                     anacron fcrontab schtasks ydotool wtype riverctl nvr subl codium code-insiders kubecolor aichat sweagent";
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
            ("/usr/bin/git -c a=b grep x", Some("/usr/bin/git")),
            ("git -P -c a=b grep x", Some("git")),
            ("git grep -c x", None),
            ("git log -c --exec-path=x x", None),
            ("git log --config-env=a=b x", None),
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
            ("vim.tiny x", Some("vim.tiny")),
            ("python3-dbg x", Some("python3-dbg")),
            (
                "/usr/bin/x86_64-linux-gnu-gcc-12 -wrapper {x}",
                Some("/usr/bin/x86_64-linux-gnu-gcc-12"),
            ),
            ("git-2.40 -c a=b log x", Some("git-2.40")),
            ("edit-it x", None),
            // Another word may look like a program.
            ("wrap nc.openbsd x", Some("nc.openbsd")),
            ("wrap vim.tiny x", None),
            ("rg -n x make.md", None),
            ("gh pr view x", None),
            ("gh api x --jq editor", None),
            ("/bin/wrap x", None),
            ("rg -e sh-like /home/sh", None),
            ("wrap --shell=sh -sh SH ./sh bin/sh sh.py shx 3", None),
            ("wrap", None),
        ] {
            assert_eq!(found(line).as_deref(), program, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_command_can_be_judged(line in prop::collection::vec(prop_oneof![
            prop::sample::select("git hg jj gh psql sqlite3 rg gcc nm openssl env sh /bin/link -C -R -c -e -- --repo - @{x} {x} {l} {p} a.b .. . ld-.so"
                .split(' ').collect::<Vec<_>>()).prop_map(str::to_owned),
            "[-a-z{}@=/.]{0,4}",
        ], 0..6), dashes: bool) {
            let argv = command(&line.join(" "), dashes);
            let file = |path: &str| path.ends_with("link").then(|| "/usr/bin/git-2".to_owned());
            let found = runner(&argv, file);
            prop_assert!(found.is_none_or(|word| argv.run.iter().any(|element| element.contains(word))));
        }
    }
}
