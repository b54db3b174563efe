//! Properties of resources, by the way to them.

use std::fmt;

use ecow::EcoVec;

use crate::{ResourceId, Text};

/// One property of one resource: `b.ScriptName`, `b.routes[0].host`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputRef {
    /// The resource referred to.
    pub resource: ResourceId,
    /// The way into its outputs; never empty.
    pub path: OutputPath,
}

/// A way into a value, outermost first.
pub type OutputPath = EcoVec<Segment>;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// Member of a map.
    Key(Text),
    /// Item of a list, from 0.
    Index(usize),
}

impl fmt::Display for OutputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource)?;
        for segment in &self.path {
            match segment {
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
