//! The address people can open.

use std::time::Duration;

use notation_provider::OpError;
use serde::Deserialize;
use url::Url;

use crate::seen::Part;

/// Path, after which the host name stands, at the origin that knows the real addresses.
const ADDRESSES_PATH: &str = "/.well-known/notation/addresses/";

#[derive(Deserialize)]
struct Known {
    url: String,
}

/// The URL of an endpoint: as the host publishes it, or, where its names resolve nowhere, the
/// one that stands for it. `None` when the endpoint publishes none.
pub(crate) async fn url_of(
    endpoint: &Part,
    addresses: Option<&Url>,
) -> Result<Option<String>, OpError> {
    let output = |name: &str| {
        endpoint
            .outputs
            .as_ref()?
            .get(name)?
            .as_str()
            .map(str::to_owned)
    };
    match (addresses, output("hostname")) {
        (Some(origin), Some(hostname)) => real(origin, &hostname).await.map(Some),
        (None, _) | (_, None) => Ok(output("url")),
    }
}

async fn real(origin: &Url, hostname: &str) -> Result<String, OpError> {
    let transient = |why: String| OpError::Transient {
        message: format!("the address of {hostname} cannot be found out: {why}"),
        after_ms: None,
    };
    let mut ask = origin.clone();
    ask.set_path(&format!("{ADDRESSES_PATH}{hostname}"));
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()
        .map_err(|error| transient(error.to_string()))?;
    let answer = client
        .get(ask)
        .send()
        .await
        .map_err(|error| transient(error.to_string()))?;
    if !answer.status().is_success() {
        return Err(transient(format!("status {}", answer.status().as_u16())));
    }
    let known: Known = answer
        .json()
        .await
        .map_err(|error| transient(error.to_string()))?;
    Ok(known.url)
}
