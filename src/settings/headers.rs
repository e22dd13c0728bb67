//! The headers that a section adds to every request of a server: fills in their variables and finds the keys in them (pure).

use toml::de::DeValue;

use super::environment::Environment;
use super::key::{keys_in_headers, names_key};
use super::origin::Origin;
use super::value::{self, ConfigError, check_header, for_each};
use super::variables::{self, LeftAsItIs};
use crate::secret::Secret;

/// A header of a section; its value may name variables.
#[derive(Debug)]
pub struct HeaderEntry {
    pub name: String,
    pub value: Secret,
    pub origin: Origin,
}

impl HeaderEntry {
    /// Reads the headers of a section. `origin_at` returns the origin of what is at a byte of the file.
    pub fn read_all(
        headers: &DeValue,
        origin_at: &dyn Fn(usize) -> Origin,
    ) -> Result<Vec<HeaderEntry>, ConfigError> {
        let mut entries = Vec::new();
        for_each(headers, |entry| {
            let (name, value) = value::header(entry)?;
            entries.push(HeaderEntry {
                name,
                value,
                origin: origin_at(entry.at),
            });
            Ok(())
        })?;
        Ok(entries)
    }
}

/// Headers with their variables filled in, and the keys in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnHeaders {
    pub all: Vec<(String, Secret)>,
    /// By the name of a header, or of a variable in it.
    pub keys: Vec<Secret>,
    /// What is passed as it stands and hardly meant so, for notes.
    pub unfilled: Vec<String>,
}

impl OwnHeaders {
    /// Adds a header, whose variables are written as `${NAME}` and `${NAME:-default}`. Returns what stays in it although another
    /// program would fill it in.
    ///
    /// # Errors
    ///
    /// A variable cannot be filled in, the header cannot be sent, or nothing follows its scheme. The error does not show the value.
    pub fn add(
        &mut self,
        name: &str,
        written: &str,
        environment: &Environment,
    ) -> Result<Vec<LeftAsItIs>, String> {
        let filled = variables::fill(written, environment)?;
        check_credentials(name, &filled.text, &filled.blank)?;
        let header = (name.to_owned(), Secret::new(filled.text));
        check_header(name, &header.1)?;
        for (variable, value) in filled.values {
            if names_key(&variable) {
                self.keys.push(value);
            }
        }
        self.keys
            .extend(keys_in_headers(std::slice::from_ref(&header)));
        self.all.push(header);
        for left in &filled.left {
            self.unfilled.push(format!("headers: {name}: {left}"));
        }
        Ok(filled.left)
    }
}

/// Checks that a variable has left something after the scheme of a header, such as `Bearer`. A server would only say that the key
/// is wrong.
fn check_credentials(name: &str, text: &str, blank: &[String]) -> Result<(), String> {
    let Some(variable) = blank.last() else {
        return Ok(());
    };
    let scheme = text.trim();
    let is_word = !scheme.is_empty() && !scheme.contains(char::is_whitespace);
    let is_scheme = names_key(name) || scheme.eq_ignore_ascii_case("bearer");
    if text.ends_with(char::is_whitespace) && is_word && is_scheme {
        return Err(format!(
            "the variable {variable} is empty, so nothing follows the scheme"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn headers_are_read_in_the_order_of_the_file_with_their_origins() {
        let read = |text: &str| {
            let table = DeTable::parse(text).expect("TOML");
            let origin_at = |at: usize| Origin::Variable(at.to_string());
            let read = HeaderEntry::read_all(&DeValue::Table(table.into_inner()), &origin_at);
            read.map_err(|error| error.to_string())
        };
        let entries = read("B = \"1\"\nA = \"2\"").expect("headers");
        let mut shown = Vec::new();
        for HeaderEntry {
            name,
            value,
            origin,
        } in entries
        {
            shown.push(format!("{origin} {name}={}", value.expose()));
        }
        assert_eq!(shown, ["0 B=1", "8 A=2"]);
        let error = read("B = \"1\"\n\"bad name\" = \"secret\"").expect_err("a wrong name");
        assert_eq!(error, "bad name: is not a valid name or value of a header");
    }

    #[test]
    fn a_scheme_that_nothing_follows_is_refused_with_the_variable() {
        // A header, and the variable that is empty.
        let table = r"
            Authorization: Bearer ${NO:-} | NO
            authorization: bearer ${NO:-} | NO
            Authorization: Bearer ${NO:- } | NO
            Authorization: Bearer ${BLANK} | BLANK
            Authorization: Bearer ${NO:-}${BLANK:-} | BLANK
            Authorization: ${NO:-Bearer} ${BLANK} | BLANK
            Proxy-Authorization: Basic ${NO:-} | NO
            X-Gateway: Bearer ${NO:-} | NO
            X-Api-Key: Token ${NO:-} | NO
            Authorization: Bearer ${TOKEN} | -
            Authorization: Bearer ${TOKEN}${NO:-} | -
            Authorization: ${TOKEN} ${NO:-} x | -
            Authorization: key${NO:-} | -
            Authorization: ${NO:-} | -
            X-Team: team ${NO:-} | -
        ";
        let environment = Environment::new(&[("TOKEN", "sk-0123"), ("BLANK", " ")]);
        for [header, variable] in rows(table) {
            let (name, written) = header.split_once(": ").expect("a header");
            let error = OwnHeaders::default().add(name, written, &environment).err();
            let expected = (!variable.is_empty()).then(|| {
                format!("the variable {variable} is empty, so nothing follows the scheme")
            });
            assert_eq!(error, expected, "{header}");
        }
    }

    #[test]
    fn the_keys_in_headers_are_their_values_and_those_of_their_variables() {
        let environment = Environment::new(&[("TOKEN", "sk-0123"), ("TEAM", "infra")]);
        for (name, written, key) in [
            ("Authorization", "Bearer ${TOKEN}", "sk-0123"),
            ("X-Gateway", "id=1 ${TOKEN}", "sk-0123"),
            ("X-Api-Key", "${TEAM}", "infra"),
            ("X-Team", "${TEAM}", ""),
            ("X-Team", "${NO_TOKEN:-infra}", ""),
        ] {
            let mut headers = OwnHeaders::default();
            headers.add(name, written, &environment).expect(written);
            let is_key = headers.keys.contains(&Secret::new(key));
            assert_eq!(is_key, !key.is_empty(), "{name}: {written}");
            assert_eq!(headers.keys.is_empty(), key.is_empty(), "{name}: {written}");
        }
    }
}
