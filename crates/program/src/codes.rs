//! Every error code of this room. Each has a page in `docs/errors/`, `::` written as `-`.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*
        /// All of them.
        pub const ALL: &[&str] = &[$($code),*];
    };
}

codes! {
    /// No `notation.config.ts` upwards.
    NO_PROJECT = "program::no_project";
    /// The project file exports no plain object.
    CONFIG_SHAPE = "program::config_shape";
    /// A field of the project file is missing, or not of its kind.
    CONFIG_FIELD = "program::config_field";
    /// A name in the project file is not name-safe.
    CONFIG_NAME = "program::config_name";
    /// An entry file does not exist.
    ENTRY_NOT_FOUND = "program::entry_not_found";
    /// A new project would overwrite a file.
    FILE_EXISTS = "program::file_exists";
    /// A file of a project cannot be written.
    CANNOT_WRITE = "program::cannot_write";
    /// An installed package of ours has another version than the binary.
    PACKAGE_VERSION = "program::package_version";
    /// A file cannot be read as TypeScript or JavaScript.
    SYNTAX = "program::syntax";
    /// A file nests deeper than any tool could follow.
    TOO_DEEP = "program::too_deep";
    /// An import leads nowhere.
    IMPORT_NOT_FOUND = "program::import_not_found";
    /// An import leads out of the project's folder.
    IMPORT_OUTSIDE = "program::import_outside";
    /// A module of Node.js is imported.
    NODE_BUILTIN = "program::node_builtin";
    /// An import names something that the module does not export.
    EXPORT_NOT_FOUND = "program::export_not_found";
    /// Any other complaint of the bundler.
    BUNDLE = "program::bundle";
    /// The program threw.
    EXCEPTION = "program::exception";
    /// A name is used before its declaration has run.
    USED_TOO_EARLY = "program::used_too_early";
    /// Something of Node.js or browsers that a program does not have.
    NOT_AVAILABLE = "program::not_available";
    /// Time, chance and other things that would change the graph from run to run.
    NOT_REPEATABLE = "program::not_repeatable";
    /// The program did not end in time.
    TIME_LIMIT = "program::time_limit";
    /// The program took too much memory.
    MEMORY_LIMIT = "program::memory_limit";
    /// The program waits for something that never comes.
    NEVER_SETTLES = "program::never_settles";
    /// A reference where a plain value is needed.
    REFERENCE_AS_VALUE = "program::reference_as_value";
    /// A reference as the name of a member.
    REFERENCE_AS_KEY = "program::reference_as_key";
    /// A text with a reference was cut or encoded.
    REFERENCE_IN_PIECES = "program::reference_in_pieces";
    /// A resource where a value is needed.
    RESOURCE_AS_VALUE = "program::resource_as_value";
    /// A property of a resource was assigned to.
    RESOURCE_IS_FIXED = "program::resource_is_fixed";
    /// Something else than a resource where one is needed.
    NOT_A_RESOURCE = "program::not_a_resource";
    /// A value that is not data.
    NOT_DATA = "program::not_data";
    /// An export that is not data.
    EXPORT_NOT_DATA = "program::export_not_data";
    /// An option of a resource that is unknown or of the wrong kind.
    INVALID_OPTION = "program::invalid_option";
    /// An id that is missing or not allowed.
    INVALID_ID = "program::invalid_id";
    /// The name of a secret that is not allowed.
    INVALID_SECRET_NAME = "program::invalid_secret_name";
    /// Two resources with one id.
    DUPLICATE_ID = "program::duplicate_id";
    /// Two resources that claim the same object.
    DUPLICATE_IDENTITY = "program::duplicate_identity";
    /// A type that no provider declares.
    UNKNOWN_TYPE = "program::unknown_type";
    /// A field that its type (or the project file) does not have.
    UNKNOWN_FIELD = "program::unknown_field";
    /// A field that only the provider sets.
    COMPUTED_FIELD = "program::computed_field";
    /// A required field that nobody gives.
    MISSING_FIELD = "program::missing_field";
    /// A value of another kind than the field takes.
    WRONG_KIND = "program::wrong_kind";
    /// A second value for a field that takes one.
    SECOND_VALUE = "program::second_value";
    /// A reference to a property that the resource does not have.
    UNKNOWN_OUTPUT = "program::unknown_output";
    /// A binding that is not one: not a name and a resource that can be bound.
    WRONG_BINDING = "program::wrong_binding";
    /// A name that code cannot have.
    INVALID_CODE_NAME = "program::invalid_code_name";
    /// Two values of one code with the same name.
    CODE_NAME_TAKEN = "program::code_name_taken";
    /// A module file that does not exist or lies outside the project.
    MODULE_NOT_FOUND = "program::module_not_found";
    /// A module whose handlers cannot be told from its text.
    MODULE_HANDLERS = "program::module_handlers";
}

/// The code as a constant; what the prelude says is always one of ours.
pub(crate) fn known(code: &str) -> &'static str {
    ALL.iter()
        .find(|known| **known == code)
        .copied()
        .unwrap_or(EXCEPTION)
}
