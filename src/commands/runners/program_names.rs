//! Compares programs with lists of names, whatever directory, version or variant the name of a program's file has (pure).

/// Names of programs.
pub struct ProgramNames(pub &'static str);

/// Variants of programs, as distributions name their files: emacs-nox, bash-static, python3-dbg.
const VARIANTS: &str = "athena basic beta bin dbg debug default dev full gnu gtk huge jit lite lucid minimal nightly nox \
                        pgtk qt real small stable static tiny wrapped";

/// What names of variants have only behind a dot: cmd.exe, nc.traditional. Another extension, as in find.sh and find.notes, says
/// that it is a program of somebody's own.
const EXTENSIONS: &str = "com distrib exe netkit openbsd orig traditional wrapper";

/// How the names of architectures begin, as in x86_64-linux-gnu-gcc.
const ARCHITECTURES: &str = "aarch64 alpha amd64 arm avr hppa i386 i486 i586 i686 ia64 loongarch m68k mips msp430 powerpc \
                             ppc riscv s390 sh4 sparc wasm x86 xtensa";

impl ProgramNames {
    pub fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.split_whitespace()
    }

    /// Whether a word, which may have a directory and a version, is one of these names.
    pub fn has_word(&self, word: &str) -> bool {
        // A digit at the end of a name may be a version, or belong to the name: m4.
        let (name, full) = (name_of(word), file_name(word));
        self.iter().any(|known| known == name || known == full)
    }

    /// Whether a program has one of these names. Some file systems find a file by its name in other letters.
    pub fn contains(&self, program: &ProgramForms) -> bool {
        let has = |known: &str| {
            program
                .0
                .iter()
                .any(|name| name.eq_ignore_ascii_case(known))
        };
        self.iter().any(has)
    }
}

/// The names that a program is known by: that of its file, and those of which it may be a version or a variant.
pub struct ProgramForms<'a>(Vec<&'a str>);

impl ProgramForms<'_> {
    /// Returns the program that a word or a path names.
    pub fn of(word: &str) -> ProgramForms<'_> {
        let full = file_name(word);
        let variants = without_architecture(full).into_iter().map(without_variant);
        let mut names = Vec::new();
        for name in std::iter::once(full).chain(variants) {
            names.extend([name, name_of(name)]);
        }
        names.dedup();
        ProgramForms(names)
    }

    /// Whether it is a dynamic linker, such as ld-linux-x86-64.so.2, which runs the program that it is given.
    pub fn is_dynamic_linker(&self) -> bool {
        let name = self.0.first().copied().unwrap_or_default();
        let mut beginnings = ["ld-", "ld.so", "ld32.so", "ld64.so"].into_iter();
        name.contains(".so") && beginnings.any(|beginning| name.starts_with(beginning))
    }
}

/// Returns the name of a program without its directory, and without digits and dots at its end.
fn name_of(program: &str) -> &str {
    file_name(program).trim_end_matches(|last: char| last.is_ascii_digit() || last == '.')
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// Returns a name, and what it may be without the system that it is for: each part at its end, if it begins with an architecture.
fn without_architecture(name: &str) -> Vec<&str> {
    let mut names = vec![name];
    if is_architecture(name) {
        let hyphens = name.match_indices('-');
        names.extend(hyphens.map(|(hyphen, _)| &name[hyphen + 1..]));
    }
    names
}

fn is_architecture(name: &str) -> bool {
    let mut beginnings = ARCHITECTURES.split_whitespace();
    beginnings.any(|beginning| name.starts_with(beginning))
}

/// Returns a name without what says which variant it is: vim.tiny, nc.openbsd, cmd.exe, node-22, .python-wrapped.
fn without_variant(name: &str) -> &str {
    // So Nix calls the file behind a script.
    let name = name.strip_prefix('.').unwrap_or(name);
    let is_extension = |extension: &str| {
        let mut known = EXTENSIONS.split_whitespace();
        is_variant(extension) || known.any(|known| extension.eq_ignore_ascii_case(known))
    };
    let name = match name.split_once('.') {
        Some((before, extension)) if is_extension(extension) => before,
        _ => name,
    };
    let mut hyphens = name.match_indices('-');
    let variant = hyphens.find(|(hyphen, _)| is_variant(&name[hyphen + 1..]));
    variant.map_or(name, |(hyphen, _)| &name[..hyphen])
}

/// Whether the part of a name that follows a hyphen begins with a version, a variant or an architecture.
fn is_variant(rest: &str) -> bool {
    let part = rest.split('-').next().unwrap_or_default();
    let mut variants = VARIANTS.split_whitespace();
    part.starts_with(|first: char| first.is_ascii_digit())
        || variants.any(|variant| variant == name_of(part))
        || is_architecture(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_program_is_known_by_its_name_without_directory_version_and_variant() {
        let names = ProgramNames("bash busybox cmd emacs gcc g++ m4 nc node perl python R vim zsh");
        // A program, and whether it is known as a program, and as a word among the arguments of another.
        for [program, as_program, as_word] in rows(
            "
            python                      | yes | yes
            python3                     | yes | yes
            python3.11                  | yes | yes
            /usr/bin/python3.           | yes | yes
            m4                          | yes | yes
            /m4                         | yes | yes
            m4-1.4                      | yes | -
            R                           | yes | yes
            python3-dbg                 | yes | -
            python3.11-dbg              | yes | -
            /usr/bin/vim.tiny           | yes | -
            vim.basic                   | yes | -
            vim.gtk3                    | yes | -
            nc.openbsd                  | yes | -
            bash-static                 | yes | -
            busybox.static              | yes | -
            emacs-nox                   | yes | -
            emacs-gtk                   | yes | -
            emacs-gtk3                  | yes | -
            emacs-28.2-lucid            | yes | -
            zsh-5.9                     | yes | -
            node-22                     | yes | -
            perl5.36-x86_64-linux-gnu   | yes | -
            perl-x86_64-linux-gnu       | yes | -
            x86_64-linux-gnu-gcc        | yes | -
            x86_64-linux-gnu-g++-12     | yes | -
            arm-none-eabi-gcc-13.2      | yes | -
            avr-gcc                     | yes | -
            .python3-wrapped            | yes | -
            cmd.exe                     | yes | -
            /mnt/c/Windows/CMD.EXE      | yes | -
            Python                      | yes | -
            m41                         | -   | -
            m                           | -   | -
            python3-config              | -   | -
            python.sh                   | -   | -
            node.weather                | -   | -
            vim.notes                   | -   | -
            vim.notes-1.2               | -   | -
            nc.traditional              | yes | -
            python3.11.exe              | yes | -
            perl.distrib                | yes | -
            gcc-ar                      | -   | -
            linux-gnu-gcc               | -   | -
            node_exporter               | -   | -
            zshx                        | -   | -
            python/                     | -   | -
            .                           | -   | -
            -                           | -   | -",
        ) {
            let found = names.contains(&ProgramForms::of(program));
            assert_eq!(found, as_program == "yes", "{program}");
            assert_eq!(names.has_word(program), as_word == "yes", "{program}");
        }
    }
}
