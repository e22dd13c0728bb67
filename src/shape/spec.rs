//! Tells what `--schema` is given: a shape, or where one is (pure).

/// Where the pipes are that the shell makes of `<(command)`.
const SHELL_PIPES: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];

/// What `--schema` is given: a shape, or where one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaSpec<'a> {
    /// The path of a pipe of the shell, which has a JSON Schema.
    Pipe(&'a str),
    /// The path of a file, which has a JSON Schema.
    File(&'a str),
    Json(&'a str),
    ShortForm(&'a str),
}

impl<'a> SchemaSpec<'a> {
    pub fn parse(spec: &'a str) -> SchemaSpec<'a> {
        let mut pipes = SHELL_PIPES.iter();
        if pipes.any(|directory| spec.starts_with(directory)) {
            SchemaSpec::Pipe(spec)
        } else if spec.ends_with(".json") {
            SchemaSpec::File(spec)
        } else if spec.trim_start().starts_with('{') {
            SchemaSpec::Json(spec)
        } else {
            SchemaSpec::ShortForm(spec)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_given_as_a_path_as_json_or_in_the_short_form() {
        for (text, spec) in [
            ("/dev/fd/63", SchemaSpec::Pipe as fn(_) -> _),
            ("/proc/self/fd/5", SchemaSpec::Pipe),
            ("/dev/fd/a.json", SchemaSpec::Pipe),
            ("a.json", SchemaSpec::File),
            ("shapes/a b.json", SchemaSpec::File),
            ("{}", SchemaSpec::Json),
            (" {\"type\":\"object\"}\n", SchemaSpec::Json),
            ("name, age int", SchemaSpec::ShortForm),
            ("[name]", SchemaSpec::ShortForm),
            ("a.json ", SchemaSpec::ShortForm),
            ("", SchemaSpec::ShortForm),
        ] {
            assert_eq!(SchemaSpec::parse(text), spec(text), "{text}");
        }
    }
}
