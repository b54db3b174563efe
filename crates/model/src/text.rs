//! Texts: names, ids, keys of maps, text values.

/// A text that is cheap to clone and to keep by the hundred thousand: sixteen bytes, of which
/// fifteen hold a short one in place; clones of a longer one share it. Most names and many values
/// are short.
pub type Text = ecow::EcoString;
