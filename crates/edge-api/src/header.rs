//! Request headers of the lane that HTTP itself does not define (host API §1.3).

/// Makes one mutation repeatable; required on every fenced mutation.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Fence on the desired state's generation; an empty value counts as absent.
pub const EXPECTED_GENERATION: &str = "takoform-expected-generation";
/// Reaches states a production host cannot produce; only the conformance adapter looks at it.
pub const PROBE: &str = "takoform-conformance-probe";
