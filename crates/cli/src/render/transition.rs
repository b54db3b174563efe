//! Names of what a step does.

use notation_planner::Transition;

/// Name of a transition in JSON; a settle step has none.
pub fn name(transition: Transition) -> Option<&'static str> {
    match transition {
        Transition::Create => Some("create"),
        Transition::Update => Some("update"),
        Transition::Revert => Some("revert"),
        Transition::Delete => Some("delete"),
        Transition::None => Some("none"),
        Transition::Unknown => Some("unknown"),
        Transition::Settle => None,
    }
}

/// What a step does, for people.
pub fn verb(transition: Transition) -> &'static str {
    match transition {
        Transition::Create => "create",
        Transition::Update => "update",
        Transition::Revert => "revert",
        Transition::Delete => "delete",
        Transition::None => "look",
        Transition::Unknown => "update",
        Transition::Settle => "settle",
    }
}

/// What a step did, for people.
pub fn past(transition: Transition) -> &'static str {
    match transition {
        Transition::Create => "created",
        Transition::Update => "updated",
        Transition::Revert => "reverted",
        Transition::Delete => "deleted",
        Transition::None => "as it should be",
        Transition::Unknown => "decided",
        Transition::Settle => "settled",
    }
}
