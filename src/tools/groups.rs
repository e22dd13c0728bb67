//! The process groups of servers and commands, which end together with q, whatever ends q.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::end_steps::GRACE_PERIOD;
use crate::scratch::Scratch;
use crate::threads::{self, lock};
use crate::unix::{self, Signal, StartPermit};
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
    starting: Vec<StartingGroup>,
    groups: Vec<Group>,
    /// Since when q is about to end. From then on, no group is started.
    closed: Option<Instant>,
    /// Whether every group has been killed, so that one whose start takes that long is killed, too.
    is_killed: bool,
    /// How many temporary directories are being made, or removed after their groups have ended.
    unsettled: usize,
}

/// A group whose leader is being started, which may take long.
#[derive(Debug)]
struct StartingGroup {
    permit: Arc<StartPermit>,
    /// Whether it is to end as soon as it has started.
    is_unwanted: bool,
    scratch: Option<Scratch>,
}

#[derive(Debug)]
struct Group {
    /// That of the process that leads it.
    id: u32,
    /// The signal that asks it to end.
    stop: Signal,
    /// Whether it is a server that has listed its tools. A command never does.
    has_listed: bool,
    /// Whether nothing of it is left, so that its id may be that of another group now.
    is_gone: bool,
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
        self.unsettled += 1;
        Some(scratch)
    }

    fn take_scratch(&mut self) -> Vec<Scratch> {
        let mut taken = Vec::new();
        for group in &mut self.groups {
            taken.extend(group.scratch.take());
        }
        for group in &mut self.starting {
            taken.extend(group.scratch.take());
        }
        taken
    }

    /// Lets no more groups start.
    fn close(&mut self) {
        self.closed.get_or_insert_with(Instant::now);
        self.stop_starting();
    }

    /// Lets none of the groups run that are being started. Where it is too late for that, they are asked to end once they have
    /// started.
    fn stop_starting(&mut self) {
        for group in &mut self.starting {
            group.permit.withdraw();
            group.is_unwanted = true;
        }
    }

    /// Notes the groups of which nothing is left. Returns whether that is so of all, and no leader is about to run.
    fn are_gone(&mut self, is_left: impl Fn(&Group) -> bool) -> bool {
        for group in &mut self.groups {
            group.is_gone = group.is_gone || !is_left(group);
        }
        let is_starting = self.starting.iter().any(StartingGroup::has_leader);
        !is_starting && self.groups.iter().all(|group| group.is_gone)
    }

    /// Sends a signal to the groups that this is true of, unless they are gone.
    fn signal(&self, signal: impl Fn(&Group) -> Option<Signal>) {
        for group in &self.groups {
            if let Some(signal) = signal(group)
                && !group.is_gone
            {
                unix::signal_group(group.id, signal);
            }
        }
    }

    /// Kills the leaders that are being started.
    fn kill_starting(&self) {
        for group in &self.starting {
            // One that could not be started may have been reaped.
            if let Some(id) = group.permit.holder()
                && unix::is_child(id)
            {
                unix::signal_group(id, Signal::KILL);
            }
        }
    }

    /// Returns the group that a leader has been started for, or could not.
    fn take_starting(&mut self, permit: &Arc<StartPermit>) -> Option<StartingGroup> {
        let mut starting = self.starting.iter();
        let index = starting.position(|group| Arc::ptr_eq(&group.permit, permit))?;
        Some(self.starting.swap_remove(index))
    }
}

impl StartingGroup {
    /// Whether it has a leader, whose program is about to run.
    fn has_leader(&self) -> bool {
        self.permit.holder().is_some()
    }
}

impl ProcessGroups {
    /// Asks every group to end, and lets no more start.
    pub fn terminate(&self) {
        let mut running = lock(&self.0);
        running.close();
        running.signal(|group| Some(group.stop));
    }

