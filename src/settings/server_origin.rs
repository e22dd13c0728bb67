//! Where a tool server is configured, and what messages call its keys there (pure).

/// The place where a tool server is configured. Its faults are told and corrected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOrigin {
    /// A section `[tools.NAME]` of the configuration file.
    Section,
    /// An entry of the file that the setting `mcp` names.
    Shared(SharedEntry),
}

/// An entry of a file that other programs use, too. Its keys are what it calls them itself: programs differ in that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEntry {
    /// The path of the file.
    pub file: String,
    /// The keys that lead to the entry, with dots between them.
    pub path: String,
    pub command_key: &'static str,
    pub cwd_key: &'static str,
    pub env_key: &'static str,
    pub url_key: &'static str,
    /// The keys that it has of those that list the tools to offer, and of those that list the others.
    pub include_keys: Vec<&'static str>,
    pub exclude_keys: Vec<&'static str>,
    /// What another program would read otherwise, for notes.
    pub unread: Vec<String>,
    /// Whether another program confines it.
    pub is_sandboxed: bool,
}

/// A server that its file switches off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledServer {
    /// Its name as `-t` takes it.
    pub name: String,
    /// The path of the file.
    pub file: String,
    /// The keys that lead to its entry.
    pub path: String,
    /// The key and value that switch it off.
    pub switch: &'static str,
}

impl SharedEntry {
    /// Returns an entry with the usual keys.
    pub(super) fn new(file: &str, path: &str) -> SharedEntry {
        SharedEntry {
            file: file.to_owned(),
            path: path.to_owned(),
            command_key: "command",
            cwd_key: "cwd",
            env_key: "env",
            url_key: "url",
            include_keys: Vec::new(),
            exclude_keys: Vec::new(),
            unread: Vec::new(),
            is_sandboxed: false,
        }
    }

    /// Returns a key with its place, for advice.
    fn key(&self, key: &str) -> String {
        format!("\"{key}\" of {} in {}", self.path, self.file)
    }
}

impl ServerOrigin {
    /// Returns the key that has the address of a server.
    pub fn url_key(&self) -> String {
        match self {
            ServerOrigin::Section => "url".to_owned(),
            ServerOrigin::Shared(entry) => entry.key(entry.url_key),
        }
    }

    /// Returns where the key of a server over HTTP is.
    pub fn credentials(&self) -> String {
        match self {
            ServerOrigin::Section => "key_env, key_cmd or headers set it".to_owned(),
            ServerOrigin::Shared(entry) => {
                let headers = entry.key("headers");
                format!("{headers} sets it, such as \"Authorization\": \"Bearer ${{TOKEN}}\"")
            }
        }
    }

    /// Returns what to write instead of an address, so that a program on this machine forwards the server.
    pub fn bridge(&self, url: &str) -> String {
        let change = match self {
            ServerOrigin::Section => {
                format!("replace url with command = [\"npx\", \"mcp-remote\", \"{url}\"]")
            }
            ServerOrigin::Shared(entry) => format!(
                "replace \"{}\" with \"command\": \"npx\", \"args\": [\"mcp-remote\", \"{url}\"]",
                entry.url_key
            ),
        };
        format!("{change}, a program on your machine that forwards this server")
    }
}
