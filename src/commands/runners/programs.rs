//! The names of programs that run code that somebody gives them (pure).

use super::program_names::{ProgramForms, ProgramNames};

/// Shells.
const SHELLS: ProgramNames = ProgramNames(
    "ash bash bsd-csh busybox csh dash elvish fish hush ksh lksh loksh mksh murex nu oksh osh pwsh \
     rbash rksh rzsh sash sh tcsh toybox xonsh yash ysh zsh",
);

/// Interpreters and compilers, which run the program that they are given.
const INTERPRETERS: ProgramNames = ProgramNames(
    "asy awk babashka bb bpftrace bun clisp clj clojure cmd coverage cpan crystal cscript csi d8 dart dc deno ecl elixir erl \
     escript expect file-rename gawk gdb gforth ghc ghci gnuplot goawk gprolog groovy gs gsed guile gunicorn iex ipython \
     irb java jest jexec jjs jruby jrunscript jshell julia jupyter jython kotlin latex latexmk lldb lua luajit lualatex \
     luatex m4 matlab mawk maxima micropython mlr mocha mongo mongosh mono mshta mysqlsh nawk nim node nodejs ocaml octave \
     octave-cli original-awk osascript pdb pdflatex pdftex perl php php-cgi posh powershell prename prove pry psysh py.test \
     pydoc pypy pytest python qjs R racket raku Rscript ruby rundll32 runghc runhaskell sage sbcl scala scheme scilab sed slsh \
     sphinx-build stap swift swipl tcc tclsh tex ts-node tsx utop uvicorn vitest wish wscript xelatex xetex zig",
);

/// Editors and pagers, which have commands that run programs.
const EDITORS: ProgramNames = ProgramNames(
    "ed editor elvis emacs emacsclient eview ex gview gvim gvimdiff helix hx jed jmacs joe jove jpico jstar kak less levee \
     mcedit mcview mg micro more most nano ne neovim nvi nvim pager pico rgview rgvim rjoe rnano rview rvim select-editor \
     sensible-editor sensible-pager vi view vigor vile vim vimdiff vimx vis xemacs zile",
);

/// Programs whose arguments are, or name, another program.
const WRAPPERS: ProgramNames = ProgramNames(
    "aa-exec alacritty at batch bsdtar bwrap capsh cgexec choom chpst chroot chrt compose coreutils cpulimit crontab \
     dbus-run-session debconf direnv doas dumb-init edit entr env exo-open fakechroot fakeroot fakeroot-sysv fakeroot-tcp \
     faketime fd fdfind find firejail flatpak flock foot fzf gio gnome-open gnome-terminal gosu grc gtar gtester gtk-launch \
     gxargs hyperfine ionice ip kde-open kitty koi8rxterm konsole ksu logsave ltrace lxterm lxterminal mate-terminal \
     mpiexec mpirun msgexec msgfilter multitime nice nohup nsenter numactl open openvt parallel perf pexec pkexec print \
     prlimit proot proxychains qterminal rlwrap rr run-mailcap run-parts runcon runuser rxvt sbatch schroot screen script \
     see service setarch setlock setpriv setsid setuidgid sg softlimit sotruss srun ssh-agent start-stop-daemon stdbuf \
     strace su su-exec sudo sudo-rs systemd-cat systemd-inhibit systemd-run tar taskset tcpdump terminator tilix time \
     timeout tini tmux torify torsocks trickle tsocks uftrace unbuffer unshare urxvt uxterm valgrind viddy watch watchexec \
     wezterm wine x-terminal-emulator xargs xdg-open xdotool xfce4-terminal xterm xvfb-run zellij",
);

/// Builders and package managers, whose files and packages are programs that they run.
const BUILDERS: ProgramNames = ProgramNames(
    "ant asdf bazel brew bundle bunx cabal cargo cmake composer conda corepack debuild dotnet dpkg-buildpackage gem gmake go gradle gradlew guix \
     hatch just lein make mamba maven meson micromamba mise mix msbuild mvn ninja nix nix-build nix-shell nox npm npx pdm \
     pip pipx pixi pnpm pnpx poetry pyenv rake rbenv rustup rye sbt scons stack tox uv uvx volta yarn yarnpkg",
);

