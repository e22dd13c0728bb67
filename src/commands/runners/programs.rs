//! The names of programs that run code that somebody gives them (pure).

use super::program_names::{ProgramForms, ProgramNames};

/// Shells.
const SHELLS: ProgramNames = ProgramNames(
    "ash bash bsd-csh busybox csh dash elvish fish hush ksh lksh loksh lshell mksh mrsh murex nu oksh osh pdksh pwsh rbash \
     rksh rzsh sash scsh sh smrsh static-sh tcsh toybox xonsh yash ysh zsh",
);

/// Interpreters and compilers, which run the program that they are given.
const INTERPRETERS: ProgramNames = ProgramNames(
    "a68g abcl amm asy awk babashka babel bats bb bpftrace bpython bsh bun busted ccl cgdb chez chezscheme chibi-scheme \
     cling clisp clj clojure cmd codecept coverage cpan crystal cscript csharp csi cypress d8 dart dbx dc delve deno dlv \
     dmd dotnet-script drgn drush duk ecl edb-debugger elixir erl es escript eslint evcxr execlineb expect expectk fennel \
     file-rename fricas fsharpi fsi gap gawk gdb gdbserver gdbtui gforth ghc ghci giac gnuplot goawk gore gosh gp gprolog \
     graalpy gremlin gremlin.sh gretlcli groovy groovysh gs gsed gsi guestfish guile gunicorn hermes hy iex ion ipdb ipy \
     ipython irb janet java jbang jdb jest jexec jimsh jjs jruby jrunscript jsc jsh jshell julia jupyter jython karma \
     kawa kotlin kotlinc kscript latex latexmk lldb lldb-server lua luajit lualatex luatex luau lune M2 m4 magma maple \
     matlab mawk maxima micropython mit-scheme mlr mocha mongo mongosh mono mpost mshta mujs mysqlsh nawk newlisp nim njs \
     node nodejs nosetests nyc ocaml octave octave-cli oorexx original-awk osascript pdb pdflatex pdftex perl phing php \
     php-cgi phpspec phpunit picolisp pig pil playwright polymake posh powershell prename prove pry psysh ptipython \
     ptpython pudb py.test pydoc pypy pyspark pytest python qjs quarto R racket radare2 raku rc rdmd regina rexx rhino \
     rizin Rscript rspec ruby rundll32 runghc runhaskell rust-script sage sbcl scala scala-cli scheme scilab sed Singular \
     slsh spark-shell spark-submit sparkR sphinx-build stap stklos swift swipl tarantool tcc tclsh tectonic tex texlua \
     tjs trial ts-node tsx utop uvicorn vite vitest wapptclsh webpack wish wolframscript workerd wp wscript xelatex xetex \
     yaegi zig zx",
);

/// Editors and pagers, which have commands that run programs.
const EDITORS: ProgramNames = ProgramNames(
    "aee broot code code-insiders codium cursor dte ed editor ee elvis emacs emacsclient eview ex gview gvim gvimdiff helix \
     hx jed jmacs joe joshuto jove jpico jstar kak less levee lf lv mc mcedit mcview mg micro mle moe more most mvim nano \
     ne neovide neovim nnn nvi nvim nvr pager pg pico qe ranger rgview rgvim rjoe rnano rview rvim select-editor \
     sensible-editor sensible-pager subl sudoedit vi vidir vidoas view vifm vigor vigr vile vim vimdiff vimpager vimx vipe \
     vipw vis visudo vscodium xemacs xplr yazi zile",
);

