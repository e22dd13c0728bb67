//! The process groups of servers and commands, which end together with q, whatever ends q.

use std::io;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::end_steps::GRACE_PERIOD;
use crate::scratch::Scratch;
use crate::threads::{self, lock};
use crate::unix::{self, Signal};
use crate::wait::wait_until;

/// How long what has been killed may take to end, and again its temporary directories to be removed, when q ends. Both take a few
/// milliseconds, but a process or a removal that waits for a busy disk can be neither ended nor hurried.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The process groups of all servers and commands, for the thread that handles signals.
#[derive(Debug, Clone, Default)]
pub struct ProcessGroups(Arc<Mutex<RunningGroups>>);

/// The groups, as the threads share them.
#[derive(Debug, Default)]
struct RunningGroups {
    groups: Vec<Group>,
    /// Since when q is about to end. From then on, no group is started.
    closed: Option<Instant>,
    /// How many temporary directories of groups that have ended are being removed.
    removing: usize,
}

#[derive(Debug)]
struct Group {
    /// That of the process that leads it.
    id: u32,
    /// The signal that asks it to end.
    stop: Signal,
    /// Whether it is a server that has listed its tools. A command never does.
    has_listed: bool,
    /// The temporary directory of its program, which is removed once nothing of the group is left.
    scratch: Option<Scratch>,
}

impl RunningGroups {
    fn has(&self, id: u32) -> bool {
        self.groups.iter().any(|group| group.id == id)
    }

    /// Returns the temporary directory of the group, which [`ProcessGroups::remove`] takes without the lock.
    #[must_use]
    fn forget(&mut self, id: u32) -> Option<Scratch> {
        let index = self.groups.iter().position(|group| group.id == id)?;
        let scratch = self.groups.swap_remove(index).scratch?;
        self.removing += 1;
        Some(scratch)
    }

    fn take_scratch(&mut self) -> Vec<Scratch> {
        let groups = self.groups.iter_mut();
        groups.filter_map(|group| group.scratch.take()).collect()
    }
}

impl ProcessGroups {
    /// Asks every group to end, and lets no more start.
    pub fn terminate(&self) {
        self.signal_all(|group| group.stop);
    }

    /// Starts the process that leads a new group. `stop` is the signal that asks the group to end.
    pub fn start(
        &self,
        stop: Signal,
        spawn: impl FnOnce() -> io::Result<(Child, Option<Scratch>)>,
    ) -> io::Result<Child> {
        // Locked until the group is known, so that a signal cannot miss it.
        let mut running = lock(&self.0);
        if running.closed.is_some() {
            return Err(io::Error::other("q is about to end"));
        }
        let (leader, scratch) = spawn()?;
        running.groups.push(Group {
            id: leader.id(),
            stop,
            has_listed: false,
            scratch,
        });
        Ok(leader)
    }

    /// Notes that a server has listed its tools.
    pub fn mark_listed(&self, id: u32) {
        for group in &mut lock(&self.0).groups {
            group.has_listed |= group.id == id;
        }
    }

    /// Whether something of a group may be left.
    pub fn has(&self, id: u32) -> bool {
        lock(&self.0).has(id)
    }

    /// Forgets the group of a leader that has ended, if nothing is left of it. Returns whether it is forgotten. Reaps the leader.
    pub fn forget_if_gone(&self, leader: &mut Child) -> bool {
        let id = leader.id();
        // Locked, because the system may reuse the id as soon as nothing of the group is left.
        let mut running = lock(&self.0);
        let has_ended = !matches!(leader.try_wait(), Ok(None));
        if running.has(id) && has_ended && !unix::is_group_running(id) {
            let scratch = running.forget(id);
            drop(running);
            self.remove(scratch);
            return true;
        }
        !running.has(id)
    }

    /// Forgets a group about which nothing more can be done.
    pub fn forget(&self, id: u32) {
        let scratch = lock(&self.0).forget(id);
        self.remove(scratch);
    }

    /// Asks a group to end, unless it has ended.
    pub fn terminate_one(&self, id: u32) {
        for group in &lock(&self.0).groups {
            if group.id == id {
                unix::signal_group(id, group.stop);
            }
        }
    }

    /// Asks the servers that have not listed their tools to end, and the commands that still run.
    pub fn terminate_unlisted(&self) {
        for group in &lock(&self.0).groups {
            if !group.has_listed {
                unix::signal_group(group.id, group.stop);
            }
        }
    }

    /// Ends every group, and lets no more start. Groups that were asked to end get a moment for it.
    pub fn kill(&self) {
        let closed = lock(&self.0).closed;
        let waited = closed.map_or(Duration::ZERO, |since| since.elapsed());
        let is_left = |group: &Group| {
            unix::reap_group(group.id);
            unix::is_group_running(group.id)
        };
        wait_until(GRACE_PERIOD.saturating_sub(waited), || {
            !lock(&self.0).groups.iter().any(is_left)
        });
        self.signal_all(|_| Signal::KILL);
        self.remove_scratch(is_left);
    }

    /// Removes the temporary directory of a group that has ended. The lock is free meanwhile, because it may take long.
    fn remove(&self, scratch: Option<Scratch>) {
        if let Some(scratch) = scratch {
            drop(scratch);
            lock(&self.0).removing -= 1;
        }
    }

