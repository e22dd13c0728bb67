//! Decides which model of the chosen server is asked.

use super::place::Place;
use crate::error::Error;
use crate::output::Notes;
use crate::server::model_choice;
use crate::server::target::Target;
use crate::session::rules::{AnsweredBy, Intent};
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;

/// A server, and the model that it is asked for first.
pub struct Addressee {
    pub target: Target,
    pub model: String,
}

impl Addressee {
    /// Chooses the model. Where nothing names one, the server is asked for its list.
    pub fn choose(target: Target, settings: &Settings, notes: &Notes) -> Result<Addressee, Error> {
        let model = model_choice::choose(&target, settings, notes)?;
        Ok(Addressee { target, model })
    }

    /// Returns whom the conversation names for the answer.
    pub fn responder(&self) -> AnsweredBy {
        AnsweredBy {
            provider: self.target.provider().name.clone(),
            model: Some(self.model.clone()),
            at: Timestamp::now(),
        }
    }

    /// Returns the provider, perhaps with its model, that continues the current conversation after another one.
    pub fn handed_to(&self, place: &Place) -> Option<String> {
        let Addressee { target, model } = self;
        let provider = &target.provider().name;
        let is_current = place.handle.as_ref()?.which.is_current();
        match &place.intent {
            Intent::Follow(read) if is_current && *provider != read.provider => {
                Some(provider.clone())
            }
            Intent::Follow(read) if is_current && *model != read.model => {
                Some(format!("{provider}, model {model}"))
            }
            _ => None,
        }
    }
}
