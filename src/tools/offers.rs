//! Which tools the model may call, under which names, and which of them run without asking (pure).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::about::ListedTool;
use super::names::{self, Selection};
use crate::error::{Error, ErrorKind};
use crate::message::Tool;
use crate::provider::tool_schema::{self, RejectedTool, ToolSchemas};
use crate::settings::{ServerKind, ToolServer};
use crate::text::nearest::choices;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The index of its source.
    pub(super) source: usize,
    /// The server's own name for it. It may have a key.
    pub(super) tool: String,
    /// Whether it has one, so that it is not shown.
    has_key: bool,
    /// The server and this name, which another tool may have, too. It may be too long for an API.
    full_name: String,
    /// The tool for the model.
    pub shown: Tool,
    /// Whether it is said to change nothing: such calls run side by side, but may still be asked about.
    pub reads: bool,
    /// Whether it runs without asking, by the user's own settings.
    pub allowed: bool,
    /// Whether its server still lists it.
    pub(super) is_listed: bool,
}

/// The tools that the model may call, sorted by name, each with what a request says of it.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    pub(super) list: Vec<OfferedTool>,
    /// In the same order.
    tools: Vec<Tool>,
}

impl Offers {
    /// Returns these offers, which are sorted, with their tools as the servers describe them.
    pub fn of(list: Vec<OfferedTool>) -> Offers {
        let tools = list.iter().map(|offer| offer.shown.clone()).collect();
        Offers { list, tools }
    }

    /// Returns the tools as a request has them.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tools that an API accepts, with the schemas that it accepts, and why it would reject the others.
    pub(super) fn fitted(&self, accepted: ToolSchemas) -> (Offers, Vec<RejectedTool>) {
        let (tools, rejected) = tool_schema::fit(&self.tools, accepted);
        let names: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut list = self.list.clone();
        list.retain(|offer| names.contains(&*offer.shown.name));
        (Offers { list, tools }, rejected)
    }
}

/// What tells a tool from all others, whatever it is called: the index of its source, and the server's own name for it.
pub type ToolId = (usize, String);

impl OfferedTool {
    /// Returns a tool of the source at this index, as it lists it. `redact` removes keys from its name.
    fn new(
        source: usize,
        section: &ToolServer,
        tool: &ListedTool,
        redact: &dyn Fn(&str) -> String,
    ) -> OfferedTool {
        let redacted = redact(&tool.name);
        let full_name = names::full_name(&section.name, &redacted);
        OfferedTool {
            source,
            tool: tool.name.clone(),
            has_key: redacted != tool.name,
            full_name: full_name.clone(),
            shown: Tool {
                name: full_name,
                description: tool.description.clone(),
                schema: Arc::clone(&tool.schema),
            },
            reads: tool.reads,
            allowed: section.allows(&tool.name, tool.reads),
            is_listed: true,
        }
    }

    /// The name for the model may be another tool's after its server has listed others.
    pub(super) fn id(&self) -> ToolId {
        (self.source, self.tool.clone())
    }

    /// Returns the server's own name for it, unless it has a key.
    pub fn own_name(&self) -> Option<&str> {
        (!self.has_key).then_some(&self.tool)
    }

    /// Takes what its server lists now for what it has listed before, by which it was offered.
    pub(super) fn update(&mut self, section: &ToolServer, tools: &HashMap<&str, &ListedTool>) {
        let listed = tools.get(self.tool.as_str());
        self.is_listed = listed.is_some();
        self.reads = listed.is_some_and(|tool| tool.reads);
        self.allowed = self.is_listed && section.allows(&self.tool, self.reads);
    }
}

/// Returns the tools that a server lists by their names, of which no two are the same.
pub fn by_name(tools: &[ListedTool]) -> HashMap<&str, &ListedTool> {
    tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool))
        .collect()
}

/// Returns the tools that a source offers within the limits of its section. `redact` removes keys from their names.
pub fn offers_of(
    source: usize,
    section: &ToolServer,
    tools: &[ListedTool],
    redact: &dyn Fn(&str) -> String,
) -> Result<Vec<OfferedTool>, Error> {
    let mut offers = Vec::new();
    for tool in tools {
        if section.offers(&tool.name) {
            offers.push(OfferedTool::new(source, section, tool, redact));
        }
    }
    if offers.is_empty() && !tools.is_empty() {
        let kind = match section.kind {
            ServerKind::Commands { .. } => ErrorKind::Settings,
            _ => ErrorKind::Tools,
        };
        let name = &section.name;
        let message = format!("{name}: {}", section.fault_of_choice());
        return Err(Error::new(kind, message).advise("correct its patterns"));
    }
    Ok(offers)
}

