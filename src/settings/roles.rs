//! Roles: options under a name, in a section of the configuration file, or a system prompt in a file next to it.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::file::{ROLE_NAMES, RoleOptions, RoleSection, is_role};
use super::origin::Origin;
use super::paths::expand_home;
use super::sections::advice_to_add;
use super::text_file::{MAX_TEXT, read_text};
use crate::error::Error;
use crate::flags::Arguments;
use crate::shape::{SchemaSpec, Shape};
use crate::text::nearest::choices;
use crate::whole_file::{broken_link, nearest_place};

impl RoleSection {
    /// Returns the error for one of its keys.
    pub fn error(&self, key: &str, reason: &str) -> Error {
        let name = format!("roles.{}.{key}", self.name);
        let origin = self.origins.get(key).unwrap_or(&Origin::Default);
        origin.error(&name, reason)
    }
}

/// Adds the options of their role to the arguments of the command line, as if the user had given those first. `file` is the
/// configuration file, and `sections` are its roles.
pub fn apply(
    given: &Arguments,
    sections: &[RoleSection],
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Arguments, Error> {
    let Some(name) = &given.role else {
        return Ok(given.clone());
    };
    if !is_role(name) {
        let error = Error::usage(format!("--role: “{name}”: {ROLE_NAMES}"));
        if name.trim().contains(' ') {
            return Err(error.advise("give a system prompt with -S, because -r names a role"));
        }
        return Err(error);
    }
    let Some(file) = file else {
        return Err(unknown(name, sections, None));
    };
    let section = sections.iter().find(|section| section.name == *name);
    let prompt = prompt_file(name, file);
    if section.is_none() && prompt.is_none() {
        return Err(unknown(name, sections, Some(file)));
    }
    let prompt = prompt.or_else(|| unreachable_prompt(name, file));
    let role = section.cloned().unwrap_or_default();
    let read_beside = |path: &str| {
        let path = expand_home(path, environment)?;
        read_text(&file.with_file_name(path), MAX_TEXT)
    };
    let mut all = over(role.options.clone(), given);
    if all.system.is_none()
        && let Some(text) = system_prompt(&role, prompt, read_beside)?
    {
        let text = text.replace("\r\n", "\n");
        all.system = Some(without_front_matter(&text).trim_end_matches('\n').into());
    }
    if given.schema.is_none()
        && let Some(spec) = &all.schema
        && let SchemaSpec::File(path) = SchemaSpec::parse(spec)
    {
        let shape = read_beside(path).and_then(|text| Shape::from_json(&text));
        let shape = shape.map_err(|reason| role.error("schema", &reason))?;
        all.schema = Some(shape.schema.to_string());
    }
    Ok(all)
}

/// Returns the system prompt in a file: the file that the section names, else `prompt`, the file with the role's name.
/// `read_beside` reads a file whose path may start from the directory of the configuration file.
fn system_prompt(
    role: &RoleSection,
    prompt: Option<PathBuf>,
    read_beside: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<String>, Error> {
    let text = if let Some(path) = &role.system_file {
        read_beside(path).map_err(|reason| role.error("system_file", &reason))?
    } else if let Some(path) = prompt {
        let text = read_text(&path, MAX_TEXT);
        text.map_err(|reason| Error::settings(format!("--role: {reason}")))?
    } else {
        return Ok(None);
    };
    Ok(Some(text))
}

/// Returns the text without the YAML front matter that prompt collections put before it, between two lines of three hyphens.
fn without_front_matter(text: &str) -> &str {
    let is_marker = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(is_marker) || !lines.by_ref().any(is_marker) {
        return text;
    }
    let rest: usize = lines.map(str::len).sum();
    text[text.len() - rest..].trim_start_matches('\n')
}

/// Puts the options of the command line over those of a role.
fn over(role: RoleOptions, given: &Arguments) -> Arguments {
    let RoleOptions {
        provider,
        model,
        effort,
        messages,
        system,
        tools,
        schema,
        web,
        options,
        question,
    } = role;
    let mut all = given.clone();
    // The role's model belongs to its own provider.
    if given.provider.is_none() {
        all.model = all.model.or(model);
    }
    all.provider = all.provider.or(provider);
    all.effort = all.effort.or(effort);
    all.messages = all.messages.or(messages);
    all.system = all.system.or(system.map(OsString::from));
    all.tools = tools.followed_by(&given.tools);
    // --extract and --is exclude a schema.
    if !given.extract && !given.is {
        all.schema = all.schema.or(schema);
    }
    all.web |= web;
    all.options.splice(..0, options);
    // --again has a question already.
    let is_blank = |word: &OsString| word.to_string_lossy().trim().is_empty();
    if !given.again && given.words.iter().all(is_blank) {
        all.words = question.into_iter().map(OsString::from).collect();
    }
    all
}

/// Returns the names of all roles: those of sections, and those of files next to the configuration file.
pub fn names(sections: &[RoleSection], file: Option<&Path>) -> Vec<String> {
    let mut names = Vec::new();
    for section in sections {
        names.push(section.name.clone());
    }
    if let Some(file) = file
        && let Some(directory) = file.parent()
        && let Ok(entries) = fs_err::read_dir(directory.join("roles"))
    {
        for entry in entries.flatten() {
            if let Some(name) = entry.path().file_stem().and_then(OsStr::to_str)
                && is_role(name)
                && prompt_file(name, file).is_some_and(|path| path.is_file())
            {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Returns the paths that the system prompt of a role may have.
fn prompt_paths(name: &str, file: &Path) -> [PathBuf; 2] {
    let directory = file.with_file_name("roles");
    [
        directory.join(format!("{name}.md")),
        directory.join(name).join("system.md"),
    ]
}

/// Returns a path where the system prompt of a role may be, if nobody can tell because of a broken link above it.
fn unreachable_prompt(name: &str, file: &Path) -> Option<PathBuf> {
    let mut paths = prompt_paths(name, file).into_iter();
    paths.find(|path| nearest_place(path).and_then(broken_link).is_some())
}

/// Returns the file that is the system prompt of a role, if there is one. It may be one that cannot be read: then reading it says
/// why, as for every other file.
fn prompt_file(name: &str, file: &Path) -> Option<PathBuf> {
    let paths = prompt_paths(name, file);
    let usable = paths.iter().find(|path| path.is_file());
    usable.or(paths.iter().find(|path| is_there(path))).cloned()
}

/// Whether something is at a path, or nobody can tell because of a directory above it.
fn is_there(path: &Path) -> bool {
    let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    path.symlink_metadata()
        .map_or_else(|error| !absent.contains(&error.kind()), |_| true)
}

fn unknown(name: &str, sections: &[RoleSection], file: Option<&Path>) -> Error {
    let names = names(sections, file);
    let there = if names.is_empty() {
        "there are no roles".to_owned()
    } else {
        choices(name, &names, "the roles are")
    };
    let section = advice_to_add("roles", file);
    let mut advice = format!("{there}; {section}");
    // A note about the configuration file tells a link above its directory.
    if let Some(file) = file
        && let Some(path) = unreachable_prompt(name, file)
        && let Some(link) = nearest_place(&path)
        && link.starts_with(file.with_file_name("roles"))
        && let Some(what) = broken_link(link)
    {
        advice += &format!("; check {}: it is {what}", link.display());
    }
    Error::usage(format!("there is no role “{name}”")).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_no_part_of_a_prompt() {
        for (text, prompt) in [
            ("a\n---\nb", "a\n---\nb"),
            (
                "---\nname: x\n---\n\nBe brief.\n---\nb",
                "Be brief.\n---\nb",
            ),
            ("---\n---\nBe brief.", "Be brief."),
            ("---\nBe brief.", "---\nBe brief."),
            ("--- a\n---\nb", "--- a\n---\nb"),
            ("", ""),
        ] {
            assert_eq!(without_front_matter(text), prompt, "{text}");
        }
    }
}
