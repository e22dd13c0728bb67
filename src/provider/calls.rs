//! Assembles the calls of a reply from their fragments (pure).

mod assembly;
mod known;
mod notation;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use self::assembly::{Assembly, JsonScan, is_empty};
use self::known::KnownCalls;
pub use self::known::{Added, is_part};
use self::notation::plain_json;
pub use self::notation::without_white_space;
use super::lenient;
use crate::message::{LEFT_OUT, MAX_TOOL_NAME, ToolCall, UNJOINED};
use crate::text::json;

/// The arguments of a call without any.
const NO_ARGUMENTS: &str = "{}";

/// The name of a call that has come without one. APIs take back no call without a name, and no tool of q has this one, so the
/// model is told that there is no such tool.
const UNNAMED: &str = "unnamed_tool";

/// Where a fragment of a call says that it belongs, if it has no id that a call has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentPlace {
    /// To the call with this index of the provider's.
    Index(u64),
    /// It has no index, and is at this place among several of one event, each of which belongs to another call.
    AmongSeveral(u64),
    /// It has no index, and is alone in its event, so it belongs to the latest call.
    Alone,
}

/// The calls of a reply while it is read.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Vec<ToolCall>,
    /// How each of them has been put together.
    progress: Vec<Assembly>,
    /// The position of the latest call with each index of the provider's. A call that came by [`Calls::add_whole`] has none.
    open: HashMap<u64, usize>,
    /// The positions of the calls with an index and an id.
    by_id: HashMap<(u64, String), usize>,
    /// The position of the latest call with each id.
    latest_by_id: HashMap<String, usize>,
    /// How many of the first calls had all of their arguments when a later one had begun.
    settled: usize,
    /// The calls that came in one piece.
    whole: KnownCalls,
    /// The ids of the question's calls in earlier replies.
    earlier_ids: Vec<String>,
    /// The names of the tools that were offered.
    tools: Vec<String>,
}

impl Calls {
    /// Returns an empty list, for a question with calls with these ids in earlier replies, and with these tools.
    pub fn after(earlier_ids: &[String], tools: &[String]) -> Calls {
        Calls {
            whole: KnownCalls::after(earlier_ids),
            earlier_ids: earlier_ids.to_vec(),
            tools: tools.to_vec(),
            ..Calls::default()
        }
    }

