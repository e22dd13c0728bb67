//! The way to a process's standard input, which has a limit, and never blocks.

use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::threads;

/// How much memory may be taken by texts that a process has not read.
const MAX_WAITING: usize = 4 << 20;

/// About how much memory a text takes besides its bytes.
const TEXT: usize = 64;

/// The way to a process's standard input. A thread writes, because a process that does not read would block it.
#[derive(Debug, Clone)]
pub struct Input {
    queue: mpsc::Sender<Option<String>>,
    /// The memory of the texts that wait to be written.
    waiting: Arc<AtomicUsize>,
}

impl Input {
    pub fn start(mut stdin: ChildStdin) -> io::Result<Input> {
        let (queue, texts) = mpsc::channel::<Option<String>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        threads::start(move || {
            while let Ok(Some(text)) = texts.recv() {
                if stdin.write_all(text.as_bytes()).is_err() {
                    // Nobody reads any more.
                    return;
                }
                counted.fetch_sub(text.len() + TEXT, Ordering::Relaxed);
            }
        })?;
        Ok(Input { queue, waiting })
    }

    /// Sends a text, unless the process has closed its input. Returns false if too much waits already.
    #[must_use]
    pub fn send(&self, text: String) -> bool {
        let size = text.len() + TEXT;
        let before = self.waiting.fetch_add(size, Ordering::Relaxed);
        let has_room = before == 0 || before + size <= MAX_WAITING;
        // Where the process has closed its input, nothing is taken from the count any more.
        if has_room && self.queue.send(Some(text)).is_ok() {
            return true;
        }
        self.waiting.fetch_sub(size, Ordering::Relaxed);
        has_room
    }

    /// Closes the input after what has been sent.
    pub fn close(&self) {
        let _ = self.queue.send(None);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn sending_to_a_process_that_does_not_read_does_not_block() {
        let mut command = Command::new("/bin/sleep");
        let mut process = command
            .arg("1000")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = Input::start(process.stdin.take().expect("a pipe")).expect("a thread");
        let long = "x".repeat(1 << 20);
        let taken = (0..100).filter(|_| input.send(long.clone())).count();
        process.kill().expect("it runs");
        process.wait().expect("an end");
        // The text that is being written counts, too.
        assert_eq!(taken, MAX_WAITING / (long.len() + TEXT));
    }
}
