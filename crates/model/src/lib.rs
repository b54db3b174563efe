//! Words of the engine: names, ids, values, expressions, resource types, the desired
//! graph and records. Plain data and pure functions; no IO, no clock, no async.

mod collect;
mod desired;
mod expr;
mod map;
mod name;
mod naming;
mod output;
mod owner;
mod reads;
mod record;
mod resource_type;
mod text;
mod type_rules;
mod value;

pub use collect::{CollectError, Collector};
pub use desired::{
    Contribution, DependOn, Desired, DesiredGraph, Edge, Marks, Obstacle, Origin, Via,
};
pub use expr::{Expr, Scope};
pub use map::Map;
pub use name::{
    AppName, DeploymentId, EntryName, NameError, ResourceId, SecretName, StageName, TypeName,
};
pub use naming::{Charset, GeneratedName, NameKind, Naming};
pub use output::{OutputPath, OutputRef, Segment};
pub use owner::{Earlier, Owner, OwnerTags, owner_tags};
pub use reads::NoOutput;
pub use record::{Incarnation, Record, RecordedEdge, Shape, Standing};
pub use resource_type::{Field, FieldKind, Look, Names, Presence, ResourceType, Role, TypeSet};
pub use text::Text;
pub use value::{Asset, DEEPEST_VALUE, Params, SecretValue, Unknown, Value, digest};
