//! Reads standard input and the files of `-a`, within limits, as text or as images and PDFs.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::file_format::{self, SeemingText};
use super::file_search::{NamedFiles, named_files};
use super::stdin::{self, STDIN, STDIN_PATH};
use crate::error::{Error, ErrorKind};
use crate::message::{Attachment, MAX_ATTACHMENT, MAX_ATTACHMENTS};
use crate::output::{LateNote, Notes};
use crate::settings::Environment;
use crate::text::fence;
use crate::text::media::media_type;
use crate::text::nearest::misspelt;
use crate::text::non_blank;
use crate::text::one_line::on_one_line;
use crate::text::shell_words::quoted;
use crate::text::size::in_units;
use crate::unix;
use crate::whole_file::names_in;

/// The most bytes of text in files and standard input together.
const MAX_TEXT: usize = 10_000_000;

/// How much is read at once.
const READ_SIZE: usize = 16 << 10;

/// How long q sleeps before it reads an empty non-blocking pipe again.
const EMPTY_PIPE_POLL: Duration = Duration::from_millis(5);

/// The most names of a directory that are compared with one that does not exist.
const MAX_COMPARED: usize = 10_000;

/// The end of the names of notebooks.
const NOTEBOOK: &str = ".ipynb";

/// The content of a file, as the model gets it.
pub enum FileContent {
    /// In its fence.
    Text(String),
    Attachment(Attachment),
}

/// The files and the input of a question.
pub struct QuestionInput {
    pub files: Vec<FileContent>,
    /// Standard input, unless it is one of the files or blank.
    pub text: Option<String>,
    /// Why there is nothing of standard input, where a command or a file should have given something.
    pub stdin_fault: Option<&'static str>,
}

/// A reader of standard input and files, which share their limits.
pub struct InputReader {
    notes: Notes,
    /// How many more bytes of text are allowed.
    text_left: usize,
    /// How many more bytes of base64 are allowed.
    base64_left: usize,
    /// In the order given.
    files: Vec<FileContent>,
    /// The place of standard input among the files.
    stdin: Option<usize>,
    /// The names of files that were empty, until a note says so.
    empty: Vec<String>,
    /// How many files have names of which bytes are replaced, until a note says so.
    replaced_names: usize,
    /// The regular files that are taken. A file that is named again is not sent again.
    taken: HashSet<PathBuf>,
}

/// A source of bytes, with its name in errors and notes.
struct InputSource {
    name: String,
    path: PathBuf,
    /// Whether it is a file of `-a`, so that it may be an image or a PDF.
    is_attached: bool,
}

impl InputReader {
    /// Reads all files except standard input. So a missing file is reported before q waits for input.
    pub fn read_files(
        names: &[OsString],
        environment: &Environment,
        notes: &Notes,
    ) -> Result<InputReader, Error> {
        let mut reader = InputReader {
            notes: notes.clone(),
            text_left: MAX_TEXT,
            base64_left: MAX_ATTACHMENTS,
            files: Vec::new(),
            stdin: None,
            empty: Vec::new(),
            replaced_names: 0,
            taken: HashSet::new(),
        };
        if names.iter().filter(|name| stdin::is_any_name(name)).count() > 1 {
            let error = "-a has standard input twice, but it can be read only once";
            return Err(Error::usage(error));
        }
        for name in names {
            if name.is_empty() {
                return Err(Error::usage("--attach: it is empty"));
            }
            if let Some(named) = named_files(name, environment, notes.spinner())? {
                reader.read_named(name, named)?;
            } else if stdin::is_named(name) {
                refuse_terminal()?;
                reader.stdin = Some(reader.files.len());
            } else {
                reader.take_file(name)?;
                reader.note_taken();
            }
        }
        Ok(reader)
    }

    /// Reads the files that a pattern or a directory names. Those that cannot be read, or are neither text nor an image or a PDF,
    /// are left out, with a note.
    fn read_named(&mut self, name: &OsStr, named: NamedFiles) -> Result<(), Error> {
        let mut is_any_taken = false;
        let NamedFiles {
            files,
            mut left_out,
        } = named;
        for path in &files {
            let shown = || on_one_line(&path.to_string_lossy());
            if let Err(error) = File::open(path) {
                left_out.unreadable.add(format!("{}: {error}", shown()));
                continue;
            }
            match self.take_file(path.as_os_str()) {
                Ok(()) => is_any_taken = true,
                Err(error) if error.kind == ErrorKind::Binary => left_out.binary.add(shown()),
                Err(error) => return Err(error),
            }
        }
        left_out.report_failures(&self.notes);
        self.note_taken();
        left_out.report_skipped(&self.notes, !files.is_empty());
        if !is_any_taken {
            let shown = on_one_line(&name.to_string_lossy());
            let is_directory = Path::new(name).is_dir();
            return Err(left_out.error_for_no_file(&shown, is_directory, !files.is_empty()));
        }
        Ok(())
    }

