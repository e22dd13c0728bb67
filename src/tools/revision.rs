//! The revisions of the Model Context Protocol: which ones q offers and speaks, and how a handshake ends (pure).
//!
//! Up to 2025-11-25 a conversation begins with a handshake. Since 2026-07-28 there is none: every request says for itself
//! what it speaks.

use serde_json::Value;

/// The revision that the handshake asks for; over HTTP one in which a client need not resume streams, because q does not.
const HANDSHAKE: &str = "2025-11-25";
const HANDSHAKE_OVER_HTTP: &str = "2025-06-18";

/// The revision without a handshake.
pub const STATELESS: &str = "2026-07-28";

/// The revisions that a server may answer the handshake with.
const KNOWN_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", HANDSHAKE_OVER_HTTP, HANDSHAKE];

/// The revision of the protocol that both speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Revision {
    /// The server has not said yet.
    #[default]
    Unknown,
    /// One of [`KNOWN_VERSIONS`].
    WithHandshake(&'static str),
    /// [`STATELESS`].
    WithoutHandshake,
}

impl Revision {
    pub fn name(self) -> Option<&'static str> {
        match self {
            Revision::Unknown => None,
            Revision::WithHandshake(name) => Some(name),
            Revision::WithoutHandshake => Some(STATELESS),
        }
    }
}

/// The end of a handshake.
#[derive(Debug, PartialEq)]
pub enum Handshake {
    /// Both speak a revision. The server introduces itself.
    Agreed(Value),
    Refused(HandshakeRefusal),
}

/// A server's refusal of the handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum HandshakeRefusal {
    /// In these words.
    Said(String),
    /// It answers with the revision that has no handshake.
    WantsNone,
}

impl HandshakeRefusal {
    /// Returns what the server does or did, to follow its name.
    pub fn explain(&self) -> String {
        match self {
            HandshakeRefusal::Said(words) => format!("refused to start a conversation: {words}"),
            HandshakeRefusal::WantsNone => format!(
                "speaks version \"{STATELESS}\" of the protocol, but does not answer server/discover"
            ),
        }
    }
}

/// Returns the revision that the first handshake asks for.
pub fn first_offer(over_http: bool) -> &'static str {
    if over_http {
        HANDSHAKE_OVER_HTTP
    } else {
        HANDSHAKE
    }
}

/// Returns what to offer to a server that has refused the handshake in these words because of its revision: the newest of those
/// that it names, else the oldest. `None` if it is about something else, or names the revision without a handshake.
pub fn other_revision(offered: &str, refusal: &str) -> Option<&'static str> {
    if refusal.contains(STATELESS) {
        return None;
    }
    let mut others = KNOWN_VERSIONS.into_iter();
    let other = others.rfind(|known| *known != offered && refusal.contains(known));
    let words = refusal.to_lowercase();
    let is_about_revision =
        refusal.contains(offered) || words.contains("protocol") && words.contains("version");
    other.or_else(|| is_about_revision.then_some(KNOWN_VERSIONS[0]))
}

/// Returns the revision in the answer to the handshake, if that is one with a handshake that q speaks.
pub fn known_version(introduction: &Value) -> Option<&'static str> {
    let version = &introduction["protocolVersion"];
    let mut known = KNOWN_VERSIONS.into_iter();
    known.find(|known| *version == *known)
}

/// Returns what is wrong with the version in the answer to the handshake, if q does not speak it, to follow the server's name.
pub fn unknown_version(introduction: &Value) -> Option<String> {
    let version = &introduction["protocolVersion"];
    if *version == STATELESS || known_version(introduction).is_some() {
        return None;
    }
    let oldest = KNOWN_VERSIONS[0];
    Some(format!(
        "speaks version {version} of the protocol, and q speaks {oldest} to {STATELESS}"
    ))
}

/// Whether a server says that it speaks the revision without a handshake.
pub fn offers_stateless(discovered: &Value) -> bool {
    let versions = discovered["supportedVersions"].as_array();
    versions.is_some_and(|versions| versions.contains(&STATELESS.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_unknown_revision_is_named_with_those_that_q_speaks() {
        for [expected, version] in rows(
            r#"
            speaks version "2027-07-28" of the protocol, and q speaks 2024-11-05 to 2026-07-28 | "2027-07-28"
            speaks version null of the protocol, and q speaks 2024-11-05 to 2026-07-28 | null
        "#,
        ) {
            let version: Value = serde_json::from_str(version).expect("JSON");
            let found = unknown_version(&json!({"protocolVersion": version}));
            assert_eq!(found.expect("it is unknown"), expected);
        }
        for version in KNOWN_VERSIONS.into_iter().chain([STATELESS]) {
            assert_eq!(unknown_version(&json!({"protocolVersion": version})), None);
        }
    }

    #[test]
    fn the_revision_without_a_handshake_is_offered_by_a_server_that_lists_it() {
        for (supported, expected) in [
            (json!(["2027-01-01", "2026-07-28"]), true),
            (json!(["2027-01-01", "x"]), false),
            (json!(null), false),
        ] {
            let discovered = json!({"supportedVersions": supported});
            assert_eq!(offers_stateless(&discovered), expected, "{supported}");
        }
    }

    #[test]
    fn a_server_that_refuses_a_revision_is_offered_the_newest_other_one_that_it_names() {
        // Its words, and what it is offered instead over standard input and over HTTP.
        let table = r#"
            Unsupported protocol version (-32602): {"supported":["2025-06-18","2024-11-05"],"requested":"2025-11-25"} | 2025-06-18 | 2025-11-25
            Unsupported protocol version (-32602): {"supported":["2025-03-26","2024-11-05"]} | 2025-03-26 | 2025-03-26
            Unsupported protocol version. Supported: 2024-11-05 | 2024-11-05 | 2024-11-05
            Unsupported MCP protocol version | 2024-11-05 | 2024-11-05
            unknown protocolVersion | 2024-11-05 | 2024-11-05
            cannot speak 2025-11-25 | 2024-11-05 | 2025-11-25
            unsupported protocol version (-32022): {"supported":["2026-07-28","2025-06-18"]} | - | -
            no such version (-32001) | - | -
            Method not found (-32601) | - | -
        "#;
        for [refusal, program, http] in rows(table) {
            for (over_http, expected) in [(false, program), (true, http)] {
                let found = other_revision(first_offer(over_http), refusal);
                assert_eq!(found.unwrap_or_default(), expected, "{refusal} {over_http}");
            }
        }
    }
}
