//! Which commands run code that somebody gives them (pure).

/// Shells, interpreters, and programs that run others.
const RUNNERS: &[&str] = &[
    "ash",
    "awk",
    "bash",
    "bun",
    "busybox",
    "bwrap",
    "chroot",
    "chrt",
    "csh",
    "dash",
    "deno",
    "doas",
    "docker",
    "elvish",
    "env",
    "expect",
    "find",
    "firejail",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "guile",
    "ionice",
    "java",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "make",
    "mawk",
    "mksh",
    "nawk",
    "nice",
    "node",
    "nodejs",
    "nohup",
    "npm",
    "npx",
    "nsenter",
    "nu",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pipx",
    "pkexec",
    "podman",
    "pwsh",
    "pypy",
    "python",
    "rbash",
    "Rscript",
    "ruby",
    "runuser",
    "script",
    "sed",
    "setsid",
    "sh",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tar",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "toybox",
    "ts-node",
    "tsx",
    "unshare",
    "uv",
    "uvx",
    "watch",
    "xargs",
    "xonsh",
    "yash",
    "zsh",
];

/// Returns the element of a command that names a program which runs code that somebody gives it: the first element, or a later
/// one that is a bare word or the absolute path of a program. Where the code is, is not guessed. `file` finds the program's file
/// behind all links: that of the first element, or of a path.
pub fn runner(run: &[String], file: impl Fn(&str) -> Option<String>) -> Option<&str> {
    for (index, element) in run.iter().enumerate() {
        let is_path = element.contains('/');
        let found = if index == 0 || is_path {
            file(element)
        } else {
            None
        };
        let may_be_program = index == 0 || !is_path || found.is_some();
        let arguments = &run[index + 1..];
        if may_be_program && runs_code(element, arguments) {
            return Some(element);
        }
        if let Some(found) = found
            && !MANY_IN_ONE.contains(&name_of(&found))
            && runs_code(&found, arguments)
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
    RUNNERS.contains(&name) || (name == "git" && arguments.iter().any(is_configured))
}

/// Returns the name of a program without its directory, and without digits and dots at its end.
fn name_of(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_code_is_found_anywhere_in_a_command() {
        let found = |line: &str| {
            let run: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let file = |path: &str| match path {
                "/bin/link" | "link" => Some("/usr/bin/bash".to_owned()),
                "/bin/config" => Some("/usr/bin/git".to_owned()),
                "/bin/cat" | "cat" => Some("/bin/busybox".to_owned()),
                _ => path.starts_with("/bin/").then(|| path.to_owned()),
            };
            runner(&run, file).map(str::to_owned)
        };
        let names = "sh bash dash zsh fish ksh rbash busybox pwsh tclsh python pypy perl ruby node nodejs deno bun php lua java \
                     Rscript awk gawk mawk nawk sed env nice nohup timeout setsid stdbuf xargs parallel find make tar watch strace \
                     gdb ssh sudo doas su chroot unshare systemd-run docker podman npx npm uv uvx pipx \
                     ash csh tcsh mksh yash nu elvish xonsh toybox luajit julia guile expect osascript tsx ts-node nsenter runuser \
                     pkexec ionice chrt taskset flock bwrap firejail script time";
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
