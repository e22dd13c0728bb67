//! Reads the files that say what git ignores, within limits, and decides which files of a directory are ignored.

mod git_config;
mod git_files;
mod git_pattern;
mod ignore_file;
mod rule_set;
#[cfg(test)]
mod test_repository;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{self, Component, Path, PathBuf};
use std::rc::Rc;

use crate::error::Error;
use crate::settings::Environment;
use git_files::{GitFileFinder, GitFiles};
use rule_set::{RuleSet, Ruling};

/// The most bytes of an ignore file.
const MAX_IGNORE_FILE: u64 = 1_000_000;

/// The most links on the way to a file; systems follow no more.
const MAX_LINKS: usize = 40;

/// The rules that apply at a place of a walk, which enters a directory before it comes to the files in it.
pub struct IgnoreRules<'a> {
    /// The rules at the places where links lead, by the directory that they are looked at from.
    of_targets: HashMap<PathBuf, IgnoreRules<'a>>,
    git: Rc<GitFileFinder<'a>>,
    /// Where the walk began.
    root: PathBuf,
    /// The same directory, without links.
    real_root: PathBuf,
    /// The directories from the root of the file system down to the one whose files are looked at.
    levels: Vec<RuleLevel>,
}

/// The rules that one directory adds.
struct RuleLevel {
    /// Without links above the beginning of the walk.
    directory: PathBuf,
    /// The rules of `.ignore`.
    general: RuleSet,
    /// The rules of `.gitignore`, which apply in a repository only.
    of_git: RuleSet,
    /// The rules that apply in all of the repository whose root this directory is.
    repository: Option<RepositoryRules>,
    /// What these rules and those of the levels above cost.
    cost: usize,
}

/// The rules that apply in all of a repository.
struct RepositoryRules {
    /// The rules of `info/exclude`.
    excluded: RuleSet,
    /// The user's own rules.
    of_user: RuleSet,
    ignores_case: bool,
}

