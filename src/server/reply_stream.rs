//! One reply of a provider, which arrives piece by piece: sends the request, and sends it again after a failure that may pass.

use super::api_client::ApiClient;
use super::api_error::ApiError;
use super::reply_reader::ReplyReader;
use super::retry::Attempts;
use crate::provider::reply::{AnswerTail, Piece, Reply};
use crate::provider::request::Request;
use crate::secret::Redaction;
use crate::text::parts::parts;

/// The reply to a request, as it arrives.
pub struct ReplyStream<'a> {
    client: &'a ApiClient<'a>,
    request: &'a Request,
    /// The end of the answer that is continued.
    tail: AnswerTail,
    /// The reply as far as it has been read.
    reply: Reply,
    /// `None` until the request is sent.
    reader: Option<ReplyReader<'a>>,
    attempts: Attempts,
    text_has_come: bool,
    /// Reasoning that may end in a part of a secret, so that this part is not shown yet.
    reasoning: Redaction<'a>,
}

impl<'a> ReplyStream<'a> {
    /// Returns a reply that continues an answer, which ends with `tail`. Nothing is sent yet.
    pub fn new(
        client: &'a ApiClient<'a>,
        request: &'a Request,
        tail: AnswerTail,
    ) -> ReplyStream<'a> {
        ReplyStream {
            client,
            request,
            tail,
            reply: Reply::to(request, tail),
            reader: None,
            attempts: Attempts::default(),
            text_has_come: false,
            reasoning: Redaction::new(&client.secrets),
        }
    }

    /// Waits for the next piece of the answer; `None` once it has ended well. Tries again after a failure if no text has arrived
    /// yet.
    pub fn next(&mut self) -> Result<Option<Piece>, ApiError> {
        loop {
            let failed = match self.read_piece() {
                Ok(Some(piece)) => {
                    self.text_has_come |= !piece.text.is_empty();
                    return Ok(Some(piece));
                }
                Ok(None) => return Ok(None),
                Err(failed) => failed,
            };
            // The connection ends before q waits.
            self.reader = None;
            self.end_reasoning();
            if self.text_has_come || !self.client.wait_to_retry(&mut self.attempts, &failed) {
                return Err(self.attempts.explain(failed));
            }
            self.reply = Reply::to(self.request, self.tail);
        }
    }

    fn read_piece(&mut self) -> Result<Option<Piece>, ApiError> {
        let client = self.client;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(ReplyReader::new(client.api(), client.send(self.request)?)),
        };
        let read = reader.next(&mut self.reply);
        let read = read.map_err(|error| client.explain_reading(error, self.request));
        let Some(mut piece) = read? else {
            self.end_reasoning();
            client.check(&self.reply)?;
            return Ok(None);
        };
        let notes = client.notes;
        let waiting = client.waiting();
        notes.spinner().rename(piece.sign.unwrap_or(&waiting));
        if notes.shows_reasoning() {
            for part in parts(&piece.reasoning) {
                notes.show_reasoning(&self.reasoning.feed(part));
            }
        }
        if !piece.text.is_empty() {
            self.end_reasoning();
        }
        // This removes secrets from what comes with the text: sources and the reason why it is incomplete. The text
        // itself is printed as the model wrote it.
        piece.redact(&client.secrets);
        Ok(Some(piece))
    }

    /// Returns the reply as far as it has been read.
    pub fn into_reply(mut self) -> Reply {
        self.end_reasoning();
        self.reply.redact(&self.client.secrets);
        self.reply
    }

    fn end_reasoning(&mut self) {
        self.client.end_reasoning(&mut self.reasoning);
    }
}
