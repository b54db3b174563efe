//! One case of a plan: programs deployed one after another, and what is said of the plan of the
//! last one.

#![allow(
    unused_imports,
    unused_macros,
    reason = "each test file uses its own part of the model"
)]

/// The plan as one line; once it has run there is nothing to do.
macro_rules! check_line {
    ($([$($before:literal),*])? plan $text:literal, @$line:literal) => {{
        #[allow(unused_mut, reason = "a case may start from nothing")]
        let mut world = $crate::world::World::default();
        $($(world.deploy($before);)*)?
        insta::assert_snapshot!(world.line($text), @$line);
        world.deploy($text);
        assert_eq!(world.line($text), "nothing", "{}", $text);
    }};
}

/// The plan in full, or why there is none.
macro_rules! check_detail {
    ($([$($before:literal),*])? plan $text:literal, @$says:literal) => {{
        #[allow(unused_mut, reason = "a case may start from nothing")]
        let mut world = $crate::world::World::default();
        $($(world.deploy($before);)*)?
        insta::assert_snapshot!(world.detail($text), @$says);
    }};
}

#[allow(
    unused_imports,
    reason = "each test file uses its own part of the model"
)]
pub(crate) use {check_detail, check_line};