    /// Removes the temporary directories of groups that have been killed, which takes a moment, and waits for those that are
    /// being removed.
    fn remove_scratch(&self, is_left: impl Fn(&Group) -> bool) {
        let has_scratch = |group: &Group| group.scratch.is_some() && is_left(group);
        let mut left = Vec::new();
        wait_until(KILL_TIMEOUT, || {
            let mut running = lock(&self.0);
            let is_over = running.removing == 0 && !running.groups.iter().any(has_scratch);
            if is_over {
                // Under the same lock, or the thread of a call could begin to remove one that nobody would wait for.
                left = running.take_scratch();
            }
            is_over
        });
        left.extend(lock(&self.0).take_scratch());
        remove_all(left, KILL_TIMEOUT, Scratch::remove_within);
    }

    fn signal_all(&self, signal: impl Fn(&Group) -> Signal) {
        let mut running = lock(&self.0);
        running.closed.get_or_insert_with(Instant::now);
        for group in &running.groups {
            unix::signal_group(group.id, signal(group));
        }
    }

    /// Does not return once a signal is about to end q: a server ended by that signal has not failed.
    pub fn park_if_terminating(&self) {
        let is_closed = lock(&self.0).closed.is_some();
        if is_closed {
            threads::wait_for_the_end();
        }
    }
}

/// Removes what is left, all of it within one timeout. `remove` gets what is left of that.
fn remove_all<T>(left: Vec<T>, timeout: Duration, remove: impl Fn(T, Duration)) {
    let began = Instant::now();
    for each in left {
        remove(each, timeout.saturating_sub(began.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::Barrier;
    use std::thread::{self, sleep};

    use super::*;

    /// Long enough for a busy machine.
    const SOON: Duration = Duration::from_secs(120);

    /// Starts a group that ends at a signal, and returns its leader and its temporary directory, which is made in this one.
    fn start(groups: &ProcessGroups, directory: &Path) -> (Child, PathBuf) {
        let scratch = Scratch::create(directory).expect("a temporary directory");
        let path = scratch.path.clone();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec sleep 1000"]);
        unix::in_own_session(&mut command);
        let started = groups.start(Signal::TERM, || Ok((command.spawn()?, Some(scratch))));
        (started.expect("a process"), path)
    }

    impl ProcessGroups {
        pub fn is_empty(&self) -> bool {
            lock(&self.0).groups.is_empty()
        }
    }

    #[test]
    fn all_temporary_directories_are_removed_within_one_timeout() {
        let given = RefCell::new(Vec::new());
        let timeout = Duration::from_millis(100);
        remove_all(vec![(); 3], timeout, |(), timeout| {
            sleep(timeout / 2);
            given.borrow_mut().push(timeout);
        });
        let given = given.into_inner();
        assert!(given[0] <= timeout, "{given:?}");
        for pair in given.windows(2) {
            assert!(pair[1] <= pair[0] / 2, "{given:?}");
        }
    }

    #[test]
    fn the_temporary_directories_of_killed_groups_are_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let groups = ProcessGroups::default();
        let started = [(); 3].map(|()| start(&groups, directory.path()));
        groups.kill();
        for (mut leader, scratch) in started {
            assert!(!scratch.exists(), "{}", scratch.display());
            // It may have been reaped with its group.
            let _ = leader.wait();
        }
    }

    #[test]
    fn a_temporary_directory_that_another_thread_begins_to_remove_is_gone_when_q_ends() {
        let root = tempfile::tempdir().expect("a directory");
        for id in 0..300 {
            let groups = ProcessGroups::default();
            let scratch = Scratch::create(root.path()).expect("a temporary directory");
            let path = scratch.path.clone();
            for name in ["a", "b", "c", "d"] {
                fs_err::write(path.join(name), "").expect("a file");
            }
            lock(&groups.0).groups.push(Group {
                id,
                stop: Signal::TERM,
                has_listed: false,
                scratch: Some(scratch),
            });
            let both = Arc::new(Barrier::new(2));
            let other = thread::spawn({
                let (groups, both) = (groups.clone(), Arc::clone(&both));
                move || {
                    both.wait();
                    groups.forget(id);
                }
            });
            // The other thread waits for the lock while this one looks whether something of the group is left.
            groups.remove_scratch(|_| {
                both.wait();
                false
            });
            assert!(!path.exists(), "{}", path.display());
            other.join().expect("no panic");
        }
    }

    #[test]
    fn servers_that_have_not_listed_their_tools_are_asked_to_end_and_forgotten() {
        let directory = tempfile::tempdir().expect("a directory");
        let groups = ProcessGroups::default();
        let (mut listed, kept) = start(&groups, directory.path());
        let (mut unlisted, removed) = start(&groups, directory.path());
        groups.mark_listed(listed.id());
        groups.terminate_unlisted();
        assert!(wait_until(SOON, || groups.forget_if_gone(&mut unlisted)));
        assert!(!removed.exists() && !groups.has(unlisted.id()));
        assert!(!groups.forget_if_gone(&mut listed));
        assert!(kept.exists() && groups.has(listed.id()));
        groups.terminate_one(listed.id());
        assert!(wait_until(SOON, || groups.forget_if_gone(&mut listed)));
        assert!(groups.is_empty());
    }
}