    /// Returns the calls so far, in the order in which they began.
    pub fn list(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Leaves out the arguments of calls that need more bytes than there is `room`. Returns the place and the id of each such
    /// call.
    pub fn leave_out_arguments(&mut self, room: &mut usize) -> Vec<(usize, String)> {
        let mut places = Vec::new();
        for (place, call) in self.calls.iter_mut().enumerate() {
            if let Some(left) = room.checked_sub(call.arguments.len()) {
                *room = left;
            } else {
                call.arguments = LEFT_OUT.to_owned();
                places.push((place, call.id.clone()));
            }
        }
        places
    }

    /// Adds a fragment of the call at this place, or all of it. It may begin another call. Returns the position of the call.
    pub fn add(&mut self, place: FragmentPlace, mut fragment: ToolCall) -> usize {
        let index = match place {
            FragmentPlace::Index(index) | FragmentPlace::AmongSeveral(index) => index,
            // Servers count from 0.
            FragmentPlace::Alone => self.calls.len() as u64,
        };
        let open = self.open_call(place, &fragment);
        if open.is_none()
            && let Some(position) = self.continue_last(&fragment)
        {
            return position;
        }
        let mut shares_place = false;
        if let Some(position) = open {
            let call = &self.calls[position];
            if is_same_with_id(call, &fragment) {
                fragment.name.clear();
                fragment.arguments.clear();
            }
            if !begins_another(call, &fragment, &mut self.progress[position].scan) {
                if place != FragmentPlace::Alone {
                    self.open.insert(index, position);
                }
                self.extend(position, index, fragment);
                return position;
            }
            let is_alike = call.id == fragment.id && call.name == fragment.name;
            shares_place = is_alike && !matches!(place, FragmentPlace::AmongSeveral(_));
        }
        self.begin(index, fragment, shares_place)
    }

    /// Adds a fragment with this index to the call at this position.
    fn extend(&mut self, position: usize, index: u64, fragment: ToolCall) {
        if self.calls[position].id.is_empty() {
            self.note_id(index, &fragment.id, position);
            self.calls[position].id = fragment.id;
        }
        let call = &mut self.calls[position];
        let progress = &mut self.progress[position];
        progress.names.add(&call.name, &fragment.name);
        if call.name.is_empty() {
            call.name = fragment.name;
        }
        progress.append(&mut call.arguments, &fragment.arguments);
    }

    /// Begins a call with its first fragment. Returns its position.
    fn begin(&mut self, index: u64, fragment: ToolCall, shares_place: bool) -> usize {
        let position = self.calls.len();
        self.open.insert(index, position);
        self.note_id(index, &fragment.id, position);
        self.calls.push(fragment);
        let mut progress = Assembly::default();
        progress.shares_place = shares_place;
        self.progress.push(progress);
        position
    }

    /// Records the id of the call at this position, if it is there.
    fn note_id(&mut self, index: u64, id: &str, position: usize) {
        if !id.is_empty() {
            self.by_id.insert((index, id.to_owned()), position);
            self.latest_by_id.insert(id.to_owned(), position);
        }
    }

    /// Adds a call in one piece. Returns what became of it.
    pub fn add_whole(&mut self, mut call: ToolCall) -> Added {
        call.arguments = Assembly::default().without_repeats(call.arguments);
        call = normalized(call);
        let added = self.whole.add(&call, &mut self.calls, false);
        if let Added::New(position) = added {
            let number = self.earlier_ids.len() + position;
            self.whole.give_id(&mut call, number);
            self.calls.push(call);
            self.progress.push(Assembly::default());
        }
        added
    }

    /// Sets a field that has arrived with the call at this place. A later value replaces an earlier one.
    pub fn set_api_data(&mut self, place: usize, name: &str, data: Value) {
        if let Some(call) = self.calls.get_mut(place) {
            call.api_data[name] = data;
        }
    }

    /// Returns the position of the call that a fragment may belong to. With an index, that is an earlier one with this index if
    /// it has the fragment's id, because some servers give several calls one index, else the latest with the index. Without an
    /// index or a name, the id decides first.
    fn open_call(&self, place: FragmentPlace, fragment: &ToolCall) -> Option<usize> {
        let id = &fragment.id;
        let mut by_id = match place {
            FragmentPlace::Index(index) => self.by_id.get(&(index, id.clone())),
            FragmentPlace::AmongSeveral(_) | FragmentPlace::Alone => self.latest_by_id.get(id),
        };
        if fragment.name.is_empty() {
            by_id = by_id.or_else(|| self.latest_by_id.get(id));
        }
        let by_place = match place {
            FragmentPlace::Index(index) | FragmentPlace::AmongSeveral(index) => {
                self.open.get(&index).copied()
            }
            FragmentPlace::Alone => self.calls.len().checked_sub(1),
        };
        by_id.copied().or(by_place)
    }

    /// Adds a fragment with neither id nor name, at a place without a call, to the latest call. Some servers count the fragments
    /// instead of the calls. Returns the position of that call; `None` if the fragment may belong to another one.
    fn continue_last(&mut self, fragment: &ToolCall) -> Option<usize> {
        if !fragment.id.is_empty() || !fragment.name.is_empty() {
            return None;
        }
        let last = self.calls.len().checked_sub(1)?;
        // Such a fragment ends the calls of some servers.
        if fragment.arguments.is_empty() {
            return Some(last);
        }
        while self.settled < last && self.has_all_arguments(self.settled) {
            self.settled += 1;
        }
        let is_complete = self.has_all_arguments(last);
        let arguments = &mut self.calls[last].arguments;
        let says_something = is_complete && !is_empty(arguments);
        if self.settled < last || says_something {
            return None;
        }
        if is_complete {
            arguments.clear();
            self.progress[last].start_again();
        }
        self.progress[last].append(arguments, &fragment.arguments);
        Some(last)
    }

    fn has_all_arguments(&mut self, position: usize) -> bool {
        let arguments = &self.calls[position].arguments;
        self.progress[position].scan.is_complete(arguments)
    }

    /// Completes the calls after the last fragment: drops those that say nothing or were sent again, and fills in missing ids,
    /// names and arguments. Where arguments have come for a call without a name, those that another call lacks may be among them.
    pub fn finish(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let is_stray = |call: &ToolCall| {
            let says_something = !is_nothing(&call.arguments) && !is_empty(&call.arguments);
            call.id.is_empty() && call.name.trim().is_empty() && says_something
        };
        let has_stray_arguments = calls.iter().any(is_stray);
        let assembled = std::mem::take(&mut self.progress);
        let tools: HashSet<&str> = self.tools.iter().map(String::as_str).collect();
        let is_offered = |name: &str| tools.contains(plain_name(name));
        let mut known = KnownCalls::after(&self.earlier_ids);
        let numbers = self.earlier_ids.len()..;
        for (number, (mut call, progress)) in numbers.zip(calls.into_iter().zip(assembled)) {
            if says_nothing(&call) {
                continue;
            }
            if let Some(name) = progress.names.tool_name(is_offered) {
                name.clone_into(&mut call.name);
            }
            call.arguments = progress.without_repeats(call.arguments);
            call = normalized(call);
            if has_stray_arguments && may_lack_arguments(&call.arguments) {
                call.arguments = UNJOINED.to_owned();
            }
            let added = known.add(&call, &mut self.calls, progress.shares_place);
            if let Some(first) = added.earlier() {
                let data = &mut self.calls[first].api_data;
                if data.is_null() {
                    *data = call.api_data;
                }
                continue;
            }
            known.give_id(&mut call, number);
            self.calls.push(call);
            self.progress.push(Assembly::default());
        }
    }
}

/// Whether a fragment is a call without an id once more, now with its id. It may have all of the arguments, or none.
fn is_same_with_id(call: &ToolCall, fragment: &ToolCall) -> bool {
    let is_named_now = call.id.is_empty() && !fragment.id.is_empty() && fragment.name == call.name;
    is_named_now
        && (fragment.arguments.trim().is_empty()
            || plain_json(&fragment.arguments) == plain_json(&call.arguments))
}

/// Whether a fragment at the index of a call begins another call. Ollama gives all calls the index 0. LM Studio
/// gives each fragment of a call another id, but only the first fragment has a name.
fn begins_another(call: &ToolCall, fragment: &ToolCall, scan: &mut JsonScan) -> bool {
    if fragment.name.is_empty() || call.name.is_empty() {
        return false;
    }
    if fragment.id.is_empty() || call.id.is_empty() {
        // Some servers repeat the name in each fragment, so only a complete call is followed by another one.
        return scan.is_complete(&call.arguments);
    }
    if fragment.id != call.id {
        return true;
    }
    // Some servers give all calls one id. An object does not go on after its end, but an empty one may stand for what comes.
    // The scan reads each byte once, so it is first to look at all that has come.
    let begins_object = |text: &str| text.trim_start().starts_with('{');
    begins_object(&fragment.arguments)
        && scan.is_complete(&call.arguments)
        && begins_object(&call.arguments)
        && !is_empty(&call.arguments)
}

/// Whether a call has neither a name nor arguments. Some servers end with an empty fragment, which belongs to no call, perhaps with
/// an empty object.
pub fn says_nothing(call: &ToolCall) -> bool {
    let is_blank = call.id.is_empty() && is_empty(&call.arguments);
    call.name.trim().is_empty() && (is_blank || is_nothing(&call.arguments))
}

/// Gives a call of the model's turn, as the API wants it back, the name under which it has failed, if it has come without one.
pub fn add_missing_name(call: &mut Value) {
    if lenient::text_field(call, "name").trim().is_empty() {
        call["name"] = UNNAMED.into();
    }
}

/// Returns the call in the form in which it is run, but for a missing id.
fn normalized(mut call: ToolCall) -> ToolCall {
    if call.name.trim().is_empty() {
        UNNAMED.clone_into(&mut call.name);
    }
    // No tool has a longer name. Where it is shown and saved, a key is removed before the rest is cut: an ellipsis here would
    // hide the beginning of one at the end.
    let name = plain_name(&call.name).chars().take(MAX_TOOL_NAME + 1);
    call.name = name.collect();
    // Some servers encode the arguments twice.
    if let Ok(decoded) = serde_json::from_str::<String>(&call.arguments)
        && (json::is_object(&decoded) || is_nothing(&decoded))
    {
        call.arguments = decoded;
    }
    if is_nothing(&call.arguments) {
        call.arguments = NO_ARGUMENTS.to_owned();
    }
    call
}

/// Whether a call may have more arguments than these: they are none, or no object.
pub fn may_lack_arguments(arguments: &str) -> bool {
    is_empty(arguments) || !json::is_object(arguments)
}

/// Whether this is what servers send where a call has no arguments, instead of an empty object.
fn is_nothing(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "null")
}

