//! Roles: options under a name, in a section of the configuration file, or a system prompt in a file beside it.

use std::path::{Path, PathBuf};

use super::file::{ROLE_NAMES, Role, is_role};
use super::origin::Origin;
use super::text::{MAX_TEXT, read_regular};
use super::tools::NO_TOOLS;
use crate::error::Error;
use crate::flags::Arguments;
use crate::nearest::did_you_mean;
use crate::shape::Shape;

impl Role {
    /// Where one of its keys is, in this configuration file.
    pub(super) fn origin(&self, key: &str, file: &Path) -> Origin {
        let line = self
            .lines
            .iter()
            .find(|(name, _)| name == key)
            .map_or(0, |(_, line)| *line);
        Origin::File {
            path: file.to_owned(),
            line,
        }
    }

    /// The full name of one of its keys, for errors.
    pub(super) fn key(&self, key: &str) -> String {
        format!("roles.{}.{key}", self.name)
    }

    /// Reads the file that one of its keys names, relative to the configuration file, and takes its text.
    fn read<T>(
        &self,
        key: &str,
        path: &str,
        file: &Path,
        take: fn(String) -> Result<T, String>,
    ) -> Result<T, Error> {
        let taken = read_regular(&file.with_file_name(path), MAX_TEXT).and_then(take);
        taken.map_err(|reason| self.origin(key, file).wrong(&self.key(key), &reason))
    }
}

/// What was typed, with the options of its role as if they had been typed before it. `file` is the configuration file,
/// which has these sections.
///
/// # Errors
/// `Usage`: there is no such role. `Settings`: a file of it cannot be read.
pub(super) fn apply(typed: &Arguments, sections: &[Role], file: &Path) -> Result<Arguments, Error> {
    let Some(name) = &typed.role else {
        return Ok(typed.clone());
    };
    if !is_role(name) {
        return Err(Error::usage(format!("--role: “{name}”: {ROLE_NAMES}")));
    }
    let section = sections.iter().find(|section| section.name == *name);
    let prompt = prompt_file(name, file);
    if section.is_none() && prompt.is_none() {
        return Err(unknown(name, sections, file));
    }
    let mut all = over(
        section
            .map(|section| section.options.clone())
            .unwrap_or_default(),
        typed,
    );
    if all.system.is_none() {
        let text = match (
            section,
            section.and_then(|section| section.system_file.as_ref()),
            prompt,
        ) {
            (Some(section), Some(path), _) => Some(section.read("system_file", path, file, Ok)?),
            (_, _, Some(path)) => Some(
                read_regular(&path, MAX_TEXT)
                    .map_err(|reason| Error::settings(format!("--role: {reason}")))?,
            ),
            _ => None,
        };
        all.system = text.map(|text| text.trim_end_matches(['\r', '\n']).into());
    }
    if let (Some(section), None, Some(spec)) = (section, &typed.schema, &all.schema)
        && spec.ends_with(".json")
        && Shape::from_spec(spec).is_err()
    {
        let shape = section.read("schema", spec, file, |text| Shape::from_json(&text))?;
        all.schema = Some(shape.schema().to_string());
    }
    Ok(all)
}

/// The options of a role, with typed ones over them.
fn over(role: Arguments, typed: &Arguments) -> Arguments {
    let mut all = typed.clone();
    // The role's model belongs to its own provider.
    if typed.provider.is_none() {
        all.model = all.model.or(role.model);
    }
    all.provider = all.provider.or(role.provider);
    all.effort = all.effort.or(role.effort);
    all.messages = all.messages.or(role.messages);
    all.system = all.system.or(role.system);
    // --extract and --schema exclude each other.
    if !typed.extract {
        all.schema = all.schema.or(role.schema);
    }
    all.web |= role.web;
    all.options.splice(..0, role.options);
    let is_none = |tools: &[String]| tools == [NO_TOOLS];
    if typed.tools.is_empty() || !is_none(&typed.tools) && !is_none(&role.tools) {
        all.tools.splice(..0, role.tools);
    }
    // --again has a question already.
    if !typed.again
        && typed
            .words
            .iter()
            .all(|word| word.to_string_lossy().trim().is_empty())
    {
        all.words = role.words;
    }
    all
}

/// The names of all roles: those of sections, and those of files beside the configuration file.
pub(super) fn names(sections: &[Role], file: &Path) -> Vec<String> {
    let folder = file.parent().map(|folder| folder.join("roles"));
    let entries = folder
        .and_then(|folder| fs_err::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten();
    let stems = entries.filter_map(|entry| entry.path().file_stem()?.to_str().map(str::to_owned));
    let is_there =
        |name: &String| is_role(name) && prompt_file(name, file).is_some_and(|path| path.is_file());
    let mut names: Vec<String> = stems
        .filter(is_there)
        .chain(sections.iter().map(|section| section.name.clone()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The file that is the system prompt of a role, if there is one.
fn prompt_file(name: &str, file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?.join("roles");
    let paths = [
        folder.join(format!("{name}.md")),
        folder.join(name).join("system.md"),
    ];
    paths.into_iter().find(|path| path.exists())
}

fn unknown(name: &str, sections: &[Role], file: &Path) -> Error {
    let names = names(sections, file);
    let meant = did_you_mean(name, &names);
    let there = if names.is_empty() {
        "there are no roles".to_owned()
    } else {
        format!("the roles are {}", names.join(", "))
    };
    Error::usage(format!("there is no role “{name}”")).advise(format!(
        "{meant}{there}\na section [roles.NAME] in {} adds one, or a file roles/NAME.md beside it",
        file.display()
    ))
}
