//! Chooses which model of a server is asked, and which one instead if that is retired or cannot chat.

use super::discover::unknown_without_asking;
use super::model_list;
use super::target::Target;
use super::whom::Model;
use crate::error::Error;
use crate::output::Notes;
use crate::provider::request::ListedModel;
use crate::provider::table;
use crate::settings::{Cached, Settings};
use crate::text::one_line::on_one_line;
use crate::text::shell_words::quoted;

/// Returns the model to ask: the chosen one, else the first that the server lists and that can chat.
pub fn choose(target: &Target, settings: &Settings, notes: &Notes) -> Result<String, Error> {
    if let Some(model) = target.choice.model.name() {
        return Ok(model.to_owned());
    }
    if settings.caching == Cached::Only {
        return Err(unknown_without_asking("model", "-m or Q_MODEL"));
    }
    if settings.arguments.dry_run {
        return first_model_without_key(target, notes);
    }
    first_model(target, notes)
}

/// Returns the first model that the server lists and that can chat.
fn first_model(target: &Target, notes: &Notes) -> Result<String, Error> {
    if let Some(first) = target.locate_and_list_first()? {
        return Ok(first.clone());
    }
    let client = target.ready(notes)?;
    // Lists of gateways may have many pages.
    let listed = client
        .list_models_until(|models| model_list::first_of(models, None).is_some())
        .map_err(|failed| failed.error)?;
    if let Some(first) = model_list::first_of(&listed, None) {
        return Ok(first);
    }
    let failed = client.failed("the provider lists no model that can chat");
    let load = client.advice_to_load();
    Err(failed.error.advise(format!("{load}, or name one with -m")))
}

/// Returns the first model for a dry run, which asks only a server on this machine that needs no key.
fn first_model_without_key(target: &Target, notes: &Notes) -> Result<String, Error> {
    let provider = target.provider();
    if provider.key.is_optional() && provider.address()?.is_loopback() {
        return first_model(target, notes);
    }
    let message = "the model would be the first on the server's list, which only a request shows";
    Err(Error::settings(message).advise("name one with -m"))
}

/// Returns the model to ask instead of one that cannot chat, if nobody named that.
pub fn next_after(target: &Target, refused: &str, notes: &Notes) -> Option<String> {
    if !matches!(target.choice.model, Model::First | Model::Listed(_)) {
        return None;
    }
    let can_choose = |models: &[ListedModel]| model_list::first_of(models, Some(refused)).is_some();
    let client = target.ready(notes).ok()?;
    let listed = client.list_models_until(can_choose).ok()?;
    model_list::first_of(&listed, Some(refused))
}

/// Returns the model to ask instead of one that the server does not know: the newest in the family of the provider's
/// built-in default.
///
/// # Errors
/// No other model is asked. It is the error about the model, with the most similar one as advice if the user has named it,
/// else with some of the provider's models.
pub fn replace_retired(
    target: &Target,
    model: &str,
    error: Error,
    notes: &Notes,
) -> Result<String, Error> {
    let listed = match target.models(notes) {
        Ok(listed) => listed,
        Err(unlisted) => {
            let reason = on_one_line(&unlisted.message);
            let advice =
                format!("name another model with -m; its models cannot be listed: {reason}");
            return Err(advise_to_get(error.advise(advice), target, model));
        }
    };
    if let Model::Named(_) = target.choice.model {
        let error = advise_to_get(error, target, model);
        return Err(model_list::advise_similar(error, model, &listed));
    }
    let family = target.provider().row.family;
    let family = family.filter(|family| table::is_of_family(model, family));
    if let Some(newest) = family.and_then(|family| model_list::newest_of(&listed, family))
        && newest != model
    {
        return Ok(newest);
    }
    let provider = &target.provider().name;
    let error = model_list::advise_some(error, provider, &listed);
    Err(advise_to_get(error, target, model))
}

/// Puts the command that gets a model before the other advice, if the server is one on this machine that has such a command.
fn advise_to_get(error: Error, target: &Target, model: &str) -> Error {
    let model = quoted(&on_one_line(model));
    let Some(command) = target.provider().command_to_get(&model) else {
        return error;
    };
    let other = error.advice.as_deref().unwrap_or_default();
    let advice = format!("get the model with {command}; {other}");
    error.advise(advice)
}
