//! Where the answer is shown: pipes and pseudo-terminals, read at once, slowly, or not before the end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::pseudo_terminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Pipe,
    Terminal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Fast,
    /// A few hundred bytes at a time, with pauses.
    Slow,
    /// Nothing before the program has ended.
    Stalled,
}

pub struct Sink {
    form: Form,
    hurry: Arc<AtomicBool>,
    reading: JoinHandle<Vec<u8>>,
}

impl Sink {
    /// The sink, and the program's end of it.
    pub fn new(form: Form, pace: Pace) -> io::Result<(Sink, Stdio)> {
        let (own, program): (File, Stdio) = match form {
            Form::Pipe => {
                let (reader, writer) = io::pipe()?;
                (OwnedFd::from(reader).into(), writer.into())
            }
            Form::Terminal => {
                let (own, program) = pseudo_terminal::open(80)?;
                (own, program.into())
            }
        };
        let hurry = Arc::new(AtomicBool::new(pace == Pace::Fast));
        let reading = thread::spawn({
            let hurry = Arc::clone(&hurry);
            move || read(own, pace, &hurry)
        });
        Ok((
            Sink {
                form,
                hurry,
                reading,
            },
            program,
        ))
    }

    /// All that the program has written, once it has ended.
    pub fn finish(self) -> Vec<u8> {
        self.hurry.store(true, Ordering::Relaxed);
        let bytes = self.reading.join().expect("a reader that does not panic");
        match self.form {
            Form::Pipe => bytes,
            Form::Terminal => without_breaks(&without_carriage_returns(&bytes)),
        }
    }
}

fn read(mut file: File, pace: Pace, hurry: &AtomicBool) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let hurries = hurry.load(Ordering::Relaxed);
        if !hurries {
            thread::sleep(Duration::from_millis(1));
            if pace == Pace::Stalled {
                continue;
            }
        }
        let most = if hurries { part.len() } else { 300 };
        match file.read(&mut part[..most]) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Linux reports with EIO that no program has the terminal open any more.
            _ => return bytes,
        }
    }
}

/// The terminal's driver sends CR LF for LF.
fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let is_added = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    (0..bytes.len())
        .filter(|at| !is_added(*at))
        .map(|at| bytes[at])
        .collect()
}

/// Lines that q has broken end in a blank; those of an answer do not.
fn without_breaks(bytes: &[u8]) -> Vec<u8> {
    let is_break = |at: usize| bytes[at] == b'\n' && at > 0 && bytes[at - 1] == b' ';
    (0..bytes.len())
        .filter(|at| !is_break(*at))
        .map(|at| bytes[at])
        .collect()
}