    /// Notes whose names are not sent as they are, and which files were empty: a command before may have failed.
    fn note_taken(&mut self) {
        match std::mem::take(&mut self.replaced_names) {
            0 => {}
            1 => self.notes.note_replaced("the name of a file", "UTF-8"),
            count => self.notes.note(&format!(
                "the names of {count} files are not valid UTF-8: invalid bytes are sent as U+FFFD"
            )),
        }
        match &std::mem::take(&mut self.empty)[..] {
            [] => {}
            [name] => self.notes.note(&format!("{name} was empty")),
            names => self
                .notes
                .note(&format!("{} files were empty", names.len())),
        }
    }

    /// Reads standard input: in its place if it is one of the files, else on its own if `reads_stdin` says so. A note says that it
    /// was empty where there are words about it.
    pub fn read_stdin(
        mut self,
        reads_stdin: bool,
        has_words: bool,
    ) -> Result<QuestionInput, Error> {
        let mut text = None;
        let mut is_blank = false;
        if let Some(place) = self.stdin {
            is_blank = self.read_stdin_as_file(place)?;
        } else if reads_stdin {
            text = non_blank(self.read_stdin_as_text()?);
            is_blank = text.is_none();
        }
        // A command that failed may be the reason.
        let mut stdin_fault = None;
        if is_blank && stdin::is_from_command() {
            stdin_fault = Some(if unix::can_read(io::stdin()) {
                "standard input was empty"
            } else {
                "standard input cannot be read: it is open for writing only"
            });
        }
        if let Some(fault) = stdin_fault
            && has_words
            && self.stdin.is_none()
        {
            self.notes.note(fault);
        }
        Ok(QuestionInput {
            files: self.files,
            text,
            stdin_fault,
        })
    }

    /// Puts standard input in its place among the files. Whitespace alone counts as no input, here too. Returns whether it is no
    /// more than that.
    fn read_stdin_as_file(&mut self, place: usize) -> Result<bool, Error> {
        let source = InputSource::stdin(true);
        let bytes = self.read_all_of_stdin(&source)?;
        let is_blank = bytes.trim_ascii().is_empty();
        let content = self.content(STDIN, bytes, &source)?;
        self.note_taken();
        if !is_blank {
            self.files.insert(place, content);
        }
        Ok(is_blank)
    }

    fn read_stdin_as_text(&mut self) -> Result<String, Error> {
        let source = InputSource::stdin(false);
        let bytes = self.read_all_of_stdin(&source)?;
        self.text(bytes, &source, "UTF-8")
    }

    fn read_all_of_stdin(&self, source: &InputSource) -> Result<Vec<u8>, Error> {
        let late = self.wait_for(source);
        self.read(io::stdin().lock(), source, late.as_ref())
    }

    /// Reads a file, unless it is taken already under the same name.
    fn take_file(&mut self, name: &OsStr) -> Result<(), Error> {
        let parts = Path::new(name).components();
        let path = PathBuf::from_iter(parts.filter(|part| *part != Component::CurDir));
        if self.taken.contains(&path) {
            return Ok(());
        }
        let content = self.read_file(name)?;
        self.files.push(content);
        self.replaced_names += usize::from(name.to_str().is_none());
        // Each of two reads of a pipe has something else.
        if path.is_file() {
            self.taken.insert(path);
        }
        Ok(())
    }

    fn read_file(&mut self, path: &OsStr) -> Result<FileContent, Error> {
        let name = path.to_string_lossy();
        let source = InputSource {
            name: on_one_line(&name),
            path: path.into(),
            is_attached: true,
        };
        // std instead of fs-err, because these messages name the path themselves.
        fs::metadata(path).map_err(|error| source.unreadable(&error))?;
        // Opening a named pipe waits, too.
        let late = self.wait_for(&source);
        let file = File::open(path).map_err(|error| source.unreadable(&error))?;
        let bytes = self.read(file, &source, late.as_ref())?;
        self.content(&name, bytes, &source)
    }

    /// Shows what q waits for: with the spinner on a terminal, elsewhere with a note if nothing comes for long. Each read puts
    /// that off.
    fn wait_for(&self, source: &InputSource) -> Option<LateNote> {
        let mut note = format!("waiting for {}", source.name);
        let spinner = self.notes.spinner();
        spinner.wait_for(&note);
        if !stdin::may_wait(source.path.as_os_str()) || spinner.is_active() {
            return None;
        }
        if !source.is_attached {
            note.push_str("; use -n or Q_STDIN=none to not read it");
        }
        Some(LateNote::start(&self.notes, note))
    }

