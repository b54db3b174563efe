//! Answers, and what every one of them is held to.

use notation_edge_api as wire;
use serde_json::Value;

/// One answer, read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        wire::parse(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The exact envelope of a code.
    #[track_caller]
    pub fn refused(&self, code: &str) -> wire::ErrorBody {
        let envelope: wire::ErrorEnvelope = serde_json::from_value(self.json())
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()));
        let error = envelope.error;
        assert_eq!(error.code.as_str(), code, "{}", error.message);
        assert_eq!(self.status, error.code.status());
        assert_eq!(error.retryable, error.code.retryable());
        assert!(!error.message.trim().is_empty() && !error.request_id.trim().is_empty());
        assert!(error.host_code.is_none() && error.details.is_none() && self.etag.is_none());
        error
    }

    /// A bare resource document with everything a client checks.
    #[track_caller]
    pub fn resource(&self) -> wire::Resource {
        let resource: wire::Resource = serde_json::from_value(self.json())
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()));
        check(&resource);
        assert_eq!(
            self.etag.as_deref(),
            Some(format!("\"{}\"", resource.metadata.revision).as_str())
        );
        resource
    }

    #[track_caller]
    pub fn created(&self) -> wire::Resource {
        assert_eq!(self.status, 201, "{}", self.text());
        self.resource()
    }

    #[track_caller]
    pub fn updated(&self) -> wire::Resource {
        assert_eq!(self.status, 200, "{}", self.text());
        self.resource()
    }
}

/// What every decoded resource is held to (closed decoding happened already).
#[track_caller]
pub fn check(resource: &wire::Resource) {
    let text = serde_json::to_string(resource).unwrap();
    assert!(
        resource.metadata.uid.len() <= 21,
        "two uids must fit a hostReason"
    );
    assert_eq!(
        resource.status.observed_generation,
        resource.metadata.generation
    );
    let ready = resource
        .status
        .conditions
        .iter()
        .find(|it| it.condition_type == "Ready")
        .expect(&text);
    assert!(ready.status == "True" || ready.status == "False");
    for condition in &resource.status.conditions {
        assert!(
            [
                "Available",
                "Provisioning",
                "Reconciling",
                "DependencyMissing",
                "ExternalChange",
                "UnsupportedCapability"
            ]
            .contains(&condition.reason.as_str()),
            "{text}"
        );
        assert!(condition.host_reason.as_ref() != Some(&condition.reason));
        assert!(
            condition
                .host_reason
                .as_ref()
                .is_none_or(|text| text.chars().count() <= 256)
        );
        assert!(!condition.last_transition_time.is_empty());
        if condition.status == "False" {
            assert!(
                condition
                    .host_reason
                    .as_ref()
                    .is_some_and(|text| !text.is_empty())
            );
        }
    }
}

pub fn ready(resource: &wire::Resource) -> (&str, &str, &str) {
    let condition = &resource.status.conditions[0];
    (
        &condition.status,
        &condition.reason,
        condition.host_reason.as_deref().unwrap_or_default(),
    )
}