/// Programs that run others in containers, clusters and machines.
const CONTAINERS: ProgramNames = ProgramNames(
    "ansible ansible-playbook apptainer buildah chef-client crictl crun ctr distrobox docker docker-compose incus k3s \
     kubectl lxc lxc-attach lxc-execute machinectl microk8s minikube multipass nerdctl oc podman podman-compose puppet \
     runc salt singularity systemd-nspawn terraform tofu toolbox vagrant wsl",
);

/// Programs that reach a shell on another machine, or through a connection.
const REMOTE: ProgramNames = ProgramNames(
    "adb autossh clush dbclient ftp lftp mosh nc ncat netcat parallel-ssh pdsh pssh rexec rlogin rsh rsync scp sftp socat \
     ssh sshpass telnet",
);

/// Agents, which let a model run programs.
const AGENTS: ProgramNames = ProgramNames("aider claude codex cursor-agent gemini opencode");

/// Programs that run what somebody gives them, whatever their arguments, by the reason why they do.
pub const RUNNERS: &[ProgramNames] = &[
    SHELLS,
    INTERPRETERS,
    EDITORS,
    WRAPPERS,
    BUILDERS,
    CONTAINERS,
    REMOTE,
    AGENTS,
];

/// Those of them whose name is hardly ever a word of another program's: it counts wherever it stands.
pub const SURE_RUNNERS: &[ProgramNames] = &[
    SHELLS,
    ProgramNames(
        "python pypy perl ruby node nodejs deno bun php lua java Rscript tclsh awk gawk mawk nawk sed env nice nohup timeout setsid \
         stdbuf xargs parallel find make tar watch strace gdb ssh sudo doas su chroot unshare systemd-run docker podman npx npm uv \
         uvx pipx",
    ),
];

/// Programs that run no other, whatever their arguments, so that a word among these is hardly ever a program. The
/// program that an option of rg names is looked at by itself.
pub const READERS: ProgramNames = ProgramNames(
    "basename cal cat cmp comm cut date df dig dirname du echo egrep fgrep file fold free grep head hexdump host id join \
     journalctl jq locate ls lscpu lsblk md5sum nl paste pgrep printf ps realpath rev rg seq sha256sum stat tac tail tr tree uname uniq uptime \
     wc whatis whois xxd",
);

/// Those of [`RUNNERS`] whose name is more often a word of another program's, as in `gh issue list --state open`: it counts as the
/// first word of a command only. The programs that run it are themselves known.
pub const WORDS_OF_OTHERS: ProgramNames = ProgramNames(
    "aider claude cmd codex compose coverage edit editor foot gemini gunicorn ip jest jupyter kitty konsole mocha most ne open \
     opencode pager posh powershell print py.test pytest see service terminator uvicorn view vitest",
);

/// Whether a word is one of all these names as it is, but for a version at its end. Another word may be a variant of a program,
/// such as vim.tiny.
pub fn is_name(word: &str) -> bool {
    let of_words = CODE_WORDS.iter().chain(REPOSITORY_OPTIONS);
    let of_words = of_words.map(|words| &words.programs);
    let mut all = RUNNERS.iter().chain(of_words).chain([&SQL_CLIENTS]);
    all.any(|names| names.has_word(word)) || ProgramForms::of(word).is_dynamic_linker()
}

/// Programs that act by the name that they are called by: what is a link to one is not called that.
pub const MANY_IN_ONE: ProgramNames = ProgramNames("busybox coreutils toybox");

/// Words of a program after which it takes another program, a shell command, code, a library, or a file that names them.
pub struct CodeWords {
    programs: ProgramNames,
    /// The command of the program that has these options: words that stand before them, in this order. Empty: all commands have.
    command: &'static str,
    /// The options that have such a value. Empty: whatever follows `command` is run.
    options: &'static str,
    /// Whether an option of one letter may stand behind others in one element.
    joins_options: bool,
    /// Whether the value may be the name of a program.
    names_program: bool,
    /// Whether an argument @FILE stands for the options in this file.
    reads_options: bool,
}

const fn row(programs: &'static str, command: &'static str, options: &'static str) -> CodeWords {
    CodeWords {
        programs: ProgramNames(programs),
        command,
        options,
        joins_options: true,
        names_program: true,
        reads_options: false,
    }
}

impl CodeWords {
    /// Says that options of one letter are never joined.
    const fn apart(mut self) -> CodeWords {
        self.joins_options = false;
        self
    }