/// Programs whose arguments are, or name, another program.
const WRAPPERS: ProgramNames = ProgramNames(
    "aa-exec abduco alacritty anacron arch arch-chroot argv0 at authbind autoexpect awesome-client background backtick \
     batch beesu box64 box86 bsdtar busctl bwrap byobu caffeinate capsh catatonit catchsegv cgexec choom chpst chronic \
     chroot chrt cliclick command compose concurrently condor_run coresched coreutils cow-shell cowbuilder cpulimit crontab \
     cross-env cset daemon daemonize dbus-launch dbus-run-session dbus-send debconf deepin-terminal define direnv dislocate \
     distrobox-enter distrobox-host-exec doas doasedit dotenv dotenvx dotool dtach dtrace dtruss dumb-init dvtm dzdo \
     eatmydata edit elgetopt elgetpositionals elglob emptyenv enosys entr env env-cmd envchain envconsul envdir envfile \
     envuidgid eterm execline-cd execline-umask exim exo-open export fakechroot fakeroot fakeroot-ng fakeroot-sysv \
     fakeroot-tcp faketime fbterm fcrontab fd fdblock fdclose fdfind fdmove fdreserve fdswap fex fexbash fghack find \
     firejail flatpak flatpak-spawn flock foot footclient forbacktickx foreground foreman forever formail forstdin forx fzf \
     gamemoderun gamescope gchroot gdbus genv gfind ghostty gio gksu gksudo gnice gnohup gnome-open gnome-terminal gosu \
     gotty graftcp grc gstdbuf gtar gtester gtime gtimeout gtk-launch guake gxargs heaptrack herbstclient heredoc hivemind \
     homeof honcho host-spawn hwloc-bind hyperfine hyprctl i3-msg i386 if ifelse ifne ifte ifthenelse importas incrontab \
     ionice ip jsrun kde-open kdesu kdesudo keep-one-running kernprof kgx kibitz kioclient kitten kitty koi8rxterm konsole \
     ksu ktrace launchctl lckdo ledit likwid-perfctr likwid-pin linux32 linux64 logsave loopwhilex ltrace lxqt-sudo lxterm \
     lxterminal maildrop mangohud mate-terminal memray memusage minijail0 mlterm mpiexec mpirun mprof mrxvt msgexec \
     msgfilter multidefine multilog multisubstitute multitime muvm newgrp nice niceload niri nocache nodemon nohup nq \
     nsenter nsjail numactl ocount onchange open openvt operf optirun orterun overmind parallel pee perf pexec pexpect \
     pfexec pgrphack pipeline piperw pipesz pkexec please pm2 posix-cd posix-umask ppss prime-run primusrun print privbind \
     prlimit process-compose procmail proot proxychains ptyxis pueue py-spy pyinstrument qdbus qdbus-qt qemu qemu-system \
     qrsh qsub qterminal qtile redirfd reflex riverctl rlfe rlwrap rofi rootlesskit roxterm rr run-mailcap run-one \
     run-parts run-this-one run0 runblock runcon runsv runsvdir runtool runuser rxvt rxvt-unicode s6-applyuidgid s6-chroot \
     s6-env s6-envdir s6-envuidgid s6-fghack s6-ioconnect s6-ipcclient s6-ipcserver s6-log s6-maximumtime s6-nice \
     s6-notifyoncheck s6-setlock s6-setsid s6-setuidgid s6-softlimit s6-sudo s6-supervise s6-svlisten s6-svscan \
     s6-tcpclient s6-tcpserver s6-tlsclient s6-tlsserver sakura salloc samply sandbox-exec sbatch sbuild scalene schedtool \
     schroot schtasks screen script scriptlive see sem service setarch setlock setpriv setsid setuidgid sg shpool sk \
     socksify softlimit sotruss spawn-fcgi srun ssh-agent sslclient sslserver st start-stop-daemon stdbuf strace stterm su \
     su-exec sudo sudo-rs supervise supervisord svlogd svscan swaymsg sysdig systemd-cat systemd-dissect systemd-inhibit \
     systemd-notify systemd-pty-forward systemd-run systemd-socket-activate systemd-vmspawn tar taskset tcpclient tcpdump \
     tcpserver terminator terminology termite tilda tilix time timeout tini tmate tmux tmuxinator tmuxp torify torsocks \
     trace-cmd trap trickle truss tryexec ts tsocks tsp ttyd uclampset uftrace uname26 unbuffer unexport unshare urxvt \
     urxvtc urxvtcd usewithtor uxterm valgrind vglrun viddy viztracer watch watchexec watchman watchman-make watchmedo \
     weston-terminal wezterm when-changed wine with-contenv withstdinas wtype x-terminal-emulator x86_64 xargs xcrun \
     xctrace xdg-open xdotool xe xfce4-terminal xinit xjobs xkibitz xterm xtrace xvfb-run xwfb-run yad yakuake ydotool \
     zellij zrun zutty",
);