    /// Starts the process that leads a new group. `stop` is the signal that asks the group to end. `spawn` gets the path of the
    /// temporary directory. Nothing is locked while that is made and the process is started, because both may take long.
    pub fn start(
        &self,
        stop: Signal,
        mut command: Command,
        make_scratch: impl FnOnce(&mut Command) -> io::Result<Option<Scratch>>,
        spawn: impl FnOnce(Command, Option<PathBuf>) -> io::Result<Child>,
    ) -> io::Result<Child> {
        let permit = Arc::new(StartPermit::new()?);
        permit.demand(&mut command);
        self.begin_start(&permit)?;
        let started = match make_scratch(&mut command) {
            Ok(scratch) => {
                let path = scratch.as_ref().map(|scratch| scratch.path.clone());
                self.keep_scratch(&permit, scratch);
                spawn(command, path)
            }
            Err(error) => {
                self.keep_scratch(&permit, None);
                Err(error)
            }
        };
        self.end_start(&permit, stop, started)
    }

    fn begin_start(&self, permit: &Arc<StartPermit>) -> io::Result<()> {
        let mut running = lock(&self.0);
        if running.closed.is_some() {
            return Err(io::Error::other("q is about to end"));
        }
        running.unsettled += 1;
        running.starting.push(StartingGroup {
            permit: Arc::clone(permit),
            is_unwanted: false,
            scratch: None,
        });
        Ok(())
    }

    /// Keeps the temporary directory of a group that is being started.
    fn keep_scratch(&self, permit: &Arc<StartPermit>, scratch: Option<Scratch>) {
        let mut running = lock(&self.0);
        running.unsettled -= 1;
        let mut starting = running.starting.iter_mut();
        if let Some(group) = starting.find(|group| Arc::ptr_eq(&group.permit, permit)) {
            group.scratch = scratch;
        }
    }

    /// Makes a group of a leader that has started. If it has not, its temporary directory is removed.
    fn end_start(
        &self,
        permit: &Arc<StartPermit>,
        stop: Signal,
        started: io::Result<Child>,
    ) -> io::Result<Child> {
        let mut running = lock(&self.0);
        let Some(starting) = running.take_starting(permit) else {
            return started;
        };
        let scratch = starting.scratch;
        let leader = match started {
            Ok(leader) => leader,
            Err(error) => {
                if scratch.is_some() {
                    running.unsettled += 1;
                }
                drop(running);
                self.remove(scratch);
                return Err(error);
            }
        };
        let id = leader.id();
        running.groups.push(Group {
            id,
            stop,
            has_listed: false,
            is_gone: false,
            scratch,
        });
        if running.is_killed {
            unix::signal_group(id, Signal::KILL);
        } else if starting.is_unwanted {
            unix::signal_group(id, stop);
        }
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
        lock(&self.0).signal(|group| (group.id == id).then_some(group.stop));
    }

    /// Asks the servers that have not listed their tools to end, and the commands that still run.
    pub fn terminate_unlisted(&self) {
        let mut running = lock(&self.0);
        running.stop_starting();
        running.signal(|group| (!group.has_listed).then_some(group.stop));
    }

    /// Ends every group, and lets no more start. Groups that were asked to end get a moment for it.
    pub fn kill(&self) {
        self.kill_what_is_left(|group| {
            unix::reap_group(group.id);
            unix::is_group_running(group.id)
        });
    }

    fn kill_what_is_left(&self, is_left: impl Fn(&Group) -> bool) {
        let closed = lock(&self.0).closed;
        let waited = closed.map_or(Duration::ZERO, |since| since.elapsed());
        wait_until(GRACE_PERIOD.saturating_sub(waited), || {
            lock(&self.0).are_gone(&is_left)
        });
        let mut running = lock(&self.0);
        running.close();
        running.is_killed = true;
        running.signal(|_| Some(Signal::KILL));
        running.kill_starting();
        drop(running);
        self.remove_scratch(is_left);
    }

    /// Removes the temporary directory of a group that has ended. The lock is free meanwhile, because it may take long.
    fn remove(&self, scratch: Option<Scratch>) {
        if let Some(scratch) = scratch {
            drop(scratch);
            lock(&self.0).unsettled -= 1;
        }
    }