    /// Says that the values are files of code, or names of what is no program.
    const fn with_files(mut self) -> CodeWords {
        self.names_program = false;
        self
    }

    /// Says that an argument @FILE, wherever it stands, is replaced by the options in this file.
    const fn with_option_files(mut self) -> CodeWords {
        self.reads_options = true;
        self
    }

    /// Whether an argument @FILE stands for the options in this file.
    pub fn may_be_in_file(&self) -> bool {
        self.reads_options
    }

    /// Whether these are words of a program.
    pub fn are_of(&self, program: &ProgramForms) -> bool {
        self.programs.contains(program)
    }

    /// Whether one of the words of a command may be free, so that the model may write the word that the program obeys. `given` are
    /// the words that the program has as its command.
    pub fn may_be_written(&self, given: &[&str], is_free: impl Fn(&str) -> bool) -> bool {
        let words = self.command.split_whitespace();
        let mut places = words
            .take_while(|word| !word.starts_with('-'))
            .zip(given)
            .skip_while(|(wanted, word)| wanted == *word);
        places.next().is_some_and(|(_, word)| is_free(word))
    }

    /// Whether what follows them may be the name of a program.
    pub fn precede_program(&self) -> bool {
        self.names_program
    }

    /// Returns the text in an element that the program runs, or reads as code, if these words are before it. `before` has the
    /// elements between the program and this one.
    pub fn code<'e>(&self, before: &[String], element: &'e str) -> Option<&'e str> {
        let mut words = before.iter();
        let mut command = self.command.split_whitespace();
        if !command.all(|wanted| words.any(|word| word == wanted)) {
            return None;
        }
        if self.options.is_empty() {
            return Some(element);
        }
        let last = before.last().map_or("", String::as_str);
        let mut options = self.options.split_whitespace();
        options.find_map(|option| {
            let joined = self.value(option, element);
            let joined = joined.filter(|value| !value.is_empty());
            let follows = self.value(option, last) == Some("");
            joined.or(follows.then_some(element))
        })
    }

    /// Returns the value that an element gives to an option; it is empty if the next element is the value. `None` if the element
    /// is another option or none. A long option may be abbreviated.
    fn value<'e>(&self, option: &str, element: &'e str) -> Option<&'e str> {
        let letter = option.strip_prefix('-').unwrap_or_default();
        if letter.chars().count() == 1 {
            let (others, value) = element.strip_prefix('-')?.split_once(letter)?;
            let joins = self.joins_options && others.chars().all(char::is_alphabetic);
            let value = value.strip_prefix('=').unwrap_or(value);
            return (others.is_empty() || joins).then_some(value);
        }
        let (given, value) = element.split_once('=').unwrap_or((element, ""));
        let is_long = given.len() > 2 && given.starts_with("--");
        let is_option = given == option || (is_long && option.starts_with(given));
        is_option.then_some(value)
    }
}

