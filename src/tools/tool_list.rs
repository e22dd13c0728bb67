//! The tools that a server lists, page by page, up to a limit (pure).

use std::collections::BTreeSet;

use serde_json::Value;

use super::about::{LeftOutTools, ListedTool, ServerInfo};
use crate::settings::ToolServer;

/// The most tools of a server that are offered, and the most pages of its list that are read. More are left out.
const MAX_TOOLS: usize = 1_000;
const MAX_PAGES: usize = 1_000;

/// The tools that a server has listed so far.
#[derive(Debug, Default)]
pub struct ToolList {
    pub tools: Vec<ListedTool>,
    /// What the server does so that tools are left out, for a note.
    pub left_out: Option<LeftOutTools>,
    /// How many of the tools its section offers.
    offered: usize,
    /// Also those of tools that q cannot call: a page of them says something new.
    names: BTreeSet<String>,
    /// What led to each page.
    cursors: BTreeSet<String>,
    pages: usize,
}

impl ToolList {
    /// Takes a page, and returns what leads to the one after it; `None` if this was the last that is read. `offers` says whether
    /// a tool is offered at all: only such tools count.
    pub fn take_page(
        &mut self,
        page: Vec<Value>,
        next: Option<String>,
        offers: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        self.pages += 1;
        // An empty page may come before others.
        let mut is_repeated = !page.is_empty();
        for entry in page {
            if !self.names.insert(entry["name"].to_string()) {
                continue;
            }
            is_repeated = false;
            let Some(tool) = ListedTool::read(entry) else {
                continue;
            };
            if offers(&tool.name) {
                if self.offered == MAX_TOOLS {
                    self.left_out = Some(LeftOutTools::TooManyTools);
                    return None;
                }
                self.offered += 1;
            }
            self.tools.push(tool);
        }
        let next = next?;
        let is_known = !self.cursors.insert(next.clone());
        if is_repeated && is_known {
            // A server that knows no pages has answered with its only one again.
            return None;
        }
        if is_repeated || is_known {
            self.left_out = Some(LeftOutTools::RepeatedPage);
            return None;
        }
        if self.pages == MAX_PAGES {
            self.left_out = Some(LeftOutTools::TooManyPages);
            return None;
        }
        Some(next)
    }

    /// Puts the list in place of what the server has listed before.
    pub fn replace_in(self, about: &mut ServerInfo) {
        about.tools = self.tools;
        about.left_out = self.left_out;
    }
}

