//! Resource types: what a provider declares about the things it makes.

use std::{collections::BTreeMap, time::Duration};

use indexmap::IndexMap;

use crate::{Collector, Naming, TypeName, Value};

/// One resource type, as data.
///
/// A registry refuses a type that breaks one of these rules ([`ResourceType::faults`]), and one that
/// is declared twice:
/// - At most one field is the key: a text, neither sensitive nor volatile, that collects nothing.
///   A parameter that is the key and may be left out needs a `naming`; a `naming` needs such a
///   parameter. Where the provider makes the key, `look` is not [`Look::Key`].
/// - [`Look::Owner`] needs `tags`.
/// - A computed field is optional and collects nothing.
/// - A default is of the field's kind; [`Collector::Flatten`] makes a list, [`Collector::Merge`] a
///   map; [`Names::Members`] are of a map, [`Names::Items`] of a list, with an output that the type
///   has; `only_with` names a parameter of the type and a value of its kind.
/// - Names have room for their ending and [`Naming::LEAST_ROOM`] characters more.
/// - `concurrency` is not 0.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceType {
    /// `<provider>/<Type>`.
    pub name: TypeName,
    /// Every parameter and output, in the order people see them.
    pub fields: IndexMap<String, Field>,
    /// How a name is generated for the key field that the program leaves out.
    pub naming: Option<Naming>,
    /// Keys of all types with the same space exclude each other; usually the type's name.
    pub identity_space: String,
    /// Objects carry owner tags.
    pub tags: bool,
    /// The bare shape must never be live: `placeholder: "never"`.
    pub never_bare: bool,
    /// The type implements `update`.
    pub updates: bool,
    /// How an object can be looked up when the answer to a create was lost.
    pub look: Look,
    /// For how long a read may still miss what was just made.
    pub read_lag: Duration,
    /// At most so many calls at a time.
    pub concurrency: Option<usize>,
}

/// How an object whose creation is in doubt can be found (`engine.md` §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// By its key, known before creation.
    Key,
    /// By its owner, when the key is made by the server (by key where it is known).
    Owner,
    /// Not at all; repeating a create with the same token gives the same object.
    IdempotentCreate,
    /// Not at all, and repeating may make a second one.
    Never,
}

/// One parameter or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Set by the program, or made by the provider.
    pub role: Role,
    /// Must a parameter be given.
    pub presence: Presence,
    /// What JSON values it takes; for editor types and early errors.
    pub kind: FieldKind,
    /// A change replaces the resource.
    pub immutable: bool,
    /// The (single) field that identifies the object at the provider.
    pub key: bool,
    /// The provider refuses to delete what this field names.
    pub holds: bool,
    /// Order of items means nothing.
    pub unordered: bool,
    /// An output that stays the same through updates.
    pub stable: bool,
    /// Never shown, encrypted at rest.
    pub sensitive: bool,
    /// Reads answer something else every time; no drift, no difference.
    pub volatile: bool,
    /// How contributions are put together; `None` takes one value in all.
    pub collect: Option<Collector>,
    /// It gives names to values in the code of its resource.
    pub names: Option<Names>,
    /// An output that is only there while that parameter has this value.
    pub only_with: Option<(&'static str, Value)>,
    /// One line for the reference and the editor.
    pub doc: &'static str,
}

/// How a field names values for the code of its resource. All such fields of a type share one set
/// of names: `[A-Za-z_$][A-Za-z0-9_$]*`, at most 64 characters, none of them twice (host API §3.3,
/// §20.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Members of a map: their keys.
    Members,
    /// Items of a list, each with two members: its name in the code, and which other resource of
    /// the same type it means, by an output of that.
    Items {
        /// Member with the name in the code.
        name: &'static str,
        /// Member that says which resource is meant.
        refers: &'static str,
        /// The output that says it.
        output: &'static str,
    },
}

/// Who sets a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program; also readable as an output.
    Param,
    /// The provider.
    Computed,
}

/// Whether a parameter must be given.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// By config or a contribution.
    Required,
    /// May be left out.
    Optional,
    /// Takes this value when left out.
    Default(Value),
}

/// What a field takes, roughly; the provider judges the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A truth value.
    Bool,
    /// A list of anything.
    List,
    /// A map of anything.
    Map,
    /// Any JSON value.
    Json,
    /// A module file of the project, bundled while evaluating.
    Module,
}

impl Field {
    /// An optional parameter with no marks.
    pub fn param(kind: FieldKind, doc: &'static str) -> Field {
        Field {
            role: Role::Param,
            presence: Presence::Optional,
            kind,
            immutable: false,
            key: false,
            holds: false,
            unordered: false,
            stable: false,
            sensitive: false,
            volatile: false,
            collect: None,
            names: None,
            only_with: None,
            doc,
        }
    }

    /// An output with no marks.
    pub fn computed(kind: FieldKind, doc: &'static str) -> Field {
        Field {
            role: Role::Computed,
            ..Field::param(kind, doc)
        }
    }
}

impl ResourceType {
    /// The field that is the key, with its name.
    pub fn key_field(&self) -> Option<(&str, &Field)> {
        self.fields
            .iter()
            .find(|(_, field)| field.key)
            .map(|(name, field)| (name.as_str(), field))
    }

    /// Parameters only, in order.
    pub fn params(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.fields
            .iter()
            .filter(|(_, field)| field.role == Role::Param)
            .map(|(name, field)| (name.as_str(), field))
    }
}

/// Every type that is known to a run, by name.
#[derive(Debug, Clone, Default)]
pub struct TypeSet(BTreeMap<TypeName, ResourceType>);

impl TypeSet {
    /// A set of these types; a later one replaces an earlier one of the same name.
    pub fn new(types: impl IntoIterator<Item = ResourceType>) -> TypeSet {
        TypeSet(types.into_iter().map(|ty| (ty.name.clone(), ty)).collect())
    }

    /// The type of that name.
    pub fn get(&self, name: &TypeName) -> Option<&ResourceType> {
        self.0.get(name)
    }

    /// All types, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ResourceType> {
        self.0.values()
    }
}
