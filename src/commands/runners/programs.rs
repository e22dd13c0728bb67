//! The names of programs that run code that somebody gives them (pure).

/// Names of programs.
pub struct ProgramNames(&'static str);

impl ProgramNames {
    /// Whether a program, which may have a directory and a version, has one of these names.
    pub fn contains(&self, program: &str) -> bool {
        // A digit at the end of a name may be a version, or belong to the name: m4.
        let (name, full) = (name_of(program), file_name(program));
        let mut names = self.0.split_whitespace();
        names.any(|known| known == name || known == full)
    }
}

/// Returns the name of a program without its directory, and without digits and dots at its end.
pub fn name_of(program: &str) -> &str {
    file_name(program).trim_end_matches(|last: char| last.is_ascii_digit() || last == '.')
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// Shells.
const SHELLS: ProgramNames = ProgramNames(
    "ash bash busybox csh dash elvish fish ksh lksh loksh mksh murex nu oksh osh pwsh rbash rksh rzsh sash sh tcsh toybox \
     xonsh yash ysh zsh",
);

/// Interpreters and compilers, which run the program that they are given.
const INTERPRETERS: ProgramNames = ProgramNames(
    "asy awk babashka bb bpftrace bun clisp clj clojure crystal csi d8 dart dc deno ecl elixir erl escript expect gawk \
     gdb gforth ghc ghci gnuplot goawk gprolog groovy gs gsed guile iex ipython irb java jjs jruby jshell julia jython \
     kotlin latex lldb lua luajit lualatex luatex m4 matlab mawk maxima micropython mongo mongosh mono mysqlsh nawk nim \
     node nodejs ocaml octave octave-cli original-awk osascript pdb pdflatex pdftex perl php pry psysh pypy python qjs R \
     racket raku Rscript ruby runghc runhaskell sage sbcl scala scheme scilab sed stap swift swipl tclsh tex ts-node tsx \
     utop wish xelatex xetex zig",
);

/// Editors and pagers, which have commands that run programs.
const EDITORS: ProgramNames = ProgramNames(
    "ed elvis emacs emacsclient ex gvim helix hx jed jmacs joe jove kak less mg micro more nano neovim nvim pico rnano \
     rvim vi vile vim vimdiff vimx vis zile",
);

/// Programs whose arguments are, or name, another program.
const WRAPPERS: ProgramNames = ProgramNames(
    "at batch bsdtar bwrap capsh cgexec choom chpst chroot chrt cpulimit crontab dbus-run-session direnv doas dumb-init \
     entr env exo-open fakechroot fakeroot faketime fd fdfind find firejail flatpak flock fzf gio gnome-open gosu gtar \
     gtk-launch gxargs hyperfine ionice ip kde-open ltrace mpiexec mpirun multitime nice nohup nsenter numactl open \
     parallel perf pexec pkexec prlimit proot proxychains rlwrap rr run-parts runcon runuser sbatch schroot screen script \
     setarch setpriv setsid setuidgid sg srun ssh-agent start-stop-daemon stdbuf strace su su-exec sudo sudo-rs \
     systemd-inhibit systemd-run tar taskset tcpdump time timeout tini tmux torify torsocks trickle tsocks uftrace \
     unbuffer unshare valgrind viddy watch watchexec wine xargs xdg-open xterm xvfb-run zellij",
);

/// Builders and package managers, whose files and packages are programs that they run.
const BUILDERS: ProgramNames = ProgramNames(
    "ant asdf bazel brew bundle bunx cabal cargo cmake composer conda corepack dotnet gem gmake go gradle gradlew guix \
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

/// Programs that run what somebody gives them, whatever their arguments, by the reason why they do.
pub const RUNNERS: &[ProgramNames] = &[
    SHELLS,
    INTERPRETERS,
    EDITORS,
    WRAPPERS,
    BUILDERS,
    CONTAINERS,
    REMOTE,
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

/// Programs that run no other, whatever their arguments, so that a word among these is hardly ever a program. rg is one unless
/// [`PROGRAM_OPTIONS`] are there.
pub const READERS: ProgramNames = ProgramNames(
    "basename cal cat cmp comm cut date df dig dirname du echo egrep fgrep file fold free grep head hexdump host id join jq \
     locate ls lscpu lsblk md5sum nl paste pgrep printf ps realpath rev rg seq sha256sum stat tac tail tr tree uname uniq uptime \
     wc whatis whois xxd",
);

/// Options of rg whose value names a program.
pub const PROGRAM_OPTIONS: &[&str] = &["--pre", "--hostname-bin"];

/// Those of [`RUNNERS`] whose name is more often a word of another program's, as in `gh issue list --state open`: it counts as the
/// first word of a command only. The programs that run it are themselves known.
pub const WORDS_OF_OTHERS: ProgramNames = ProgramNames("ip open");

/// Programs that act by the name that they are called by: what is a link to one is not called that.
pub const MANY_IN_ONE: ProgramNames = ProgramNames("busybox toybox");

/// Programs that run others if an option says so: git and its brothers, those that search, sort, pack, show and load, and
/// compilers with plugins.
pub const RUNNERS_BY_OPTION: ProgramNames = ProgramNames(
    "ack ag apt apt-get aptitude aria2c bat batcat c++ cc clang clang++ cpio delta diff3 dpkg exiftool g++ gcc gh git gpg \
     gsort hg ld logrotate man mpv mutt nmap openssl pandoc psql rg rpm sdiff sort split ssh-keygen svn tshark wget yt-dlp \
     zip",
);

/// Clients of databases that have commands of their own, which run programs, among the SQL that they are given.
pub const SQL_CLIENTS: ProgramNames = ProgramNames(
    "beeline db2 duckdb isql litecli mariadb mssql-cli mycli mysql pgcli snowsql sqlcmd sqlite sqlite3 sqlplus usql vsql",
);

/// Those of them that have no such commands with the option -safe.
pub const SAFE_SQL_CLIENTS: ProgramNames = ProgramNames("duckdb sqlite sqlite3");

/// Programs whose option -e is followed by a pattern.
pub const PATTERN_AFTER_E: ProgramNames = ProgramNames("git rg");

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_program_is_in_one_group_and_no_reader_is_in_any() {
        let mut seen = HashSet::new();
        for name in RUNNERS
            .iter()
            .flat_map(|names| names.0.split_whitespace())
            .chain(READERS.0.split_whitespace())
        {
            let is_word = name.starts_with(char::is_alphabetic) && !name.ends_with('-');
            assert!(is_word && seen.insert(name), "{name}");
        }
        for name in SURE_RUNNERS
            .iter()
            .flat_map(|names| names.0.split_whitespace())
        {
            let is_runner = RUNNERS.iter().any(|group| group.contains(name));
            assert!(is_runner, "{name}");
        }
    }

    #[test]
    fn a_program_is_known_by_its_name_without_directory_and_version() {
        let names = ProgramNames("python m4");
        for (program, is_known) in [
            ("python", true),
            ("python3", true),
            ("python3.11", true),
            ("/usr/bin/python3.", true),
            ("m4", true),
            ("/m4", true),
            ("m41", false),
            ("m", false),
            ("python3-config", false),
            ("python/", false),
            ("Python", false),
            ("", false),
        ] {
            assert_eq!(names.contains(program), is_known, "{program}");
        }
    }
}