/// All such words of programs that run nothing else. Those of [`RUNNERS`] need none here.
pub const CODE_WORDS: &[CodeWords] = &[
    // Searching, sorting, comparing and showing.
    row("ack", "", "--ackrc --pager"),
    row("ag bat batcat", "", "--pager"),
    row("delta", "", "-@ --config --diff-args --pager"),
    row("diff3 sdiff", "", "--diff-program"),
    row("enscript", "", "-I --filter"),
    row("gsort sort", "", "--compress-program"),
    row("gsplit split", "", "--filter"),
    row("man", "", "-C -H -P --config-file --html --pager"),
    row("rg", "", "--hostname-bin --pre"),
    // Git and its like. An option of git that means something else to other commands is known behind its own command.
    row(
        "git",
        "",
        "--config-env --exec --exec-path --extcmd --open-files-in-pager --receive-pack --upload-pack",
    ),
    row("git", "bisect run", ""),
    row("git", "clone", "-c -u --config --template"),
    row("git", "daemon", "--access-hook"),
    row("git", "difftool", "-t -x --tool"),
    row(
        "git",
        "filter-branch",
        "--commit-filter --env-filter --index-filter --msg-filter --parent-filter --setup --tag-name-filter --tree-filter",
    ),
    row("git", "for-each-repo", ""),
    row("git", "grep", "-O"),
    row("git", "hook run", ""),
    row("git", "init", "--template"),
    row("git", "instaweb", "-b -d --browser --httpd"),
    row("git", "mergetool", "-t --tool"),
    row("git", "rebase", "-x"),
    row(
        "git",
        "send-email",
        "--cc-cmd --header-cmd --sendmail-cmd --smtp-server --to-cmd",
    ),
    row("git", "submodule foreach", ""),
    row("git", "svn", "--authors-prog"),
    row("git", "web--browse", "-b -t --browser --tool"),
    row("gh", "alias set", ""),
    row("gh", "extension exec", ""),
    row(
        "gh",
        "repo clone",
        "-c -u --config --template --upload-pack",
    ),
    row(
        "hg",
        "",
        "-e --config --editor --program --remotecmd --ssh --tool",
    ),
    row("hg", "bisect", "-c --command"),
    row("hg", "extdiff", "-p"),
    row("hg", "merge", "-t"),
    row("hg", "resolve", "-t"),
    row("jj", "", "--config --config-file --config-toml --tool"),
    row("jj", "util exec", ""),
    row(
        "svn",
        "",
        "--config-dir --config-option --diff-cmd --diff3-cmd --editor-cmd",
    ),
    // Loading, sending and saving elsewhere.
    row(
        "aria2c",
        "",
        "--conf-path --on-bt-download-complete --on-download-complete --on-download-error --on-download-pause \
         --on-download-start --on-download-stop",
    ),
    row("borg", "", "--remote-path --rsh"),
    row("curl", "", "-K --config --engine"),
    row("mail mailx nail s-nail", "", "-E -S -X -Y --exec"),
    row("mutt neomutt", "", "-F -e"),
    row(
        "rclone",
        "",
        "--config --metadata-mapper --password-command --sftp-ssh",
    ),
    row("restic", "", "-o --option --password-command"),
    row("ssh-copy-id", "", "-F -o"),
    row("sshfs", "", "-F -o"),
    row("wget", "", "-e --config --execute --use-askpass"),
    row(
        "yt-dlp youtube-dl",
        "",
        "--alias --config-locations --downloader --downloader-args --exec --exec-before-download --external-downloader \
         --external-downloader-args --ffmpeg-location --js-runtimes --netrc-cmd --plugin-dirs --postprocessor-args --ppa",
    ),
    // Packing and packages.
    row(
        "apt apt-cache apt-get apt-mark aptitude",
        "",
        "-c -o --config-file --option",
    ),
    row("cpio", "", "--rsh-command"),
    row(
        "dpkg",
        "",
        "--post-invoke --pre-invoke --root --status-logger",
    ),
    row("dpkg-architecture", "", "-c --command"),
    row(
        "rpm rpmdb rpmkeys rpmquery rpmspec rpmverify",
        "",
        "-D -E --define --eval --load --macros --pipe --rcfile --root",
    ),
    row("zip", "", "-TT --unzip-command"),
    // Keys.
    row(
        "gpg",
        "",
        "--agent-program --dirmngr-program --exec-path --homedir --keyboxd-program --load-extension --options --photo-viewer",
    ),
    row(
        "openssl",
        "",
        "-config -engine -provider -provider-path -ssl_client_engine",
    ),
    row("openssl", "engine", ""),
    row("ssh-add", "", "-S -s"),
    row("ssh-keygen", "", "-D -w"),
    // Compilers and their like.
    row(
        "c++ c89 c89-gcc c99 c99-gcc cc clang clang++ cpp g++ gcc gfortran",
        "",
        "-B -Xassembler -Xclang -Xlinker -Xpreprocessor -fpass-plugin -fplugin -fuse-ld -load -specs --specs -wrapper",
    )
    .apart()
    .with_option_files(),
    row("gold ld ld.bfd ld.gold ld.lld ld.mold lld mold", "", "-plugin --plugin").with_option_files(),
    row(
        "ar gcc-ar gcc-nm gcc-ranlib nm objcopy objdump ranlib strip",
        "",
        "--plugin",
    )
    .with_option_files(),
    row("exiftool", "", "-@ -config -if -p -printFormat").apart(),
    row("logrotate", "", "-m --mail"),
    row(
        "pandoc",
        "",
        "-F -L --data-dir --filter --lua-filter --pdf-engine --pdf-engine-opt",
    ),
    row(
        "pandoc",
        "",
        "-d -f -r -t -w --defaults --from --read --to --write",
    )
    .with_files(),
    // Pictures, packets and windows.
    row(
        "mpv",
        "",
        "--config-dir --include --input-commands --input-conf --script --script-opts --script-opts-append --scripts -script",
    ),
    row("nmap", "", "--datadir --script -datadir -script"),
    row("pidstat", "-e", ""),
    row("scrot", "", "-e --exec"),
    row("tshark wireshark", "", "-X"),
    // Databases.
    row("psql", "", "--file --output"),
    row("duckdb sqlite sqlite3", "", "-cmd -f -init --cmd --init"),
];

