//! Commands to type, as this person has to type them.

use notation_model::DeploymentId;

/// Advice with its commands as this deployment has to type them: `ENTRY` is its entry, and the
/// stage is said.
pub fn spelled(text: &str, deployment: &DeploymentId) -> String {
    let command = |text: &str| {
        if !text.starts_with("notation ") || !text.contains(" ENTRY") {
            return text.to_owned();
        }
        let text = text.replace(" ENTRY", &format!(" {}", deployment.entry));
        format!("{text} --stage {}", deployment.stage)
    };
    let line = |line: &str| {
        let parts = line.split('`').map(command);
        parts.collect::<Vec<_>>().join("`")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The command as it was typed, fit for pasting into a shell.
pub fn typed(arguments: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let words = arguments.map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("notation".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::{spelled, typed};

    #[test]
    fn advice_names_the_entry_and_the_stage() {
        let deployment = "shop:dev:main".parse().unwrap();
        assert_eq!(
            spelled(
                "look, then `notation resolve ENTRY a --absent`\nnotation secret set ENTRY X",
                &deployment
            ),
            "look, then `notation resolve main a --absent --stage dev`\nnotation secret set main X --stage dev"
        );
        assert_eq!(
            spelled("`--absent`, ENTRY", &deployment),
            "`--absent`, ENTRY"
        );
    }

    #[test]
    fn a_typed_command_can_be_pasted_again() {
        let words = ["--project", "my app", "deploy", "it's"].map(str::to_owned);
        assert_eq!(
            typed(words.into_iter()),
            r"notation --project 'my app' deploy 'it'\''s'"
        );
    }
}
