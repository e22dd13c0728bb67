//! A failed request to a provider, with its advice (pure).

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::provider::failure::ErrorClass;

/// A failure of the network or the provider.
#[derive(Debug)]
pub struct ApiError {
    pub error: Error,
    /// The kind of failure, which says what can be done about it.
    pub meaning: ErrorClass,
    /// How long the server asks to wait before another try.
    pub retry_after: Option<Duration>,
    /// Whether no server was reached, so that a few more tries hardly help.
    pub is_unreached: bool,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        ApiError {
            error,
            meaning: ErrorClass::Other,
            retry_after: None,
            is_unreached: false,
        }
    }
}

impl ApiError {
    /// Whether another try may succeed.
    pub fn is_transient(&self) -> bool {
        let mut of_response = None;
        if let ErrorKind::Provider { status } = self.error.kind {
            of_response = status;
        }
        self.meaning.may_pass(of_response)
    }

    /// Puts other advice in the place of the error's, if there is any.
    pub fn advise(mut self, advice: Option<String>) -> ApiError {
        self.error.advice = advice.or(self.error.advice);
        self
    }
}