/// Clients of databases that have commands of their own, which run programs, among the SQL that they are given.
pub const SQL_CLIENTS: ProgramNames = ProgramNames(
    "beeline db2 duckdb isql litecli mariadb mssql-cli mycli mysql pgcli snowsql sqlcmd sqlite sqlite3 sqlplus usql vsql",
);

/// Those of them that have no such commands with the option -safe, but for those of [`CODE_WORDS`].
pub const SAFE_SQL_CLIENTS: ProgramNames = ProgramNames("duckdb sqlite sqlite3");

/// Options by which a program is told whose repository to use, and with it, whose configuration, which may name programs. Those of
/// git stand before its command.
pub const REPOSITORY_OPTIONS: &[CodeWords] = &[
    row("git", "", "-C --git-dir --work-tree"),
    row("hg", "", "-R --cwd --repository"),
    row("jj", "", "-R --repository"),
];

/// Options that stand before the command of a program, and whose value is the next argument.
pub const OPTIONS_WITH_VALUE: &[(ProgramNames, &str)] = &[
    (
        GIT,
        "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree",
    ),
    (ProgramNames("gh"), "-R --repo"),
    (
        ProgramNames("hg"),
        "-R --color --config --cwd --encoding --encodingmode --pager --repository",
    ),
    (
        ProgramNames("jj"),
        "-R --at-op --at-operation --color --config --config-file --repository",
    ),
];

pub const GIT: ProgramNames = ProgramNames("git");

pub const PSQL: ProgramNames = ProgramNames("psql");

/// Programs whose option -e is followed by a pattern, with the command that has it.
pub const PATTERN_AFTER_E: &[(ProgramNames, &str)] = &[(GIT, "grep"), (ProgramNames("rg"), "")];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;

    #[test]
    fn each_program_is_in_one_group_and_no_reader_is_in_any() {
        let mut seen = HashSet::new();
        for name in RUNNERS
            .iter()
            .flat_map(ProgramNames::iter)
            .chain(READERS.iter())
        {
            let is_word = name.starts_with(char::is_alphabetic) && !name.ends_with('-');
            assert!(is_word && seen.insert(name), "{name}");
        }
        for name in SURE_RUNNERS.iter().flat_map(ProgramNames::iter) {
            let is_runner = RUNNERS
                .iter()
                .any(|group| group.contains(&ProgramForms::of(name)));
            assert!(is_runner, "{name}");
        }
    }

    #[test]
    fn no_words_are_of_a_program_that_runs_code_whatever_its_arguments() {
        let mut seen = HashSet::new();
        for words in CODE_WORDS {
            for name in words.programs.iter() {
                let is_runner = RUNNERS
                    .iter()
                    .any(|group| group.contains(&ProgramForms::of(name)));
                assert!(!is_runner, "{name}");
                assert!(!words.command.is_empty() || !words.options.is_empty());
                for option in words.options.split_whitespace() {
                    assert!(option.starts_with('-'), "{name} {option}");
                    assert!(
                        seen.insert((name, words.command, option)),
                        "{name} {option}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_program_that_a_link_of_the_system_leads_to_is_known_as_its_other_names_are() {
        let Ok(links) = fs::read_dir("/etc/alternatives") else {
            return;
        };
        let is_known = |name: &str| {
            RUNNERS
                .iter()
                .any(|group| group.contains(&ProgramForms::of(name)))
        };
        for link in links.map(|link| link.expect("a link").path()) {
            let name = link.to_string_lossy();
            // Pages of the manual are named like programs.
            if !is_known(&name) || name.ends_with(".gz") {
                continue;
            }
            if let Ok(file) = link.canonicalize() {
                assert!(is_known(&file.to_string_lossy()), "{name}: {file:?}");
            }
        }
    }
}
