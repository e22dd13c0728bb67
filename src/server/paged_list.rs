//! A list of models that a server sends in pages (pure).

use std::collections::HashSet;

use crate::provider::request::ListedModel;
use crate::provider::{ModelPage, NextPage};
use crate::text::size::in_units;

/// The most bytes of a response that is not an answer, such as a list of models, or a page of it; and of all pages.
pub const MAX_LIST: usize = 8_000_000;

/// The most pages that are asked for.
const MAX_PAGES: usize = 100;

/// The most bytes of what asks for a page, which becomes a part of a URL.
const MAX_NEXT: usize = 2_000;

/// A list of models as far as its pages have come.
#[derive(Debug, Default)]
pub struct PagedList {
    pub models: Vec<ListedModel>,
    /// What asks for the next page; `None` if there is none, or q does not ask for it.
    pub next: Option<String>,
    /// Why the list may not have all models.
    pub lack: Option<String>,
    /// What has asked for a page before.
    asked: HashSet<String>,
    /// The ids of the models. Pages may overlap.
    ids: HashSet<String>,
    pages: usize,
    bytes: usize,
}

impl PagedList {
    /// Adds a page with that many bytes.
    pub fn add(&mut self, page: ModelPage, bytes: usize) {
        self.pages += 1;
        self.bytes += bytes;
        self.next = match page.next {
            NextPage::After(next) => Some(next),
            NextPage::Absent => None,
            NextPage::Unnamed => {
                self.lack = Some("the server does not say how to ask for more".to_owned());
                None
            }
        };
        let is_known_token = match &self.next {
            Some(token) => !self.asked.insert(token.clone()),
            None => false,
        };
        // A server that does not know the parameter sends the first page again.
        let has_models = !page.models.is_empty();
        let mut new = page.models;
        new.retain(|model| self.ids.insert(model.id.clone()));
        let is_repeated = is_known_token || (has_models && new.is_empty());
        self.models.extend(new);
        let Some(next) = &self.next else {
            return;
        };
        if is_repeated {
            self.end_early("the server sends the same page again".to_owned());
        } else if self.pages == MAX_PAGES {
            self.end_early(format!("q reads no more than {MAX_PAGES} pages"));
        } else if self.bytes > MAX_LIST {
            let size = in_units(MAX_LIST);
            self.end_early(format!("q reads no more than {size}"));
        } else if next.len() > MAX_NEXT {
            let size = in_units(MAX_NEXT);
            self.end_early(format!("the token of the next page has more than {size}"));
        }
    }

    /// Ends the list for this reason before it is complete.
    pub fn end_early(&mut self, reason: String) {
        self.next = None;
        self.lack = Some(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn pages_are_asked_for_within_bounds_and_a_repeated_one_ends_the_list() {
        // The pages with their size, models and what asks for the next one; the models, and why some are missing.
        let long = "x".repeat(MAX_NEXT + 1);
        let table = r##"
            1 a,b - | a,b | -
            1 a n ; 1 b - | a,b | -
            1 - n ; 1 b - | b | -
            1 a n ; 1 a n | a | the server sends the same page again
            1 a n ; 1 b m ; 1 a n | a,b | the server sends the same page again
            1 a,b n ; 1 a,b m | a,b | the server sends the same page again
            1 a,b n ; 1 b,c - | a,b,c | -
            1 a,b n ; 1 a,b - | a,b | -
            1 a ? | a | the server does not say how to ask for more
            1 a n ; 1 b ? | a,b | the server does not say how to ask for more
            8000000 a n ; 1 b - | a,b | -
            8000000 a n ; 1 b m | a,b | q reads no more than 8 MB
            1 a LONG | a | the token of the next page has more than 2 kB
        "##;
        for [pages, models, lack] in rows(table) {
            let mut list = PagedList::default();
            for page in pages.split(" ; ") {
                let fields = Vec::from_iter(page.split(' '));
                let ids = fields[1].split(',').filter(|id| *id != "-");
                let listed = ids.map(|id| ListedModel {
                    id: id.to_owned(),
                    ..ListedModel::default()
                });
                let next = match fields[2] {
                    "-" => NextPage::Absent,
                    "?" => NextPage::Unnamed,
                    next => NextPage::After(next.replace("LONG", &long)),
                };
                let models = listed.collect();
                let bytes = fields[0].parse().expect(page);
                list.add(ModelPage { models, next }, bytes);
            }
            let ids = Vec::from_iter(list.models.iter().map(|model| &*model.id));
            assert_eq!(ids.join(","), models, "{pages}");
            assert_eq!(list.lack.as_deref().unwrap_or_default(), lack, "{pages}");
            assert_eq!(list.next, None, "{pages}");
        }
    }

    #[test]
    fn a_list_without_an_end_ends() {
        let mut list = PagedList::default();
        let mut requests = 0;
        loop {
            let next = NextPage::After(requests.to_string());
            let models = Vec::new();
            list.add(ModelPage { models, next }, 1);
            requests += 1;
            if list.next.is_none() {
                break;
            }
        }
        assert_eq!(requests, MAX_PAGES);
        assert!(list.lack.is_some());
    }
}
