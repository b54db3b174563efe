//! Plans, values, reports and graphs as text and as JSON. Pure: nothing here prints.

pub mod cell;
pub mod change;
pub mod graph;
pub mod hold;
pub mod outputs;
pub mod page;
pub mod plan_json;
pub mod plan_text;
pub mod recorded;
pub mod report;
pub mod transition;
pub mod value;
