//! Tools that a model may call: commands, and servers that speak the Model Context Protocol.
//!
//! There are three ideas in this directory. A **section** is what the configuration says (`settings::ToolServer`): a program, an
//! address, or commands. A **source** is a section in use (`ToolSource`), which is starting, ready or has failed. An **offer**
//! is a tool of a source that the model may call (`OfferedTool`). The `Toolbox` has all of a question. This is the life of a call:
//!
//! 1. **Section.** A `Selection` says which tools a question uses: by `-t`, by the conversation or, for `--list-tools`, all.
//!    `Preparation` finds what each of their sections needs, before anything starts: programs, directories and keys. What comes of
//!    a section is a `Server`, which knows its `Callee`: a program, a site, or commands. Each key on the way goes into
//!    `ToolSecrets`.
//! 2. **Source.** `Toolbox::start` starts all of them side by side, each on a thread; those of `-t` start while q reads its
//!    input. `Connection::open` shakes hands and asks for the list of tools (`ServerInfo`), in the words of `Protocol`, over the
//!    pipes of a `Process` or over `Http`. Commands need no start. A server that has listed its tools before (`cached_list`) is not
//!    waited for: the model is asked while it starts.
//! 3. **Offers.** `Toolbox::wait` collects what the sources offer: within `only` of the section, under names that every API
//!    accepts, as far as it is selected (`offers`, `names`), with what the servers want the model to know. `Toolbox::fit`
//!    leaves out what the provider would reject. When a server starts later, its new list corrects its offers. If it differs, or
//!    a server says that its tools have changed, `Toolbox::offer_new_tools` does this once more before the model is asked again.
//! 4. **Consent.** The model calls a tool by its name. `Toolbox::run` finds the offer, waits for its server, and checks the
//!    arguments. A call runs if the user's settings or `--yes` allow it; else `Consent` shows all of it on the terminal
//!    (`layout`) and asks. What a server says of its own tools counts only where the user has written `allow = ["@reads"]`.
//! 5. **Run.** The calls that may run go to their servers side by side, but one server gets one after another
//!    (`run_side_by_side`). `Server::call` sends `tools/call`, or starts the command (`FilledCommand::run`), and waits as long as
//!    the section's `timeout` says.
//! 6. **Outcome.** What comes back is an `Outcome`: a text and images, or why there is none. A server that cannot go on is
//!    ended. Its `Failure` tells the model what happened, and the user its last lines, too. A program is started again for the
//!    next call, once in a question (`ToolSource::restart_if_ended`).
//! 7. **Result.** `ToolSecrets` takes the keys out, `Room` cuts what is too much, and the `ToolRun` goes to the model and, by
//!    the `Observer`, into the conversation: even where a signal ends q before the other calls have ended.
//!
//! In the end, `Toolbox::end` ends all servers. All processes are in `ProcessGroups`, through which a signal ends them at any moment;
//! how each kind of process is asked to end is a table in `end_steps`. A conversation is saved before its servers end.

mod about;
mod batch;
mod bounds;
mod cached_list;
mod calls;
mod commands;
mod confined;
mod connection;
mod consent;
mod end_steps;
mod events;
mod failure;
pub mod faults;
mod groups;
mod headers;
mod http;
mod input;
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "no_kernel.rs"
)]
mod kernel;
mod layout;
mod line_reader;
mod lines;
mod names;
mod offers;
mod outcome;
mod prepare;
mod process;
mod program;
mod protocol;
mod revision;
mod rpc;
mod secrets;
mod server;
mod source;
pub mod startup;
mod tool_list;
mod toolbox;
mod withheld;

pub use calls::{MAX_ARGUMENTS, MAX_CALLS, Observer};
pub use groups::ProcessGroups;
pub use names::Selection;
pub use toolbox::Toolbox;