/// Returns the selected tools, or an error that says which name selects none. A tool whose name was cut has both names.
pub fn choose(
    selection: &Selection,
    mut offers: Vec<OfferedTool>,
) -> Result<Vec<OfferedTool>, Error> {
    let mut all_names = Vec::new();
    for offer in &offers {
        all_names.push(offer.full_name.clone());
        all_names.push(offer.shown.name.clone());
    }
    let without = selection.without_tools(&all_names);
    if let Some(first) = without.first() {
        let names = Vec::from_iter(offers.iter().map(|offer| offer.shown.name.as_str()));
        let error = Error::settings(format!("no tool has the name {}", without.join(", ")));
        return Err(error.advise(choices(first, &names, "the tools are")));
    }
    retain_selected(selection, &mut offers);
    Ok(offers)
}

/// Keeps the selected tools.
pub fn retain_selected(selection: &Selection, offers: &mut Vec<OfferedTool>) {
    offers.retain(|offer| selection.has(&offer.full_name) || selection.has(&offer.shown.name));
}

/// Gives each tool a name of its own that every API accepts, and sorts them by it, so that a provider's prompt cache finds
/// them again. Where several have the same name for an API, all but the first have a number.
pub fn name_apart(offers: &mut [OfferedTool]) {
    // Their order does not depend on that in which servers list them.
    offers.sort_by(|a, b| (&a.full_name, &a.tool).cmp(&(&b.full_name, &b.tool)));
    let full_names = Vec::from_iter(offers.iter().map(|offer| offer.full_name.clone()));
    let is_full_name = |name: &String| full_names.binary_search(name).is_ok();
    let mut taken = BTreeSet::new();
    for offer in &mut *offers {
        let mut number = 1;
        let mut name = names::shortened_name(&offer.full_name, number);
        // What another tool is called in full stays that one's.
        while taken.contains(&name) || (name != offer.full_name && is_full_name(&name)) {
            number += 1;
            name = names::shortened_name(&offer.full_name, number);
        }
        taken.insert(name.clone());
        offer.shown.name = name;
    }
    offers.sort_by(|a, b| a.shown.name.cmp(&b.shown.name));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(tools: &[&str], reads: bool) -> Vec<ListedTool> {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: String::new(),
            schema: Arc::new(json!({})),
            reads,
        };
        tools.iter().map(tool).collect()
    }

    impl OfferedTool {
        /// A tool of a section, for tests of what is decided about it.
        pub fn listed_by(section: &ToolServer, tool: &str, reads: bool) -> OfferedTool {
            OfferedTool::new(0, section, &listed(&[tool], reads)[0], &str::to_owned)
        }
    }

    /// A program `db`; `more` are more lines of its section.
    fn section(more: &str) -> ToolServer {
        ToolServer::parse("db", &format!("command = [\"x\"]\n{more}"))
    }

    fn offers(section: &ToolServer, tools: &[ListedTool]) -> Vec<OfferedTool> {
        offers_of(0, section, tools, &str::to_owned).expect("offers")
    }

    fn names(offers: &[OfferedTool]) -> Vec<&str> {
        offers
            .iter()
            .map(|offer| offer.shown.name.as_str())
            .collect()
    }

    #[test]
    fn a_tool_runs_without_asking_only_if_a_setting_of_the_user_says_so() {
        let program = "command = [\"x\"]";
        let address = "url = \"https://h/mcp\"";
        let commands = "[drop]\nrun = [\"x\"]";
        let list = "allow = [\"list_*\"]";
        let reading = "allow = [\"@reads\"]";
        // What the section has, whether its tools are said to read, and which of the two run unasked.
        for (kind, more, reads, expected) in [
            (program, "", true, [false, false]),
            (program, list, true, [true, false]),
            (program, list, false, [true, false]),
            (program, reading, true, [true, true]),
            (program, reading, false, [false, false]),
            (address, "", true, [false, false]),
            (address, list, true, [true, false]),
            (address, reading, true, [true, true]),
            (address, reading, false, [false, false]),
            (commands, "", true, [true, true]),
            (commands, "", false, [false, false]),
            (commands, list, false, [true, false]),
            (commands, reading, true, [true, true]),
            (commands, reading, false, [false, false]),
        ] {
            let section = ToolServer::parse("db", &format!("{more}\n{kind}"));
            let offers = offers(&section, &listed(&["list_a", "drop"], reads));
            assert_eq!(
                [offers[0].allowed, offers[1].allowed],
                expected,
                "{kind} {more} {reads}"
            );
        }
    }

    #[test]
    fn the_current_list_of_a_server_decides_which_calls_may_run() {
        let section = section("allow = [\"@reads\", \"always\"]");
        // What is offered, whether it was said to read, what is listed now, and whether this is said to read.
        for (offered, read, now, reads, expected) in [
            ("a", true, "a", true, [true, true, true]),
            ("a", true, "a", false, [true, false, false]),
            ("a", false, "a", true, [true, true, true]),
            ("a", true, "b", true, [false, false, false]),
            ("always", true, "always", false, [true, false, true]),
            ("always", true, "b", true, [false, false, false]),
        ] {
            let mut offers = offers(&section, &listed(&[offered], read));
            let offer = &mut offers[0];
            offer.update(&section, &by_name(&listed(&[now], reads)));
            let found = [offer.is_listed, offer.reads, offer.allowed];
            assert_eq!(found, expected, "{offered} {read} {now} {reads}");
        }
    }

    #[test]
    fn the_tools_that_a_server_offers_are_limited_by_only_in_its_section() {
        let tools = listed(&["a", "b"], false);
        let of = |only: &str| offers_of(0, &section(only), &tools, &str::to_owned);
        assert_eq!(names(&of("only = [\"b\"]").expect("offers")), ["db__b"]);
        let error = of("only = [\"z\"]").expect_err("none");
        assert!(error.message.contains("matches none"), "{}", error.message);
    }

    #[test]
    fn the_selected_tools_are_chosen_and_a_name_without_tools_is_an_error() {
        let offers = offers(&section(""), &listed(&["a.b", "c"], true));
        let choose =
            |name: &str| super::choose(&Selection::parse(&[name]).expect("a name"), offers.clone());
        for (name, expected) in [
            ("db", &["db__a_b", "db__c"][..]),
            ("db__a.b", &["db__a_b"]),
            ("db__a_b", &["db__a_b"]),
        ] {
            assert_eq!(names(&choose(name).expect(name)), expected, "{name}");
        }
        let error = choose("db__x*").expect_err("no tool");
        assert_eq!(error.message, "no tool has the name db__x*");
        assert_eq!(
            error.advice.as_deref(),
            Some("the tools are db__a_b, db__c")
        );
    }

    #[test]
    fn no_two_tools_have_the_same_name() {
        let long = "x".repeat(80);
        let cut = "x".repeat(60);
        let first = format!("{long}a");
        let second = format!("{long}b");
        // What the server lists, and the names that models know them by.
        let table: [(&[&str], &[&str]); 5] = [
            (&["z", "a.b", "a_b"], &["db__a_b", "db__a_b_2", "db__z"]),
            (
                &["a b", "a_b_2", "a_b"],
                &["db__a_b", "db__a_b_2", "db__a_b_3"],
            ),
            (
                &[&second, &first],
                &[&format!("db__{}_2", &cut[2..]), &format!("db__{cut}")],
            ),
            (
                &[&first, &cut],
                &[&format!("db__{}_2", &cut[2..]), &format!("db__{cut}")],
            ),
            (&["1", "@", "-"], &["db__-", "db__1", "db___"]),
        ];
        for (tools, expected) in table {
            let mut offers = offers(&section(""), &listed(tools, true));
            let mut backwards = offers.clone();
            backwards.reverse();
            name_apart(&mut offers);
            name_apart(&mut backwards);
            assert_eq!(names(&offers), expected, "{tools:?}");
            assert_eq!(offers, backwards);
        }
    }

    #[test]
    fn a_tool_whose_name_was_cut_is_selected_by_both_names() {
        let long = "x".repeat(80);
        let mut offers = offers(&section(""), &listed(&[&long, "c"], true));
        name_apart(&mut offers);
        let cut = format!("db__{}", "x".repeat(60));
        for name in [&format!("db__{long}"), &cut] {
            let selection = Selection::parse(&[name]).expect("a name");
            let chosen = choose(&selection, offers.clone()).expect("a tool");
            assert_eq!(names(&chosen), [cut.as_str()], "{name}");
        }
    }
}