    /// Reads to the end, or until a limit is passed. `late` is the note of [`Self::wait_for`].
    fn read(
        &self,
        mut reader: impl Read,
        source: &InputSource,
        late: Option<&LateNote>,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; READ_SIZE];
        while bytes.len() <= self.text_left.max(MAX_ATTACHMENT) {
            let part = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => &buffer[..count],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Another program made the pipe non-blocking, so q has to look again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(EMPTY_PIPE_POLL);
                    continue;
                }
                Err(error) => return Err(source.unreadable(&error)),
            };
            if let Some(late) = late {
                late.put_off();
            }
            bytes.extend_from_slice(part);
            // Input with a NUL byte is refused at once, but a file may be an image.
            if !source.is_attached && part.contains(&0) {
                break;
            }
        }
        self.notes.spinner().stop();
        Ok(bytes)
    }

    /// Turns the bytes of a file into text or an attachment. The model gets the name as it was given.
    fn content(
        &mut self,
        name: &str,
        bytes: Vec<u8>,
        source: &InputSource,
    ) -> Result<FileContent, Error> {
        let Some((media, bytes)) = file_format::media_of(&bytes) else {
            if bytes.is_empty() && !stdin::is_device(&source.path) {
                self.empty.push(source.name.clone());
            }
            let encoding = file_format::encoding_of(&bytes);
            let mut text = self.text(file_format::without_mark(bytes), source, encoding)?;
            if name.ends_with(NOTEBOOK)
                && let Some(cells) = file_format::notebook_text(&text)
            {
                let what = "the text of its cells is sent, and no image or table";
                self.notes.note(&format!("{}: {what}", source.name));
                text = cells;
            }
            return Ok(FileContent::Text(fence::around_file(name, &text)));
        };
        let size = base64::encoded_len(bytes.len(), true).unwrap_or(usize::MAX);
        if size > self.base64_left.min(MAX_ATTACHMENT) {
            let error = format!(
                "{} is too large: the limit of images and PDFs in base64 is {} each, and {} together",
                source.name,
                in_units(MAX_ATTACHMENT),
                in_units(MAX_ATTACHMENTS)
            );
            let error = Error::new(ErrorKind::Input, error);
            return Err(error.advise("send a smaller image, or fewer pages"));
        }
        self.base64_left -= size;
        let data = STANDARD.encode(bytes);
        Ok(FileContent::Attachment(Attachment {
            name: name.to_owned(),
            media: media.to_owned(),
            data: data.into(),
            ..Attachment::default()
        }))
    }

    /// Bytes as text, within the limit. They were in this encoding before.
    fn text(
        &mut self,
        bytes: Vec<u8>,
        source: &InputSource,
        encoding: &str,
    ) -> Result<String, Error> {
        if media_type(&bytes).is_some() || bytes.contains(&0) {
            let error = source.binary();
            if file_format::is_utf_16(&bytes) {
                return Err(error.advise("send it with -a -, because it is text in UTF-16"));
            }
            if file_format::is_utf_32(&bytes) {
                return Err(error.advise(
                    "convert it, because it seems to be text in UTF-32: iconv -f UTF-32 -t UTF-8",
                ));
            }
            if let Some(seeming) = file_format::utf_16_without_mark(&bytes) {
                return Err(error.advise(format!(
                    "convert it, because it seems to be text in {seeming} without a byte order mark: iconv -f {seeming} -t UTF-8"
                )));
            }
            return Err(error);
        }
        if bytes.len() > self.text_left {
            let name = &source.name;
            let error = format!(
                "{name} is too long: the limit of text files and input is {} together",
                in_units(MAX_TEXT)
            );
            let advice = "send a part of it, for example with head, tail or grep";
            return Err(Error::new(ErrorKind::Input, error).advise(advice));
        }
        self.text_left -= bytes.len();
        let seeming = match encoding {
            "UTF-8" => file_format::seeming_text(&bytes),
            _ => None,
        };
        let text = self.notes.text_from(bytes, &source.name, encoding);
        let name = &source.name;
        match seeming {
            Some(SeemingText::Cut) => self
                .notes
                .note(&format!("{name} ends within a character, as after head -c")),
            Some(SeemingText::Western(western)) => self.notes.note(&format!(
                "{name} seems to be text in {western}; convert it: iconv -f {western} -t UTF-8"
            )),
            None => {}
        }
        Ok(text)
    }
}

