//! What is wrong with a section of tools, where that matters only if its tools are used (pure).

use std::fmt::{self, Display, Formatter};

use super::origin::Origin;
use super::value::{ConfigError, TableEntry};

/// A fault of a section, or of one of its commands. Nothing is misspelt, so questions that name none of these tools go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SectionFault {
    /// It is here in the configuration file: the key below `tools` and the reason.
    InFile { origin: Origin, reason: String },
    /// It is in the file that the setting `mcp` names: the reason.
    InSharedFile(String),
}

impl Display for SectionFault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SectionFault::InFile { origin, reason } => {
                write!(formatter, "{origin}: tools.{reason}")
            }
            SectionFault::InSharedFile(reason) => formatter.write_str(reason),
        }
    }
}

/// The place of a section in the configuration file.
pub struct SectionPlace<'a> {
    pub named: &'a TableEntry<'a>,
    /// Returns the origin of what is at a byte of the file.
    pub origin_at: &'a dyn Fn(usize) -> Origin,
}

impl SectionPlace<'_> {
    /// Returns the fault of the section that an error in it is.
    pub fn fault(&self, error: ConfigError) -> SectionFault {
        let error = error.under(self.named);
        SectionFault::InFile {
            origin: (self.origin_at)(error.at.unwrap_or_default()),
            reason: error.to_string(),
        }
    }
}