    /// Removes the temporary directories of groups that have been killed, which takes a moment, and waits for those that are
    /// being made or removed.
    fn remove_scratch(&self, is_left: impl Fn(&Group) -> bool) {
        let has_scratch =
            |group: &Group| group.scratch.is_some() && !group.is_gone && is_left(group);
        let may_write = |group: &StartingGroup| group.scratch.is_some() && group.has_leader();
        let mut left = Vec::new();
        wait_until(KILL_TIMEOUT, || {
            let mut running = lock(&self.0);
            let is_over = running.unsettled == 0
                && !running.groups.iter().any(has_scratch)
                && !running.starting.iter().any(may_write);
            if is_over {
                // Under the same lock, or the thread of a call could begin to remove one that nobody would wait for.
                left = running.take_scratch();
            }
            is_over
        });
        left.extend(lock(&self.0).take_scratch());
        remove_all(left, KILL_TIMEOUT, Scratch::remove_within);
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
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::sync::{Barrier, mpsc};
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
        let make_scratch = |_: &mut Command| Ok(Some(scratch));
        let spawn = |mut ready: Command, _| ready.spawn();
        let started = groups.start(Signal::TERM, command, make_scratch, spawn);
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
    fn a_program_whose_start_takes_long_neither_delays_the_end_nor_outlives_it() {
        // Whether the process is there already when the end comes.
        for is_there in [false, true] {
            let root = tempfile::tempdir().expect("a directory");
            let groups = ProcessGroups::default();
            let scratch = Scratch::create(root.path()).expect("a temporary directory");
            let (path, ran) = (scratch.path.clone(), root.path().join("ran"));
            let (sender, stages) = mpsc::channel();
            let (release, held) = mpsc::channel::<()>();
            let starter = thread::spawn({
                let (groups, ran) = (groups.clone(), ran.clone());
                move || {
                    let mut command = Command::new("/bin/sh");
                    command.args(["-c", ">\"$0\"; exec sleep 1000"]).arg(ran);
                    unix::in_own_session(&mut command);
                    let wait = || {
                        sender.send(()).expect("a receiver");
                        held.recv().expect_err("it is released");
                    };
                    let spawn = |mut ready: Command, _| {
                        if is_there {
                            let spawned = ready.spawn();
                            wait();
                            return spawned;
                        }
                        wait();
                        ready.spawn()
                    };
                    groups.start(Signal::TERM, command, |_| Ok(Some(scratch)), spawn)
                }
            });
            stages.recv_timeout(SOON).expect("it is being started");
            groups.terminate();
            groups.kill();
            assert!(!path.exists(), "{is_there}");
            drop(release);
            let started = starter.join().expect("no panic");
            assert_eq!(started.is_ok(), is_there);
            if let Ok(mut leader) = started {
                let status = leader.wait().expect("a status");
                assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
            } else {
                assert!(!ran.exists());
            }
        }
    }

    #[test]
    fn a_program_that_has_not_quite_started_when_others_are_asked_to_end_is_asked_too() {
        for ask in [ProcessGroups::terminate, ProcessGroups::terminate_unlisted] {
            let groups = ProcessGroups::default();
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "exec sleep 1000"]);
            unix::in_own_session(&mut command);
            let spawn = |mut ready: Command, _| {
                let spawned = ready.spawn();
                ask(&groups);
                spawned
            };
            let started = groups.start(Signal::TERM, command, |_| Ok(None), spawn);
            let status = started.expect("a process").wait().expect("a status");
            assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
        }
    }

    #[test]
    fn a_group_of_which_nothing_is_left_gets_no_signal() {
        let groups = ProcessGroups::default();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec sleep 1000"]);
        // It has the id of such a group.
        let mut other = unix::in_own_session(&mut command)
            .spawn()
            .expect("a process");
        lock(&groups.0).groups.push(Group {
            id: other.id(),
            stop: Signal::INT,
            has_listed: false,
            is_gone: false,
            scratch: None,
        });
        groups.kill_what_is_left(|_| false);
        unix::signal_group(other.id(), Signal::TERM);
        let status = other.wait().expect("a status");
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
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
                is_gone: false,
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
