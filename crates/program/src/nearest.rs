//! The known name that a misspelt one most probably means.

/// The nearest candidate, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()),
                candidate,
            )
        })
        .min()
        .filter(|(distance, candidate)| {
            *distance <= candidate.len().div_ceil(3) && *distance < candidate.len()
        })
        .map(|(_, candidate)| candidate)
}

/// `did you mean ..?`, or the list of what there is.
pub(crate) fn suggestion(name: &str, candidates: &[&str]) -> String {
    match nearest(name, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if candidates.is_empty() => "there is none to choose from".to_owned(),
        None => format!("there is {}", list(candidates)),
    }
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_corrected_and_another_word_is_not() {
        let names = ["ScriptName", "bindings", "main", "vars"];
        assert_eq!(nearest("binding", names), Some("bindings"));
        assert_eq!(nearest("scriptname", names), Some("ScriptName"));
        assert_eq!(nearest("mian", names), Some("main"));
        assert_eq!(nearest("entry", ["app", "entries"]), Some("entries"));
        assert_eq!(nearest("schedule", names), None);
        assert_eq!(
            suggestion("x", &["one", "two", "three"]),
            "there is `one`, `two` and `three`"
        );
    }
}
