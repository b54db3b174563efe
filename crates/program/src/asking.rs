//! Names of the language that ask what a value is.

/// Methods and properties of texts whose answer depends on the whole text. Lists have some of them
/// too; the sandbox tells which it is.
const TEXT_MEMBERS: &[&str] = &[
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "endsWith",
    "includes",
    "indexOf",
    "isWellFormed",
    "lastIndexOf",
    "length",
    "localeCompare",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "replace",
    "replaceAll",
    "search",
    "slice",
    "split",
    "startsWith",
    "substr",
    "substring",
    "toLocaleLowerCase",
    "toLocaleUpperCase",
    "toLowerCase",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
];
/// Those of them that look for their first argument.
const SEARCHES: &[&str] = &[
    "endsWith",
    "includes",
    "indexOf",
    "lastIndexOf",
    "localeCompare",
    "match",
    "matchAll",
    "replace",
    "replaceAll",
    "search",
    "split",
    "startsWith",
];
/// Functions that ask what their argument is.
const ASKING: &[&str] = &[
    "Boolean",
    "Number",
    "BigInt",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
];
/// The same as members of a global object.
const ASKING_MEMBERS: &[(&str, &[&str])] = &[
    ("Array", &["isArray"]),
    (
        "Number",
        &[
            "isFinite",
            "isInteger",
            "isNaN",
            "isSafeInteger",
            "parseFloat",
            "parseInt",
        ],
    ),
    ("Object", &["is"]),
];

/// Whether a method or property of this name looks at a whole text.
pub(crate) fn looks_at_the_text(name: &str) -> bool {
    TEXT_MEMBERS.contains(&name)
}

/// Whether a method of this name looks for its first argument.
pub(crate) fn searches(name: &str) -> bool {
    SEARCHES.contains(&name)
}

/// Whether a global function asks what its argument is.
pub(crate) fn function(name: &str) -> bool {
    ASKING.contains(&name)
}

/// Whether a member of a global object asks what its argument is; `None` when the object is none
/// that has such members.
pub(crate) fn member(object: &str, name: &str) -> Option<bool> {
    let (_, members) = ASKING_MEMBERS.iter().find(|(known, _)| *known == object)?;
    Some(members.contains(&name))
}
