//! Programs: `notation.config.ts` to a project config, an entry to the desired graph, worker code
//! to modules. JavaScript runs here, once, inside the process and within limits; what leaves is
//! data.

mod asking;
mod bundle;
mod call_index;
mod code_names;
pub mod codes;
mod config;
mod convert;
mod declared;
mod editor_types;
mod evaluate;
mod failure;
mod graph;
mod handlers;
mod imports;
mod judge;
mod limits;
mod locate;
mod missing_method;
mod near_files;
mod nearest;
mod nesting;
mod new_project;
mod own_stack;
mod problem;
mod questions;
mod raw;
mod sandbox;
mod sdk;
mod source;
mod syntax;
mod too_early;
mod trace;
mod worker_code;

pub use config::{
    CONFIG_FILE, EntryFile, EntryFiles, ProjectConfig, find_project, load_config, load_config_with,
};
pub use editor_types::lay_types;
pub use evaluate::{Evaluated, evaluate};
pub use limits::Limits;
pub use new_project::init_project;
pub use problem::{Problem, Related};
pub use source::Place;