impl<'a> IgnoreRules<'a> {
    /// Reads the rules of all directories above the one where a walk begins.
    ///
    /// # Errors
    ///
    /// There is an ignore file that cannot be used, so that more might be sent than git would take.
    pub fn above(root: &Path, environment: &'a Environment) -> Result<IgnoreRules<'a>, Error> {
        IgnoreRules::above_with(root, Rc::new(GitFileFinder::new(environment)))
    }

    /// Does the same, where git may have been asked.
    fn above_with(root: &Path, git: Rc<GitFileFinder<'a>>) -> Result<IgnoreRules<'a>, Error> {
        let real_root = root
            .canonicalize()
            .map_err(|reason| ignore_file::unusable(root, &reason.to_string()))?;
        let mut rules = IgnoreRules {
            of_targets: HashMap::new(),
            git,
            root: root.to_owned(),
            real_root: real_root.clone(),
            levels: Vec::new(),
        };
        let above = Vec::from_iter(real_root.ancestors().skip(1));
        for directory in above.into_iter().rev() {
            rules.enter(directory, directory)?;
        }
        Ok(rules)
    }

    /// Whether a file or a directory below the root of the walk is ignored.
    pub fn is_ignored(&mut self, path: &Path, is_directory: bool) -> Result<bool, Error> {
        self.go_to(path.parent().unwrap_or(path))?;
        let path = self.real(path);
        Ok(is_ignored_by(&self.levels, true, &path, is_directory))
    }

    /// Whether the root of the walk is ignored, or a directory or link on the way to it, as far as it leads away from the directory
    /// where q runs. Whoever is in an ignored directory means the files that are there.
    pub fn is_root_ignored(&mut self) -> Result<bool, Error> {
        let root = self.root.clone();
        self.go_to(&root)?;
        let current = Path::new(".").canonicalize().ok();
        let is_left = |directory: &Path| {
            let stays = current
                .as_ref()
                .is_some_and(|here| here.starts_with(directory));
            !stays
        };
        let is_root = |level: &RuleLevel| level.repository.is_some();
        let repository = self.levels.iter().rposition(is_root);
        for (index, level) in self.levels.iter().enumerate().skip(1) {
            let above = &self.levels[..index];
            // The rules of a repository say nothing of a repository in it, whose files are its own.
            let is_in_repository = repository.is_some_and(|top| top < index);
            if is_left(&level.directory)
                && is_ignored_by(above, is_in_repository, &level.directory, true)
            {
                return Ok(true);
            }
        }
        // Git may ignore a link, or the directory that has it, and not what the link leads to.
        for link in links_on_the_way(&root) {
            let leads_away = link.canonicalize().is_ok_and(|target| is_left(&target));
            let Some(directory) = link.parent() else {
                continue;
            };
            let mut rules = IgnoreRules::above_with(directory, Rc::clone(&self.git))?;
            if (leads_away && rules.is_ignored(&link, true)?) || rules.is_root_ignored()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether what a path of the walk leads to is ignored where it is, behind links, or one of these links is. That counts below
    /// the root of the walk, and elsewhere in the repository of the path.
    pub fn is_target_ignored(&mut self, path: &Path, is_directory: bool) -> Result<bool, Error> {
        let Ok(target) = path.canonicalize() else {
            return Ok(false);
        };
        if target == self.real(path) {
            return Ok(false);
        }
        for link in links_on_the_way(path) {
            let leads_to_directory = link.is_dir();
            if self.is_real_path_ignored(&link, leads_to_directory)? {
                return Ok(true);
            }
        }
        self.is_real_path_ignored(&target, is_directory)
    }

    /// Whether a path without links above it is ignored, as [`IgnoreRules::is_target_ignored`] counts it.
    fn is_real_path_ignored(&mut self, target: &Path, is_directory: bool) -> Result<bool, Error> {
        // The root itself may be ignored, as it was named.
        let base = if target.starts_with(&self.real_root) {
            self.real_root.clone()
        } else {
            match self.repository_root() {
                Some(root) if target.starts_with(root) => root.to_owned(),
                _ => return Ok(false),
            }
        };
        let below = target.strip_prefix(&base).unwrap_or(target);
        let rules = match self.of_targets.entry(base.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                place.insert(IgnoreRules::above_with(&base, Rc::clone(&self.git))?)
            }
        };
        let mut place = base;
        let mut is_ignored = false;
        for part in below {
            place.push(part);
            let is_directory = is_directory || place != target;
            is_ignored = is_ignored || rules.is_ignored(&place, is_directory)?;
        }
        Ok(is_ignored)
    }

    /// Leaves the directories that this one is not in, and reads the rules of those that it is in, and its own.
    fn go_to(&mut self, directory: &Path) -> Result<(), Error> {
        let real = self.real(directory);
        let is_outside = |level: &RuleLevel| !real.starts_with(&level.directory);
        while self.levels.last().is_some_and(is_outside) {
            self.levels.pop();
        }
        let is_entered = |path: &Path| {
            let last = self.levels.last();
            last.is_some_and(|level| level.directory == self.real(path))
        };
        let mut missing = Vec::new();
        for path in directory.ancestors() {
            if is_entered(path) {
                break;
            }
            missing.push(path);
            if path == self.root {
                break;
            }
        }
        for path in missing.into_iter().rev() {
            self.enter(path, &self.real(path))?;
        }
        Ok(())
    }

    /// Returns a path below the root of the walk without the links above that.
    fn real(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        self.real_root.join(below)
    }

    /// Returns the root of the innermost repository.
    fn repository_root(&self) -> Option<&Path> {
        let mut innermost_first = self.levels.iter().rev();
        let root = innermost_first.find(|level| level.repository.is_some())?;
        Some(&root.directory)
    }

    /// Returns the rules of the innermost repository.
    fn repository(&self) -> Option<&RepositoryRules> {
        innermost_repository(&self.levels)
    }

    /// Reads the rules of a directory below the last one. `real` is its path without the links above the walk.
    fn enter(&mut self, directory: &Path, real: &Path) -> Result<(), Error> {
        let mut reader = RuleReader {
            directory: real,
            cost: self.levels.last().map_or(0, |level| level.cost),
        };
        let mut repository = None;
        if git_files::is_repository(directory, self.repository().is_some()) {
            let files = self.git.find(directory, real)?;
            repository = Some(reader.repository(&files)?);
        }
        let innermost = repository.as_ref().or(self.repository());
        let ignores_case = innermost.is_some_and(|found| found.ignores_case);
        let general = reader.read(&directory.join(".ignore"), false)?;
        let mut of_git = RuleSet::default();
        if innermost.is_some() {
            let file = directory.join(".gitignore");
            // Git does not follow a link in place of this file.
            if !file.is_symlink() {
                of_git = reader.read(&file, ignores_case)?;
            }
        }
        self.levels.push(RuleLevel {
            directory: real.to_owned(),
            general,
            of_git,
            repository,
            cost: reader.cost,
        });
        Ok(())
    }
}

/// Whether the rules of these directories ignore a path in the last of them. Those of git count only if it is in a repository.
fn is_ignored_by(
    levels: &[RuleLevel],
    is_in_repository: bool,
    path: &Path,
    is_directory: bool,
) -> bool {
    let mut rulings =
        rules_of(levels, is_in_repository).map(|rules| rules.ruling(path, is_directory));
    let decided = rulings.find_map(|ruling| ruling);
    decided == Some(Ruling::Ignored)
}

/// Returns all rules of these directories, the one that decides first at the beginning.
fn rules_of(levels: &[RuleLevel], is_in_repository: bool) -> impl Iterator<Item = &RuleSet> {
    let general = levels.iter().rev().map(|level| &level.general);
    let is_root = |level: &RuleLevel| level.repository.is_some();
    // Rules of git say nothing outside a repository.
    let root = levels
        .iter()
        .rposition(is_root)
        .filter(|_| is_in_repository);
    let inside = &levels[root.unwrap_or(levels.len())..];
    let repository = innermost_repository(inside).into_iter();
    general
        .chain(inside.iter().rev().map(|level| &level.of_git))
        .chain(repository.flat_map(|found| [&found.excluded, &found.of_user]))
}

fn innermost_repository(levels: &[RuleLevel]) -> Option<&RepositoryRules> {
    let mut innermost_first = levels.iter().rev();
    innermost_first.find_map(|level| level.repository.as_ref())
}

/// A reader of the rules that one directory adds.
struct RuleReader<'a> {
    /// What the rules are relative to.
    directory: &'a Path,
    /// What the rules that apply there cost so far.
    cost: usize,
}

impl RuleReader<'_> {
    /// Reads the rules that apply in all of a repository.
    fn repository(&mut self, files: &GitFiles) -> Result<RepositoryRules, Error> {
        let mut read_if_any = |path: &Option<PathBuf>| match path {
            Some(path) => self.read(path, files.ignores_case),
            None => Ok(RuleSet::default()),
        };
        Ok(RepositoryRules {
            excluded: read_if_any(&files.excluded)?,
            of_user: read_if_any(&files.of_user)?,
            ignores_case: files.ignores_case,
        })
    }

    /// Reads the rules of a file, if there is one.
    fn read(&mut self, path: &Path, ignores_case: bool) -> Result<RuleSet, Error> {
        let text = ignore_file::read_if_any(path, MAX_IGNORE_FILE)?;
        let rules = RuleSet::read(&text, self.directory, ignores_case, &mut self.cost);
        rules.map_err(|reason| ignore_file::unusable(path, reason))
    }
}

/// Returns the links that lead to a file, each in its own directory without links.
fn links_on_the_way(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut ahead = Vec::from_iter(path::absolute(path));
    let mut real = PathBuf::new();
    while let Some(rest) = ahead.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else {
            continue;
        };
        ahead.push(parts.as_path().to_owned());
        match part {
            Component::CurDir => continue,
            Component::ParentDir => {
                real.pop();
                continue;
            }
            _ => real.push(part),
        }
        if let Ok(target) = real.read_link() {
            if links.len() == MAX_LINKS {
                break;
            }
            links.push(real.clone());
            real.pop();
            ahead.push(target);
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walkdir::WalkDir;

    use super::test_repository::{TestRepository, pattern_like};
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_nearest_rule_decides_and_those_of_git_count_in_their_repository_only() {
        // The rule for the file `/r/in/x` that each place has, from the first that decides to the last: `.ignore` in `in`, in
        // `r` and above it; `.gitignore` in these; `info/exclude`; and the user's own rules. Whether `r` is the repository, or
        // what is above it, and whether the file is ignored.
        let table = r##"
            - - - - - - - - | r | -
            x - - - - - - - | r | ignored
            - - x - - - - - | r | ignored
            - - - x - - - - | r | ignored
            - - - - x - - - | r | ignored
            - - - - - x - - | r | -
            - - - - - x - - | above | ignored
            - - - - - - x - | r | ignored
            - - - - - - - x | r | ignored
            !x x x x x x x x | r | -
            x !x !x !x !x !x !x !x | r | ignored
            - !x x x x x x x | r | -
            - x !x !x !x !x !x !x | r | ignored
            - - !x x x x x x | r | -
            - - x !x !x !x !x !x | r | ignored
            - - - !x x x x x | r | -
            - - - x !x !x !x !x | r | ignored
            - - - - !x x x x | r | -
            - - - - x !x !x !x | r | ignored
            - - - - - !x x x | above | -
            - - - - - x !x !x | above | ignored
            - - - - - x !x x | r | -
            - - - - - !x x !x | r | ignored
            - - - x x x x x | nothing | -
            x - - x x x x x | nothing | ignored
        "##;
        let environment = Environment::default();
        for [places, repository, expected] in rows(table) {
            let case = format!("{places} {repository}");
            let mut sets = Vec::new();
            for rule in places.split(' ') {
                let rule = rule.trim_matches('-').as_bytes();
                sets.push(RuleSet::read(rule, Path::new("/"), false, &mut 0).expect("rules"));
            }
            let mut sets = sets.into_iter();
            let mut next = || sets.next().expect("eight places");
            let general = [next(), next(), next()];
            let of_git = [next(), next(), next()];
            let mut of_repository = Some(RepositoryRules {
                excluded: next(),
                of_user: next(),
                ignores_case: false,
            });
            let mut levels = Vec::new();
            let directories = [("/r/in", "in"), ("/r", "r"), ("/", "above")];
            for ((general, of_git), (directory, name)) in
                general.into_iter().zip(of_git).zip(directories)
            {
                levels.push(RuleLevel {
                    directory: PathBuf::from(directory),
                    general,
                    of_git,
                    repository: of_repository.take_if(|_| name == repository),
                    cost: 0,
                });
            }
            levels.reverse();
            let mut rules = IgnoreRules {
                of_targets: HashMap::new(),
                git: Rc::new(GitFileFinder::new(&environment)),
                root: PathBuf::from("/r"),
                real_root: PathBuf::from("/r"),
                levels,
            };
            let found = rules.is_ignored(Path::new("/r/in/x"), false).expect(&case);
            assert_eq!(found, expected == "ignored", "{case}");
        }
    }

    /// Returns the files of a repository that are not ignored, without those that say what is.
    fn files_of_walk(root: &Path) -> Vec<String> {
        let environment = Environment::default();
        let mut rules = IgnoreRules::above(root, &environment).expect("rules");
        let mut files = Vec::new();
        let mut walk = WalkDir::new(root).min_depth(1).into_iter();
        while let Some(entry) = walk.next() {
            let entry = entry.expect("an entry");
            let is_directory = entry.file_type().is_dir();
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let is_left_out =
                is_hidden || rules.is_ignored(entry.path(), is_directory).expect("rules");
            if is_directory && is_left_out {
                walk.skip_current_dir();
            }
            if !is_directory && !is_left_out {
                let below = entry.path().strip_prefix(root).expect("a path below it");
                files.push(below.to_string_lossy().into_owned());
            }
        }
        files
    }

    /// Returns a strategy for the lines of a file that says what git ignores.
    fn rules_like(most: usize) -> impl Strategy<Value = String> {
        let rule = ("!{0,1}", pattern_like()).prop_map(|(exempts, pattern)| exempts + &pattern);
        prop::collection::vec(rule, 0..=most).prop_map(|rules| rules.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_walk_finds_the_files_that_git_lists(
            of_root in rules_like(4),
            of_directory in rules_like(3),
            of_repository in rules_like(1),
            nested in prop::sample::select(&["", "empty", "file", "repository"][..]),
        ) {
            let Some(repository) = TestRepository::new() else { return Ok(()); };
            let names = ["a", "ab", "b"];
            for (one, two) in names.iter().flat_map(|one| names.map(|two| (one, two))) {
                for file in ["aa", "ba", "-"] {
                    repository.write(file, "");
                    repository.write(&format!("{one}/{file}"), "");
                    repository.write(&format!("{one}/{two}/{file}"), "");
                    repository.write(&format!("{one}/{two}/b/{file}"), "");
                }
            }
            repository.write(".gitignore", &of_root);
            repository.write("a/.gitignore", &of_directory);
            repository.write(".git/info/exclude", &of_repository);
            match nested {
                "empty" => repository.write("a/.git/none", ""),
                "file" => repository.write("a/.git", "gitdir: ../b"),
                "repository" => drop(repository.ask(&["init", "-q", "a"], "")),
                _ => {}
            }
            let list = ["ls-files", "-o", "-z", "--exclude-standard"];
            let mut expected = repository.ask(&list, "");
            // Git does not look into a repository in this one.
            if let Some(at) = expected.iter().position(|file| file == "a/") {
                expected.remove(at);
                let inside = repository.ask(&[&["-C", "a"], &list[..]].concat(), "");
                expected.extend(inside.iter().map(|file| format!("a/{file}")));
            }
            expected.retain(|file| !file.ends_with(".gitignore"));
            let mut found = files_of_walk(repository.path());
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