/// Returns the name of a tool without what belongs to the notation of the model, which some servers leave there: of gpt-oss
/// `functions.NAME<|channel|>commentary`, of Kimi `functions.NAME:0`. No tool that q offers has such characters in its name.
fn plain_name(name: &str) -> &str {
    let (mut plain, _) = name.split_once("<|").unwrap_or((name, ""));
    plain = plain.trim();
    if let Some(function) = plain.strip_prefix("functions.") {
        plain = function.trim_end_matches(|char: char| char.is_ascii_digit());
        plain = plain.strip_suffix(':').unwrap_or(function);
    }
    if plain.is_empty() { name } else { plain }
}

/// Returns the arguments of a call as an object. Anything else becomes an empty object, because APIs reject it.
pub fn object(arguments: &str) -> Value {
    match lenient::value(arguments) {
        Some(Value::Object(fields)) => Value::Object(fields),
        _ => Value::Object(Map::new()),
    }
}

/// Empties the arguments in a turn of the model as the API wants it back, for the calls with these places and ids.
pub fn empty_arguments<'a>(
    turn: impl Iterator<Item = &'a mut Value>,
    too_long: &[(usize, String)],
) {
    let places: HashSet<usize> = too_long.iter().map(|(place, _)| *place).collect();
    let ids: HashSet<&str> = too_long.iter().map(|(_, id)| id.as_str()).collect();
    let mut place = 0;
    for element in turn {
        // Gemini's calls may have no id, but none of them is another kind of call.
        if let Some(call) = element.get_mut("functionCall") {
            if places.contains(&place) {
                call["args"] = Value::Object(Map::new());
            }
            place += 1;
            continue;
        }
        let id = element.get("call_id").or_else(|| element.get("id"));
        let id = id.and_then(Value::as_str);
        if !id.is_some_and(|id| ids.contains(id)) {
            continue;
        }
        if let Some(input) = element.get_mut("input") {
            *input = Value::Object(Map::new());
        }
        if let Some(text) = element.get_mut("arguments") {
            *text = NO_ARGUMENTS.into();
        }
    }
}

