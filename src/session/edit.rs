//! Changes and copies conversations without a question.

use std::io;

use time::OffsetDateTime;

use super::conversation::Exchange;
use super::disk;
use super::format;
use super::lock::PATIENTLY;
use super::pointer;
use super::rules::{FileContent, Rules};
use super::store::Handle;
use super::timestamp::Timestamp;
use super::write;

/// Removes the last exchange of a conversation; an earlier state keeps it. Returns the conversation's id and the exchange.
/// `None`: there was none.
pub fn undo(handle: &Handle, rules: &Rules) -> io::Result<Option<(String, Exchange)>> {
    let _lock = handle.lock(PATIENTLY)?;
    if let Some(link) = handle.link() {
        // An earlier state needs an id to be named by. Without symbolic links the file stays.
        let _ = pointer::adopt(&handle.folder, &link);
    }
    let path = handle.path_now()?;
    let FileContent::Conversation(mut conversation) = disk::read(&path)? else {
        return Ok(None);
    };
    let Some(undone) = conversation.undo() else {
        return Ok(None);
    };
    let bytes = format::to_bytes(&conversation)?;
    write::rewrite(&handle.folder, &path, &bytes, rules.keeps())?;
    Ok(Some((handle.folder.id(&path), undone)))
}

/// Copies a conversation to another place, which must be free, else the error is `AlreadyExists`. `NotFound`: the
/// conversation is gone.
pub fn copy(from: &Handle, to: &Handle) -> io::Result<()> {
    to.folder.prepare()?;
    let _lock = to.lock(PATIENTLY)?;
    let FileContent::Conversation(mut conversation) = disk::read(&from.path_now()?)? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    conversation.created = Timestamp::new(OffsetDateTime::now_utc());
    write::create(&to.path, &format::to_bytes(&conversation)?)
}
