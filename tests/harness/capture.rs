//! What comes out of a pipe or a terminal, collected while a program runs.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

use super::locks::lock;

/// Keeps starting a program and closing a pipe apart. Between fork and exec a new process holds copies of the other
/// tests' pipes: one that is closed in that moment would stay open a little longer, and could still be written to.
pub static FORKING: RwLock<()> = RwLock::new(());

/// Collects what comes out of a pipe or a terminal until it ends or the test closes it.
pub struct Capture {
    shared: Arc<(Mutex<Captured>, Condvar)>,
    /// Dropping it makes the reading thread close the pipe.
    stop: Option<UnixStream>,
}

#[derive(Default)]
pub struct Captured {
    pub bytes: Vec<u8>,
    pub ended: bool,
}

impl Capture {
    /// Without a pipe there is nothing to come.
    pub fn start(pipe: Option<impl Read + AsFd + Send + 'static>) -> Capture {
        let shared = Arc::new((Mutex::<Captured>::default(), Condvar::new()));
        let Some(mut pipe) = pipe else {
            lock(&shared.0).ended = true;
            return Capture { shared, stop: None };
        };
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                collect(&mut pipe, &stopped, &shared);
                let forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
                drop(pipe);
                drop(forking);
                lock(&shared.0).ended = true;
                shared.1.notify_all();
            }
        });
        Capture {
            shared,
            stop: Some(stop),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Captured> {
        lock(&self.shared.0)
    }

    pub fn close(&mut self) {
        self.stop = None;
        let ended = self.shared.1.wait_while(self.lock(), |now| !now.ended);
        drop(ended);
    }

    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }

    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |now| now.ended).ended
    }

    pub fn wait_for(&self, text: &[u8], deadline: Instant) -> Result<Vec<u8>, &'static str> {
        let mut searched = 0;
        let mut found = false;
        let now = self.wait_until(deadline, |now| {
            found = contains(&now.bytes[searched..], text);
            // The next look needs only what is new, and what might be the first half of it.
            searched = now.bytes.len().saturating_sub(text.len());
            found || now.ended
        });
        match (found, now.ended) {
            (true, _) => Ok(now.bytes.clone()),
            (false, true) => Err("ended"),
            (false, false) => Err("nothing more in time"),
        }
    }

    pub fn wait_until(
        &self,
        deadline: Instant,
        mut reached: impl FnMut(&Captured) -> bool,
    ) -> MutexGuard<'_, Captured> {
        let limit = deadline.saturating_duration_since(Instant::now());
        self.shared
            .1
            .wait_timeout_while(self.lock(), limit, |now| !reached(now))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

fn collect(
    pipe: &mut (impl Read + AsFd),
    stopped: &UnixStream,
    (captured, changed): &(Mutex<Captured>, Condvar),
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let interest = |descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut both = [
            interest(pipe.as_fd().as_raw_fd()),
            interest(stopped.as_raw_fd()),
        ];
        // SAFETY: the array outlives the call, and its length is given.
        unsafe { libc::poll(both.as_mut_ptr(), both.len() as libc::nfds_t, -1) };
        if both[1].revents != 0 {
            return;
        }
        if both[0].revents == 0 {
            // Interrupted.
            continue;
        }
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                lock(captured).bytes.extend_from_slice(&buffer[..count]);
                changed.notify_all();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Whether a text is among these bytes.
pub fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}
