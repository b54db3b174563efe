//! The one way to a provider's code: whatever it does, it answers.

use std::{any::Any, panic::AssertUnwindSafe};

use futures::FutureExt as _;
use notation_provider::OpError;

/// Calls a provider. One whose code panics answers [`OpError::Broke`]: neither the step nor the
/// hold is lost with it.
pub(crate) async fn asked<T, F>(call: impl FnOnce() -> F) -> Result<T, OpError>
where
    F: Future<Output = Result<T, OpError>>,
{
    // What a panic leaves half done is the provider's own; the engine hands it nothing to change.
    let answer = AssertUnwindSafe(async { call().await });
    answer.catch_unwind().await.unwrap_or_else(|payload| {
        Err(OpError::Broke {
            message: said(&*payload),
        })
    })
}

/// What a panic says.
pub(crate) fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").to_owned()
}