/// Builders and package managers, whose files and packages are programs that they run.
const BUILDERS: ProgramNames = ProgramNames(
    "abuild act ant asdf b2 bazel bjam bmake brew buck bundle bundler bunx cabal cargo catkin_make cmake colcon composer \
     conda corepack cpanm ctest debuild devbox devenv doit dotnet dpkg-buildpackage dub dune earthly easy_install ebuild \
     emerge esy fab fastlane flit flox flutter fnm fvm gbp gem ghcup gmake gn go go-task goenv gradle gradlew grunt guix \
     gulp hatch inv invoke jam jenv just lein lerna mage make makepkg makers mamba maven meson micromamba mill mise mix \
     mmdebstrap msbuild mvn mvnd mvnw nimble ninja nix nix-build nix-instantiate nix-shell nodenv nox npm npx nx opam pants \
     paru pbuilder pdebuild pdm pew pex phpenv pip pip-run pipenv pipx pixi plenv plz pmake pnpm pnpx pod poetry pre-commit \
     premake pyenv rails rake rbenv rebar redo rpmbuild run-p run-s rustup rvm rye sbt scons shake shards shiv spack stack \
     task thor tox tup turbo uv uvx volta waf xcodebuild xmake yarn yarnpkg yay",
);

/// Programs that run others in containers, clusters and machines.
const CONTAINERS: ProgramNames = ProgramNames(
    "ansible ansible-console ansible-playbook ansible-pull apptainer bolt buildah ch-run chef chef-client colima crictl \
     crosvm crun ctr distrobox docker docker-compose enroot finch firecracker guestmount helm helmfile incus k3s k9s knife \
     krun kubecolor kubectl kustomize limactl lxc lxc-attach lxc-execute lxc-start lxc-unshare lxc-usernsexec machinectl \
     microk8s minikube mkosi multipass nerdctl nomad oc packer pct podman podman-compose pulumi puppet pyinfra runc runsc \
     salt salt-call salt-ssh serverless singularity skaffold systemd-nspawn terraform terragrunt tofu toolbox udocker \
     vagrant virsh virt-builder virt-customize virt-install virt-sysprep wsl x11docker youki zlogin",
);

/// Programs that reach a shell on another machine, or through a connection.
const REMOTE: ProgramNames = ProgramNames(
    "adb autossh clush clusterssh cryptcat cssh cu dbclient dsh et evil-winrm ftp kermit lftp minicom mosh mosh-client \
     mosh-server nc ncat netcat parallel-scp parallel-ssh pdsh picocom plink prsync pscp psexec psftp pssh rcp rdist rexec \
     rlogin rsh rsync scp sftp slogin socat ssh sshpass sshuttle telnet tnftp tsh unison websocat winexe zssh",
);

/// Agents, which let a model run programs.
const AGENTS: ProgramNames = ProgramNames(
    "agent aichat aider amp auggie claude cline codex cody copilot crush cursor-agent devin droid forge gemini goose \
     gptme grok iflow interpreter junie kimi kiro kiro-cli letta llm openclaw opencode openhands pi plandex qchat qodo \
     qwen sgpt swe-agent sweagent tgpt vibe",
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

/// Those of [`RUNNERS`] and [`SQL_CLIENTS`] whose name is more often a word of another program's, as in
/// `gh issue list --state open`: it counts as the first word of a command only. The programs that run it are themselves known.
pub const WORDS_OF_OTHERS: ProgramNames = ProgramNames(
    "act agent aider amp arch b2 babel background bats bolt busted ch chc chef claude cline cmd code codex cody \
     command compose copilot coverage crush cu cursor cypress daemon define devin doit dotenv droid drush dub dune \
     edit editor ee es eslint et export fab fex finch flutter foot foreground foreman forever forge gap gemini gn \
     goose gp gremlin grok grunt guake gulp gunicorn helm hermes hy i386 if interpreter inv invoke ion ip jam janet jest \
     junie jupyter karma kermit kimi kiro kitten kitty konsole letta lf llm lv mage magma maple mc mill mocha moe \
     most mujs ne niri nomad nq nx open opencode packer pager pants pee pg phpunit pi pig pipeline playwright please \
     pod posh powershell print py.test pytest qe qemu qwen rails ranger rc redo reflex regina rhino rspec see sem \
     service shake shards Singular sk st supervise task terminator thor trap trial ts tsp turbo unison uvicorn vibe \
     view vite vitest webpack wp x86_64 xe yay",
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
    letters: LetterOptions,
    pub value: CodeValue,
    pub at_file: AtFile,
}

/// Where an option of one letter may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterOptions {
    /// Also behind others in one element.
    Joined,
    /// In an element of its own.
    Apart,
}

/// What the value of an option may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CodeValue {
    /// Also the name of a program, or a command that begins with one.
    Program,
    /// A file of code, or the name of what is no program.
    NoProgram,
}

/// What an argument @FILE is, wherever it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtFile {
    /// Like any other argument.
    Argument,
    /// It stands for the options in this file.
    Options,
}