/// Refuses to read a terminal as a file.
fn refuse_terminal() -> Result<(), Error> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let error = Error::usage("-a - reads standard input, which is a terminal");
    Err(error.advise("pipe something into q, or name a file"))
}

/// The file whose name is most similar to that of one that does not exist. Names that look the same may differ in how they are
/// written: macOS decomposes letters, and has a narrow blank in the names of its screenshots.
fn similar_file(missing: &Path) -> Option<String> {
    let typed = missing.file_name()?.to_string_lossy();
    let parent = missing.parent()?;
    let directory = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let names = names_in(directory, MAX_COMPARED).ok()?.into_iter();
    let similar = misspelt(&typed, names.filter_map(|name| name.into_string().ok()))?;
    Some(parent.join(similar).to_str()?.to_owned())
}

impl InputSource {
    fn stdin(is_attached: bool) -> InputSource {
        InputSource {
            name: "standard input".to_owned(),
            path: STDIN_PATH.into(),
            is_attached,
        }
    }

    /// Returns the error for a source that cannot be read. Its kind is `Input` for a file that the user named, else `File`.
    fn unreadable(&self, error: &io::Error) -> Error {
        let name = &self.name;
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let error = format!("cannot read {name}: {error}");
        if !self.is_attached {
            return Error::new(ErrorKind::File, error);
        }
        let mut error = Error::new(ErrorKind::Input, error);
        if name.contains("://") {
            let address = quoted(name);
            error = error.advise(format!(
                "fetch it, because -a takes files only: curl -s {address} | q -a -"
            ));
        } else if is_missing && let Ok(target) = fs::read_link(&self.path) {
            let target = on_one_line(&target.to_string_lossy());
            error = error.advise(format!("check the link: it leads to {target}"));
        } else if is_missing && let Some(similar) = similar_file(&self.path) {
            error = error.advise(format!("did you mean -a {}?", quoted(&similar)));
        }
        error
    }

    fn binary(&self) -> Error {
        let name = &self.name;
        if self.is_attached {
            let error = format!("{name} is neither text nor a JPEG, PNG, GIF, WebP or PDF");
            return Error::new(ErrorKind::Binary, error)
                .advise("convert documents to PDF or text, other images to PNG");
        }
        Error::new(ErrorKind::Binary, format!("{name} is binary")).advise(
            "send it with -a - if it is an image or a PDF, or use -n to not read standard input",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR";

    /// A source that gives its bytes one at a time.
    struct Slowly<R>(R);

    impl<R: Read> Read for Slowly<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    /// Reads files one after another. Returns how much text and base64 is left.
    fn read(source: impl Read, text_left: usize, base64_left: usize) -> Result<[usize; 2], Error> {
        let mut reader = InputReader {
            text_left,
            base64_left,
            ..InputReader::read_files(&[], &Environment::default(), &Notes::default())?
        };
        let file = InputSource {
            name: "x".to_owned(),
            path: "x".into(),
            is_attached: true,
        };
        let bytes = reader.read(source, &file, None)?;
        reader.content("x", bytes, &file)?;
        Ok([reader.text_left, reader.base64_left])
    }

    #[test]
    fn the_type_of_input_is_recognized_however_slowly_its_bytes_arrive() {
        // An image has a limit of its own.
        assert_eq!(read(Slowly(PNG), 2, 100).ok(), Some([2, 76]));
        assert_eq!(read(Slowly(&b"text"[..]), 10, 100).ok(), Some([6, 100]));
        for source in [&b"RIFF\x24\0\0\0WAVEfmt "[..], b"a\0"] {
            let error = read(Slowly(source), 100, 100).expect_err("binary");
            let is_right = error.message.contains("neither text nor") && error.exit_status() == 2;
            assert!(is_right, "{error}");
        }
    }

    #[test]
    fn the_limits_of_images_apply_to_their_base64() {
        let image = |bytes: usize| [PNG, &vec![1; bytes - PNG.len()]].concat();
        for (bytes, left, left_then) in [
            (3_750_000, MAX_ATTACHMENTS, Some(2_000_000)),
            (3_750_001, MAX_ATTACHMENTS, None),
            (300, 400, Some(0)),
            (301, 400, None),
            (301, 404, Some(0)),
        ] {
            let found = read(&image(bytes)[..], 0, left).ok();
            let expected = left_then.map(|left| [0, left]);
            assert_eq!(found, expected, "{bytes} {left}");
        }
        let mut long = PNG.chain(io::repeat(b'y').take(11_000_000));
        let refused = read(&mut long, 0, MAX_ATTACHMENTS).expect_err("a long image");
        assert!(refused.message.contains("5 MB each"), "{refused}");
        assert!(long.get_ref().1.limit() > 0, "all of it was read");
    }
}
