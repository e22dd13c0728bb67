//! What stays the same while a question is answered.

use std::sync::Arc;

use super::answer_form::Output;
use super::printer::Printer;
use super::record::Record;
use super::request::RequestMaker;
use crate::output::Notes;
use crate::server::target::Target;
use crate::settings::Settings;

/// A question to one server: what is asked, how the answer is printed, and the record of what comes.
pub struct Run<'a> {
    pub settings: &'a Settings,
    pub notes: &'a Notes,
    pub output: &'a Output,
    pub target: &'a Target,
    pub requests: RequestMaker<'a>,
    pub record: Arc<Record>,
    pub printer: Printer,
}
