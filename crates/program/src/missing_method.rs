//! A call of something that the resource does not have: most often a misspelt method.
//!
//! Reading any property of a resource gives a reference, so that the sandbox cannot tell a slip
//! from an output; its type can.

use std::ops::Range;

use notation_model::{Origin, TypeName, TypeSet};

use crate::{
    codes, locate,
    nearest::{list, nearest, suggestion},
    problem::Problem,
    raw::RawCall,
    source::Sources,
};

/// What is wrong with the call; `None` when the type has such a property, or is not known.
pub(crate) fn explain(call: &RawCall, types: &TypeSet) -> Option<Problem> {
    let name = call.ty.parse::<TypeName>().ok()?;
    let ty = types.get(&name)?;
    if ty.fields.contains_key(call.property.as_str()) {
        return None;
    }
    let RawCall {
        label, property, ..
    } = call;
    let fields = ty.fields.keys().map(String::as_str);
    let problem = |kind: &str| {
        Problem::new(
            codes::UNKNOWN_OUTPUT,
            format!("{label} ({name}) has no {kind} `{property}`"),
        )
    };
    if call.inner {
        let known: Vec<&str> = fields.collect();
        return Some(problem("property").help(suggestion(property, &known)));
    }
    let methods: Vec<&str> = call.methods.iter().map(String::as_str).collect();
    let near = nearest(property, methods.iter().copied().chain(fields));
    Some(problem("method").help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its methods are {}", list(&methods)),
    }))
}

/// The name of the missing property in the call at `at`, in bytes of its file.
pub(crate) fn word(call: &RawCall, at: &Origin, sources: &Sources) -> Option<Range<usize>> {
    let place = locate::property(sources, at, &call.property)?;
    Some(place.offset..place.offset + place.length)
}
