//! Which commands run code that somebody gives them (pure).

/// Shells, interpreters, and programs that run others.
const RUNNERS: &[&str] = &[
    "awk",
    "bash",
    "bun",
    "busybox",
    "chroot",
    "dash",
    "deno",
    "doas",
    "docker",
    "env",
    "find",
    "fish",
    "gawk",
    "gdb",
    "java",
    "ksh",
    "lua",
    "make",
    "mawk",
    "nawk",
    "nice",
    "node",
    "nodejs",
    "nohup",
    "npm",
    "npx",
    "parallel",
    "perl",
    "php",
    "pipx",
    "podman",
    "pwsh",
    "pypy",
    "python",
    "rbash",
    "Rscript",
    "ruby",
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
    "tclsh",
    "timeout",
    "unshare",
    "uv",
    "uvx",
    "watch",
    "xargs",
    "zsh",
];

/// The element of a command that names a program which runs code that somebody gives it: the first element, or a later one
/// that is a bare word or the absolute path of a program. Where the code stands is not guessed. `is_program` says whether a
/// path is that of a program.
pub fn runner(run: &[String], is_program: impl Fn(&str) -> bool) -> Option<&str> {
    for (index, element) in run.iter().enumerate() {
        let may_be_program = index == 0 || !element.contains('/') || is_program(element);
        if may_be_program && runs_code(element, &run[index + 1..]) {
            return Some(element);
        }
    }
    None
}

/// Whether a program runs code that somebody gives it, with these arguments.
fn runs_code(program: &str, arguments: &[String]) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    // The configuration of git can name programs.
    let is_configured = arguments.iter().any(|argument| argument == "-c");
    RUNNERS.contains(&name) || (name == "git" && is_configured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_code_is_found_wherever_it_stands() {
        let found = |line: &str| {
            let run: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let is_program = |path: &str| path.starts_with("/bin/");
            runner(&run, is_program).map(str::to_owned)
        };
        let names = "sh bash dash zsh fish ksh rbash busybox pwsh tclsh python pypy perl ruby node nodejs deno bun php lua java \
                     Rscript awk gawk mawk nawk sed env nice nohup timeout setsid stdbuf xargs parallel find make tar watch strace \
                     gdb ssh sudo doas su chroot unshare systemd-run docker podman npx npm uv uvx pipx";
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
            ("git grep x", None),
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