const fn row(programs: &'static str, command: &'static str, options: &'static str) -> CodeWords {
    CodeWords {
        programs: ProgramNames(programs),
        command,
        options,
        letters: LetterOptions::Joined,
        value: CodeValue::Program,
        at_file: AtFile::Argument,
    }
}

impl CodeWords {
    /// Says that options of one letter are never joined.
    const fn apart(mut self) -> CodeWords {
        self.letters = LetterOptions::Apart;
        self
    }

    /// Says that the values are files of code, or names of what is no program.
    const fn with_files(mut self) -> CodeWords {
        self.value = CodeValue::NoProgram;
        self
    }

    /// Says that an argument @FILE, wherever it stands, is replaced by the options in this file.
    const fn with_option_files(mut self) -> CodeWords {
        self.at_file = AtFile::Options;
        self
    }

    /// Whether these are words of a program.
    pub fn are_of(&self, program: &ProgramForms) -> bool {
        self.programs.contains(program)
    }

    /// Whether they mean the same behind every command of the program.
    pub fn are_of_all_commands(&self) -> bool {
        self.command.is_empty()
    }

    /// Whether the model may write one of the words of the command, which the program obeys. `given` are the words that the
    /// program has as its command; `model_writes_in` says of each whether the model may write in it.
    pub fn may_be_written(&self, given: &[&str], model_writes_in: impl Fn(&str) -> bool) -> bool {
        let words = self.command.split_whitespace();
        let mut places = words
            .take_while(|word| !word.starts_with('-'))
            .zip(given)
            .skip_while(|(wanted, word)| wanted == *word);
        places.next().is_some_and(|(_, word)| model_writes_in(word))
    }

    /// Returns the text in an element that these words are about, which is code or a path, if they are before it. `before` has the
    /// elements between the program and this one.
    pub fn text_after<'e>(&self, before: &[String], element: &'e str) -> Option<&'e str> {
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
            let joins =
                self.letters == LetterOptions::Joined && others.chars().all(char::is_alphabetic);
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
    // Services, also those of another machine.
    row(
        "hostnamectl localectl loginctl systemctl systemd-analyze timedatectl",
        "",
        "-H --host",
    ),
    row("systemctl", "edit", ""),
    row("systemctl", "enable", ""),
    row("systemctl", "link", ""),
    row("systemctl", "reenable", ""),
    row("systemctl", "set-environment", ""),
    row("tailscale", "ssh", ""),
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
    row("ginstall install", "", "--strip-program"),
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
    row("homectl", "with", ""),
    row("pidstat", "-e", ""),
    row("snap", "run", ""),
    row("scrot", "", "-e --exec"),
    row("tshark wireshark", "", "-X"),
    // Databases.
    row("psql", "", "--file --output"),
    row("duckdb sqlite sqlite3", "", "-cmd -f -init --cmd --init"),
];

/// Commands of a program that run nothing that is among their words, with the options that may stand before them.
pub struct ReadingCommands {
    pub programs: ProgramNames,
    options: &'static str,
    commands: &'static str,
}

impl ReadingCommands {
    /// Whether the arguments of the program begin with one of these commands. An option that is not known may have a value, so
    /// that the word after it is no command.
    pub fn begin(&self, arguments: &[String]) -> bool {
        let is_among =
            |words: &str, word: &String| words.split_whitespace().any(|known| known == word);
        let mut rest = arguments.iter();
        let first = rest.find(|argument| !is_among(self.options, argument));
        first.is_some_and(|command| is_among(self.commands, command))
    }
}

pub const READING_COMMANDS: &[ReadingCommands] = &[ReadingCommands {
    programs: ProgramNames("systemctl"),
    options: "--full --global --no-legend --no-pager --plain --quiet --system --user -l -q",
    commands: "cat help is-active is-enabled is-failed is-system-running list-dependencies list-jobs list-sockets \
               list-timers list-unit-files list-units show show-environment status",
}];

/// Clients of databases that have commands of their own, which run programs or write any file, among the SQL that they are given.
pub const SQL_CLIENTS: ProgramNames = ProgramNames(
    "beeline bteq ch chc chl clickhouse clickhouse-client clickhouse-local cockroach cqlsh db2 dbaccess dolt duckdb \
     edb-psql gsql hive impala-shell iredis isql isql-fb litecli mariadb mclient mssql-cli mycli mysql nzsql pgcli \
     snowsql spark-sql sqlcmd sqlite sqlite3 sqlline sqlplus sqsh usql vsql ysqlsh",
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
    use crate::unix::tests::skip;

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
            return skip("there is no /etc/alternatives");
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