impl LeftOutTools {
    /// Returns a note about the server of a section. Only where there are too many tools is there a choice.
    pub fn note(self, section: &ToolServer) -> String {
        let name = &section.name;
        let what = match self {
            LeftOutTools::TooManyTools => {
                format!("lists more than {MAX_TOOLS} tools; the others are left out")
            }
            LeftOutTools::TooManyPages => {
                format!("lists tools on more than {MAX_PAGES} pages; the others are left out")
            }
            LeftOutTools::RepeatedPage => {
                "repeats a page of its list of tools; any later pages are left out".to_owned()
            }
        };
        let note = format!("{name}: {what}");
        if self == LeftOutTools::TooManyTools && !section.chooses_tools() {
            let choice = section.choice_of_tools();
            return format!("{note}; to choose: {choice}");
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use std::iter::from_fn;

    use serde_json::json;

    use super::LeftOutTools::{RepeatedPage, TooManyPages, TooManyTools};
    use super::*;

    /// A server's list. It returns the tools of the page with this number, and the cursor to the next one.
    type Pages = fn(usize) -> (Vec<String>, Option<String>);

    /// What comes of a list: how many tools it has, the last one, how many pages were asked for, and what is left out.
    type Expected = (usize, &'static str, usize, Option<LeftOutTools>);

    /// Reads a list to its end, and returns the same of it.
    fn read(
        pages: Pages,
        offers: &dyn Fn(&str) -> bool,
    ) -> (usize, String, usize, Option<LeftOutTools>) {
        let mut list = ToolList::default();
        let mut numbers = 0..;
        let asked = from_fn(|| {
            let (names, next) = pages(numbers.next()?);
            let entries = names.iter().map(|name| json!({"name": name}));
            list.take_page(entries.collect(), next, offers)
        });
        let asked = asked.count() + 1;
        let last = list.tools.last().map(|tool| tool.name.clone());
        let last = last.unwrap_or_default();
        (list.tools.len(), last, asked, list.left_out)
    }

    fn tool(number: usize) -> String {
        format!("t{number}")
    }

    fn next(number: usize) -> Option<String> {
        Some(number.to_string())
    }

    #[test]
    fn every_tool_is_listed_up_to_a_limit_and_what_is_left_out_has_a_note() {
        let table: [(&str, Pages, Expected); 12] = [
            (
                "one page",
                |_| (vec![tool(0), tool(1)], None),
                (2, "t1", 1, None),
            ),
            (
                "120 pages",
                |page| (vec![tool(page)], next(page).filter(|_| page < 119)),
                (120, "t119", 120, None),
            ),
            (
                "1000 tools on a page",
                |_| ((0..1_000).map(tool).collect(), None),
                (1_000, "t999", 1, None),
            ),
            (
                "1001 tools on a page",
                |_| ((0..1_001).map(tool).collect(), None),
                (1_000, "t999", 1, Some(TooManyTools)),
            ),
            (
                "1000 tools on two pages",
                |page| {
                    let first = page * 500;
                    let tools = (first..first + 500).map(tool);
                    (tools.collect(), next(page).filter(|_| page == 0))
                },
                (1_000, "t999", 2, None),
            ),
            (
                "pages without an end",
                |page| {
                    let first = page * 300;
                    ((first..first + 300).map(tool).collect(), next(page))
                },
                (1_000, "t999", 4, Some(TooManyTools)),
            ),
            (
                "a thousand pages",
                |page| (vec![tool(page)], next(page).filter(|_| page < 999)),
                (1_000, "t999", 1_000, None),
            ),
            (
                "empty pages without an end",
                |page| (Vec::new(), next(page)),
                (0, "", 1_000, Some(TooManyPages)),
            ),
            (
                "no pages, whatever is asked for",
                |_| (vec![tool(0)], next(0)),
                (1, "t0", 2, None),
            ),
            (
                "the same tools under other cursors",
                |page| (vec![tool(0)], next(page)),
                (1, "t0", 2, Some(RepeatedPage)),
            ),
            (
                "other tools under the same cursor",
                |page| (vec![tool(page)], next(0)),
                (2, "t1", 2, Some(RepeatedPage)),
            ),
            (
                "pages in a circle",
                |page| (vec![tool(page % 3)], next(page % 3)),
                (3, "t2", 4, None),
            ),
        ];
        for (name, pages, (tools, last, asked, left_out)) in table {
            let found = read(pages, &|_| true);
            assert_eq!(found, (tools, last.to_owned(), asked, left_out), "{name}");
        }
    }

    #[test]
    fn only_tools_that_are_offered_count_for_the_limit() {
        let many: Pages = |_| ((0..3_000).map(tool).collect(), None);
        let found = read(many, &|name| name.starts_with("t29"));
        assert_eq!(found, (3_000, "t2999".to_owned(), 1, None));
        let (tools, last, _, left_out) = read(many, &|name| name != "t0");
        assert_eq!(
            (tools, &*last, left_out),
            (1_001, "t1000", Some(TooManyTools))
        );
    }

    #[test]
    fn a_choice_of_tools_is_advised_where_there_are_too_many_and_none_is_made() {
        let many = "db: lists more than 1000 tools; the others are left out";
        let to_choose = format!("{many}; to choose: only = [...] in [tools.db]");
        let pages = "db: lists tools on more than 1000 pages; the others are left out";
        let repeated = "db: repeats a page of its list of tools; any later pages are left out";
        for (left_out, section, expected) in [
            (TooManyTools, "", &*to_choose),
            (TooManyTools, "only = [\"a*\"]", many),
            (TooManyPages, "", pages),
            (RepeatedPage, "", repeated),
        ] {
            let section = ToolServer::parse("db", &format!("command = [\"x\"]\n{section}"));
            assert_eq!(left_out.note(&section), expected);
        }
    }
}