/// Returns the arguments of a call as the model wrote them, or `{}` if they are not an object, because servers parse the text.
pub fn text(arguments: &str) -> &str {
    if json::is_object(arguments) {
        arguments
    } else {
        NO_ARGUMENTS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            ..ToolCall::default()
        }
    }

    /// Reads an index, `*` for none, or `*0` for none of several in one event.
    fn place(text: &str) -> FragmentPlace {
        match text.strip_prefix('*') {
            None => FragmentPlace::Index(text.parse().expect(text)),
            Some("") => FragmentPlace::Alone,
            Some(among) => FragmentPlace::AmongSeveral(among.parse().expect(text)),
        }
    }

    #[test]
    fn fragments_of_calls_are_joined_in_each_way_that_servers_split_them() {
        // The fragments with index, id, name and arguments, and the calls with id, name and arguments.
        let table = r##"
            one call | 0 x a - ; 0 - - {"n" ; 0 - - :1} | x a {"n":1}
            one piece | 0 x a {} | x a {}
            two calls by turns | 0 x a - ; 1 y b - ; 0 - - {} ; 1 - - { } | x a {} ; y b { }
            Ollama: each call has index 0 | 0 x a {} ; 0 y a {"n":1} ; 0 z b {} | x a {} ; y a {"n":1} ; z b {}
            two calls with one index and one id | 0 x a {"n":1} ; 0 x a {"n":2} | x a {"n":1} ; - a {"n":2}
            the same with another name | 0 x a {"n":1} ; 0 x b {"n":1} | x a {"n":1} ; - b {"n":1}
            the same in fragments | 0 x a {"n" ; 0 - - :1} ; 0 x a {"n" ; 0 x a :2} | x a {"n":1} ; - a {"n":2}
            the same call again | 0 x a {"n":1} ; 0 x a {"n":1} | x a {"n":1}
            the same call again in fragments | 0 x a {"n":1} ; 0 x a {"n" ; 0 x a :1} | x a {"n":1}
            the same call in another notation | 0 x a {"k":"é/","n":1,"o":{"b":1,"a":[]}} ; 0 x a {"n": 1.0, "k": "\u00e9\/", "o": {"a": [], "b": 10e-1}} | x a {"k":"é/","n":1,"o":{"b":1,"a":[]}}
            the same in fragments and then whole | 0 x a {"n":1, ; 0 x - "k":"a"} ; 0 x a {"k":"a","n":1} | x a {"n":1,"k":"a"}
            the same without a name | 0 x a {"k":"a","n":1} ; 0 x - {"n":1,"k":"a"} | x a {"k":"a","n":1}
            the same at another index | 0 x a {"k":"a","n":1} ; 1 x a {"n":1,"k":"a"} | x a {"k":"a","n":1}
            the id comes late, with all in another notation | 0 - a {"k":"a","n":1} ; 0 x a {"n":1,"k":"a"} | x a {"k":"a","n":1}
            the same call with more fields each time | 0 x a {"n":1} ; 0 x a {"n":1,"m":2} ; 0 x a {"l":3,"m":2.0,"n":1} | x a {"l":3,"m":2.0,"n":1}
            an object with more fields each time | 0 x a {} ; 0 x a {"n":1} ; 0 x a {"n":1,"m":2} | x a {"n":1,"m":2}
            the same without names | 0 x a {"n":1} ; 0 - - {"n":1,"m":2} | x a {"n":1,"m":2}
            more fields and no index | * x a {"n":1} ; * x a {"n":1,"m":2} | x a {"n":1,"m":2}
            more fields and another value | 0 x a {"n":1} ; 0 x a {"n":2,"m":2} | x a {"n":1} ; - a {"n":2,"m":2}
            more fields at another index | 0 x a {"n":1} ; 1 x a {"n":1,"m":2} | x a {"n":1} ; - a {"n":1,"m":2}
            more fields without an id | 0 - a {"n":1} ; 0 - a {"n":1,"m":2} | - a {"n":1} ; - a {"n":1,"m":2}
            a text for a number | 0 x a {"n":1} ; 0 x a {"n":"1"} | x a {"n":1} ; - a {"n":"1"}
            an empty object before the arguments, with the name | 0 x a {} ; 0 x a {"n":1} | x a {"n":1}
            an empty object after the arguments, with the name | 0 x a {"n":1} ; 0 x a {} | x a {"n":1}
            LM Studio: each fragment has an id | 0 x a - ; 0 y - {"n" ; 0 z - :1} ; 1 u b - ; 1 v - {} | x a {"n":1} ; u b {}
            the id comes late | 0 - a - ; 0 x - {} | x a {}
            the name comes late | 0 x - - ; 0 x a {} | x a {}
            the name is repeated | 0 x a { ; 0 x a } | x a {}
            the name is repeated, without an id | 0 x a { ; 0 - a } ; 0 - - ␊ | x a {}␊
            whole calls, one without an id | 0 x a {} ; 0 - b {} | x a {} ; - b {}
            no arguments | 0 x a - | x a {}
            blank arguments | 0 x a ␊ | x a {}
            arguments that are not JSON | 0 x a {no | x a {no
            encoded twice | 0 x a "{\"n\" ; 0 - - :1}" | x a {"n":1}
            text alone | 0 x a "n" | x a "n"
            nothing | 0 - - - | -
            each fragment from the beginning again | 0 x a {"n" ; 0 - - {"n":1 ; 0 - - {"n":12} | x a {"n":12}
            the same, with an end | 0 x a {"n" ; 0 - - {"n":1} ; 0 - - ␊ | x a {"n":1}
            an empty object, then all | 0 x a {} ; 0 - - {"n":1} | x a {"n":1}
            an empty object, then fragments | 0 x a {} ; 0 - - {"n" ; 0 - - :1} | x a {"n":1}
            fragments, then all again | 0 x a {"n" ; 0 - - :1} ; 0 - - {"n":1} | x a {"n":1}
            all again, word by word | 0 x a {"n" ; 0 - - :1} ; 0 - - {"n" ; 0 - - :1} | x a {"n":1}
            an object like the one around it | 0 x a {"n": ; 0 - - {"n":1} ; 0 - - } | x a {"n":{"n":1}}
            two objects, which may be two calls | 0 x a {"n":1} ; 0 - - {"n":2} | x a {"n":1}{"n":2}
            the same in fragments | 0 x a {"n" ; 0 - - :1}{"n" ; 0 - - :2} | x a {"n":1}{"n":2}
            arguments and something else | 0 x a {} ; 0 - - {"n":1}no | x a {}{"n":1}no
            one index, ids by turns | 0 x a {"n" ; 0 y b { ; 0 x - :1} ; 0 y - } | x a {"n":1} ; y b {}
            one index, names with each id | 0 x a {"n" ; 0 y b { ; 0 x a :1} ; 0 y b } | x a {"n":1} ; y b {}
            one index, the id comes late | 0 - a {"n" ; 0 x - - ; 0 y b {} ; 0 x - :1} | x a {"n":1} ; y b {}
            no index | * x a {"n" ; * - - :1} ; * y b - ; * - - {} | x a {"n":1} ; y b {}
            no index, ids by turns | * x a {"n" ; * y b { ; * x - :1} ; * y - } | x a {"n":1} ; y b {}
            no index and no id | * - a {"n" ; * - - :1} ; * - b {} | - a {"n":1} ; - b {}
            no index, several in one event | *0 x a {"n" ; *1 y b { ; *0 - - :1} ; *1 - - } | x a {"n":1} ; y b {}
            no index and no id, several in one event | *0 - a - ; *1 - b - ; *0 - - {} ; *1 - - { } | - a {} ; - b { }
            an index at first, then ids in another order | 0 x a - ; 1 y b - ; *0 y - {"n":2} ; *1 x - {"n":1} | x a {"n":1} ; y b {"n":2}
            an index at first, then one id | 0 x a - ; 1 y b - ; * y - {"n":2} ; * x - {"n":1} | x a {"n":1} ; y b {"n":2}
            an index other than the place, then the id | 1 x a { ; * x - } | x a {}
            an index at first, then none for the latest | 0 x a {} ; 1 y b { ; * - - } | x a {} ; y b {}
            ids at first, then indexes | * x a - ; * y b - ; 0 - - {"n":1} ; 1 - - {"n":2} | x a {"n":1} ; y b {"n":2}
            neither a name nor arguments | 0 x a {} ; 1 y - - | x a {}
            no name | 0 x a {} ; 1 y - {} | x a {} ; y unnamed_tool {}
            each fragment has an index | 0 x a - ; 1 - - {"n" ; 2 - - :1} | x a {"n":1}
            each fragment has an index, from the first one on | 0 x a {"n" ; 1 - - :1 ; 2 - - } | x a {"n":1}
            each fragment has an index, in one event without indexes | *0 x a {"n" ; *1 - - :1 ; *2 - - } | x a {"n":1}
            fragments with the index 7 | 0 x a {"n" ; 7 - - : ; 7 - - 1} | x a {"n":1}
            fragments with another index and the id | 0 x a - ; 1 x - {"n" ; 2 x - :1} | x a {"n":1}
            fragments with the index of the next call and the id | 0 x a {"n" ; 1 y b {"m" ; 1 x - :1} ; 1 y - :2} | x a {"n":1} ; y b {"m":2}
            an index for each fragment of two calls | 0 x a {"n" ; 1 - - :1} ; 2 y b {"n" ; 3 - - :2} | x a {"n":1} ; y b {"n":2}
            an index for each fragment, which the next call has, too | 0 x a {"n" ; 1 - - :1} ; 1 y b {"n" ; 2 - - :2} | x a {"n":1} ; y b {"n":2}
            the same without ids | 0 - a {"n" ; 1 - - :1} ; 1 - b {"n" ; 2 - - :2} | - a {"n":1} ; - b {"n":2}
            an index for each fragment of each call | 0 x a {"n" ; 1 - - :1} ; 0 y b {"n" ; 1 - - :2} | x a {"n":1} ; y b {"n":2}
            the same after an empty object | 0 x a {} ; 1 - - {"n" ; 2 - - :1} ; 3 y b {} ; 4 - - {"n":2} | x a {"n":1} ; y b {"n":2}
            an index for each fragment, and a last call without arguments | 0 x a - ; 1 - - {"n":1} ; 2 y b - | x a {"n":1} ; y b {}
            an empty fragment with an index of its own | 0 x a {"n" ; 1 - - - ; 0 - - :1} ; 2 - - - | x a {"n":1}
            empty fragments before the arguments | 0 x a - ; 1 - - - ; 2 - - {"n":1} | x a {"n":1}
            arguments of either of two calls | 0 x a - ; 1 y b - ; 2 - - {"n":1} ; 3 - - {"n":2} | x a ? ; y b ? ; - unnamed_tool {"n":1} ; - unnamed_tool {"n":2}
            the end of either of two calls | 0 x a {"n" ; 1 y b {"n" ; 2 - - :1} | x a ? ; y b ? ; - unnamed_tool ?
            the end of the first of two calls under its own index | 0 x a {"n" ; 1 y b {"n" ; 0 - - :1} ; 7 - - :2} | x a {"n":1} ; y b {"n":2}
            arguments of either of two calls, next to a complete one | 0 x a {"n":1} ; 1 y b - ; 2 z c - ; 3 - - {"n":2} | x a {"n":1} ; y b ? ; z c ? ; - unnamed_tool {"n":2}
            an object after a complete call | 0 x a {"n":1} ; 1 - - {"n":2} | x a {"n":1} ; - unnamed_tool {"n":2}
            arguments without a name before a call without arguments | 0 - - {"n":1} ; 1 x a - | - unnamed_tool {"n":1} ; x a ?
            arguments with another id and index, and no name | 0 x a - ; 1 y - {"n":1} | x a {} ; y unnamed_tool {"n":1}
            a call twice in one event | 0 x a {"n":1} ; 1 x a {"n":1} | x a {"n":1}
            all calls again at the end | 0 x a {"n" ; 0 - - :1} ; 0 y b {} ; 0 x a {"n":1} ; 1 y b {} | x a {"n":1} ; y b {}
            one id for all calls | 0 0 a {"n":1} ; 1 0 a {"n":2} ; 2 0 b {"n":1} | 0 a {"n":1} ; - a {"n":2} ; - b {"n":1}
            one id for all calls, in fragments | 0 0 a {"n" ; 0 - - :1} ; 1 0 a {"n" ; 1 - - :2} | 0 a {"n":1} ; - a {"n":2}
            one id for all calls, then all again | 0 0 a {"n":1} ; 1 0 a {"n":2} ; 2 0 a {"n":1} ; 3 0 a {"n":2} | 0 a {"n":1} ; - a {"n":2}
            a call twice, in fragments | 0 x a {"n" ; 0 - - :1} ; 1 x a {"n" ; 1 - - :1} | x a {"n":1}
            a call twice, with other whitespace | 0 x a {"n":1} ; 1 x a {"n": 1} ; 2 x a {"n":␊1} | x a {"n":1}
            a call twice, whose texts differ in whitespace | 0 x a {"n":"␊\""} ; 1 x a {"n":"\""} | x a {"n":"␊\""} ; - a {"n":"\""}
            a call without arguments, and with all | 0 x a - ; 1 x a {"n":1} | x a {"n":1}
            a call with an empty object, and with all | 0 x a {} ; 1 x a {"n" ; 1 - - :1} | x a {"n":1}
            a call with a part of its arguments, and with all | 0 x a {"n ; 1 x a {"n":1} | x a {"n":1}
            a call with all arguments, and with none | 0 x a {"n":1} ; 1 x a - | x a {"n":1}
            a call again and again, with more each time | 0 x a - ; 1 x a {"n ; 2 x a {"n":1} ; 3 x a {"n":1} | x a {"n":1}
            a call at many indexes, next to another | 0 x a - ; 1 x a {"n":1} ; 2 y a {"n":1} ; 3 y b {} | x a {"n":1} ; y a {"n":1} ; - b {}
            arguments that are not the beginning of the others | 0 x a {"m ; 1 x a {"n":1} | x a {"m ; - a {"n":1}
            the id comes late, with all again | 0 - a {"n":1} ; 0 x a {"n":1} | x a {"n":1}
            the id comes late, with the name again | 0 - a {"n":1} ; 0 x a - | x a {"n":1}
            the id comes late, with all again, twice | 0 - a {"n":1} ; 0 x a {"n":1} ; 0 - b {"n":2} ; 0 y b {"n":2} | x a {"n":1} ; y b {"n":2}
            the id comes late, with another call | 0 - a {"n":1} ; 0 x a {"n":2} | - a {"n":1} ; x a {"n":2}
            the same call without ids | 0 - a {} ; 1 - a {} | - a {} ; - a {}
            the same call with other ids | 0 x a {} ; 1 y a {} | x a {} ; y a {}
            a name as gpt-oss writes it | 0 x a<|channel|>commentary { ; 0 x a<|channel|>commentary } | x a {}
            the same with its space | 0 x functions.a<|channel|>json {} | x a {}
            a name as Kimi writes it | 0 functions.a:0 functions.a:0 {} ; 1 functions.a2:1 functions.a2:1 {} | functions.a:0 a {} ; functions.a2:1 a2 {}
            a name that ends in a number | 0 x functions.a2 {} ; 1 y a2 {} | x a2 {} ; y a2 {}
            a name in two fragments | 0 x get_ - ; 0 - time { ; 0 - - } | x get_time {}
            a name in three, with an id each | 0 x ge - ; 0 x t_ - ; 0 x time {} | x get_time {}
            a name in two fragments, which comes late | 0 x - - ; 0 - get_ - ; 0 - time {} | x get_time {}
            a name in two fragments, as Kimi writes it | 0 x functions.get_ - ; 0 - time:0 {} | x get_time {}
            two names in fragments, by turns | 0 x get_ - ; 1 y get_ - ; 0 - time {} ; 1 - times {} | x get_time {} ; y get_times {}
            the name of a tool, which begins that of another | 0 x get_time - ; 0 - s {} | x get_times {}
            the same, each with an id | 0 x get_time - ; 0 x s {} | x get_times {}
            the same without an index | * x get_time - ; * - s {} | x get_times {}
            the same, as Kimi writes it | 0 x functions.get_time - ; 0 - s:0 {} | x get_times {}
            the same, and all of it again | 0 x get_time - ; 0 - s { ; 0 - get_times } | x get_times {}
            a name from its beginning again, which begins with that of another tool | 0 x get_time - ; 0 x get_times {} | x get_times {}
            a name from its beginning again | 0 x get_ - ; 0 - get_ti - ; 0 - get_time {} | x get_time {}
            the name of a tool, repeated | 0 x get_time { ; 0 - get_time } | x get_time {}
            the name of a tool, repeated, which makes that of another | 0 x tick { ; 0 x tick } | x tick {}
            the same, as Kimi writes it | 0 x functions.tick:0 { ; 0 x functions.tick:0 } | x tick {}
            a name in two fragments that are alike | 0 x cous - ; 0 - cous {} | x couscous {}
            the name of a tool, and something else | 0 x get_time - ; 0 - zone {} | x get_time {}
            fragments of no tool's name | 0 x get_ - ; 0 - none {} | x get_ {}
            a name of nothing else | 0 x <|channel|> {} | x <|channel|> {}
        "##;
        let tools = ["get_time", "get_times", "tick", "ticktick", "couscous"].map(str::to_owned);
        for [case, fragments, expected] in rows(table) {
            let mut calls = Calls::after(&[], &tools);
            for fragment in fragments.replace('␊', "\n").split(" ; ") {
                let columns = fragment
                    .splitn(4, ' ')
                    .map(|text| if text == "-" { "" } else { text });
                let columns: Vec<&str> = columns.collect();
                let [index, id, name, arguments] = columns[..] else {
                    panic!("{fragment}");
                };
                calls.add(place(index), call(id, name, arguments));
            }
            calls.finish();
            let mut found = Vec::new();
            for call in calls.list() {
                // q has made up an id.
                let id = if call.id.starts_with("call") {
                    "-"
                } else {
                    &call.id
                };
                let arguments = call.arguments.replace(UNJOINED, "?");
                found.push(format!("{id} {} {arguments}", call.name));
            }
            assert_eq!(found.join(" ; "), expected.replace('␊', "\n"), "{case}");
        }
    }

    #[test]
    fn an_empty_object_before_the_arguments_of_a_whole_call_is_dropped_at_once() {
        let mut calls = Calls::default();
        calls.add_whole(call("x", "a", r#"{}{"n":1}"#));
        assert_eq!(calls.list()[0].arguments, r#"{"n":1}"#);
    }

    #[test]
    fn a_whole_call_that_was_sent_before_is_told_from_a_new_one() {
        // The calls with id, name and arguments, and what becomes of the last.
        let table = r##"
            once | x a {} | New(0)
            twice | x a {"n":1} ; x a {"n":1} | Again(0)
            other whitespace | x a {"n":1} ; x a { "n": 1 } | Again(0)
            another notation | x a {"n":1,"k":"é"} ; x a {"k":"\u00e9","n":1.0} | Again(0)
            another id | x a {} ; y a {} | New(1)
            another name | x a {} ; x b {} | New(1)
            no id | - a {} ; - a {} | New(1)
            other arguments | x a {"n":1} ; x a {"n":2} | New(1)
            the second of two | x a {"n":1} ; x a {"n":2} ; x a {"n":2} | Again(1)
            arguments late | x a - ; x a {"n":1} | Completed(0)
            their end late | x a {"n ; x a {"n":1} | Completed(0)
            none after all | x a {"n":1} ; x a {} | Again(0)
            twice after none | x a {} ; x a {"n":1} ; x a {"n":1} | Again(0)
        "##;
        for [case, sent, expected] in rows(table) {
            let mut calls = Calls::default();
            let mut added = None;
            for whole in sent.split(" ; ") {
                let mut columns = whole
                    .splitn(3, ' ')
                    .map(|text| if text == "-" { "" } else { text });
                let mut next = || columns.next().expect(whole);
                added = Some(calls.add_whole(call(next(), next(), next())));
            }
            assert_eq!(format!("{:?}", added.expect(case)), expected, "{case}");
            let before = calls.list().len();
            calls.finish();
            assert_eq!(calls.list().len(), before, "{case}");
        }
    }

    #[test]
    fn fragments_that_repeat_the_name_are_joined_in_linear_time() {
        for (begin, piece, end, count) in [
            ("{\"a\":[", "0, [\"}\"],", "0]}", 1),
            ("\"", "\\\"{}", "\"", 1),
            ("", "  ", "{}", 1),
            ("{}", " ", "\n", 2),
            ("{no}", " ", "", 1),
            ("", "1", "", 100_000),
            ("{}", " {}", "", 100_001),
        ] {
            let mut calls = Calls::default();
            calls.add(FragmentPlace::Index(0), call("", "a", begin));
            for _ in 0..100_000 {
                calls.add(FragmentPlace::Index(0), call("", "a", piece));
            }
            calls.add(FragmentPlace::Index(0), call("", "", end));
            assert_eq!(calls.list().len(), count, "{begin}");
        }
    }

    #[test]
    fn fragments_with_an_index_each_are_joined_in_linear_time() {
        for (begin, piece) in [
            ("", "1"),
            ("", " "),
            ("{", " "),
            ("{}", "{}"),
            ("{", "\"{}\","),
            ("[", "]"),
        ] {
            let mut calls = Calls::default();
            for index in [0, 1] {
                calls.add(FragmentPlace::Index(index), call("", "a", begin));
            }
            for index in 2..100_000 {
                calls.add(FragmentPlace::Index(index), call("", "", piece));
            }
            calls.finish();
            assert_eq!(calls.list()[0].name, "a", "{begin}");
        }
    }

    #[test]
    fn a_called_name_that_is_longer_than_that_of_any_tool_is_cut() {
        for is_whole in [true, false] {
            let mut calls = Calls::default();
            let long = call("", &"ä".repeat(100_000), "");
            if is_whole {
                calls.add_whole(long);
            } else {
                calls.add(FragmentPlace::Index(0), long);
            }
            calls.finish();
            let name = &calls.list()[0].name;
            assert_eq!(
                (name.chars().count(), name.ends_with('ä')),
                (MAX_TOOL_NAME + 1, true)
            );
        }
    }

    #[test]
    fn each_call_of_a_question_has_an_id_of_its_own() {
        // The ids of earlier replies; those that this reply gives its calls, one after another; and those that they get.
        let table = r##"
            made up by their number in the question | a b | - x - | call00002 x call00004
            numbered from 0 in each reply | call_0 call_1 | call_0 call_1 call_2 | call00002 call00003 call_2
            one for all | - | 0 0 | 0 call00001
            an earlier reply has one that q makes up | call00001 | - | call00002
            so has this reply | - | call00001 - | call00001 call00002
            and it gives one that q has made up | - | - call00000 | call00000 call00001
        "##;
        for [case, earlier, given, expected] in rows(table) {
            let earlier = Vec::from_iter(earlier.split_whitespace().map(str::to_owned));
            for is_whole in [true, false] {
                let mut calls = Calls::after(&earlier, &[]);
                for (place, id) in (0..).zip(given.split(' ')) {
                    let id = if id == "-" { "" } else { id };
                    let arguments = format!("{{\"n\":{place}}}");
                    if is_whole {
                        calls.add_whole(call(id, "a", &arguments));
                    } else {
                        calls.add(FragmentPlace::Index(place), call(id, "a", &arguments));
                    }
                }
                for _ in 0..2 {
                    calls.finish();
                    let ids = Vec::from_iter(calls.list().iter().map(|call| call.id.as_str()));
                    assert_eq!(ids.join(" "), expected, "{case}, {is_whole}");
                }
            }
        }
    }

    #[test]
    fn a_call_that_says_nothing_leaves_its_number_unused() {
        let mut calls = Calls::after(&["x".to_owned()], &[]);
        calls.add(FragmentPlace::Index(0), call("", "", " "));
        calls.add(FragmentPlace::Index(1), call("", "a", "{}"));
        calls.add(FragmentPlace::Index(2), call("", "", "{}"));
        calls.finish();
        assert_eq!(calls.list()[0].id, "call00002");
        assert_eq!(calls.list().len(), 1);
    }

    #[test]
    fn a_call_without_arguments_has_an_empty_object_however_the_server_says_it() {
        for (arguments, expected) in [
            ("", "{}"),
            (" \n", "{}"),
            ("null", "{}"),
            ("\"\"", "{}"),
            ("\"null\"", "{}"),
            ("\"{}\"", "{}"),
            ("\"{\\\"a\\\": 1}\"", "{\"a\": 1}"),
            ("[]", "[]"),
            ("\"no\"", "\"no\""),
        ] {
            let mut calls = Calls::default();
            calls.add(FragmentPlace::Index(0), call("", "a", arguments));
            calls.finish();
            calls.add_whole(call("", "b", arguments));
            for found in calls.list() {
                assert_eq!(found.arguments, expected, "{arguments}");
            }
        }
    }

    #[test]
    fn arguments_that_are_not_an_object_are_sent_as_an_empty_object() {
        for (arguments, sent) in [
            ("{ \"n\": 1 }", "{ \"n\": 1 }"),
            ("[1]", "{}"),
            ("{no", "{}"),
            ("", "{}"),
            ("null", "{}"),
        ] {
            assert_eq!(text(arguments), sent, "{arguments}");
            let expected = serde_json::from_str::<Value>(sent).expect(sent);
            assert_eq!(object(arguments), expected, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn fragments_become_a_call_if_one_of_them_has_a_name_or_arguments_and_never_if_all_are_empty(fragments in prop::collection::vec((0u64..3, "[xy]?", "[ab]?", "[{}1]{0,2}"), 0..12)) {
            let mut calls = Calls::default();
            for (index, id, name, arguments) in &fragments {
                calls.add(FragmentPlace::Index(*index), call(id, name, arguments));
            }
            calls.finish();
            // Braces alone may be an empty object, which without a name and an id is no call.
            if fragments.iter().any(|(_, _, name, arguments)| !name.is_empty() || arguments.contains('1')) {
                prop_assert!(!calls.list().is_empty());
            }
            if fragments.iter().all(|(_, _, name, arguments)| name.is_empty() && arguments.is_empty()) {
                prop_assert!(calls.list().is_empty());
            }
        }
    }
}
