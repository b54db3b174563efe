//! Generated names (RFC 0005).

use sha2::{Digest as _, Sha256};

use crate::Owner;

/// How a type's names are generated and what its service allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Plain first name, or always with the 4 hex characters.
    pub kind: NameKind,
    /// Fixed by the type, e.g. `-role`; may be empty.
    pub suffix: &'static str,
    /// A meaningful ending the service requires, e.g. `.fifo`; may be empty. Never cut.
    pub ending: &'static str,
    /// Longest name, in characters; at least [`Naming::LEAST_ROOM`] more than the ending.
    pub max_length: usize,
    /// Which characters the service allows; any other becomes `-`.
    pub charset: Charset,
}

/// Characters a service allows in names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// `a-z`, `0-9`, `-`; upper-case letters are folded first.
    Lower,
    /// As `Lower`, and a letter first.
    Label,
    /// `A-Z`, `a-z`, `0-9`, `-`.
    Alphanumeric,
    /// `A-Z`, `a-z`, `0-9`, `-`, `_`.
    Word,
    /// `A-Z`, `a-z`, `0-9`, `-`, `_`, `.`.
    Dotted,
}

impl Charset {
    /// Whether the service takes the character as it is.
    pub fn allows(self, c: char) -> bool {
        match self {
            Charset::Lower | Charset::Label => matches!(c, 'a'..='z' | '0'..='9' | '-'),
            Charset::Alphanumeric => c.is_ascii_alphanumeric() || c == '-',
            Charset::Word => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
            Charset::Dotted => c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'),
        }
    }

    /// Whether a name may begin with the character.
    fn begins(self, c: char) -> bool {
        match self {
            Charset::Label => c.is_ascii_lowercase(),
            Charset::Lower | Charset::Alphanumeric | Charset::Word | Charset::Dotted => true,
        }
    }

    fn clean(self, c: char) -> char {
        let folded = match self {
            Charset::Lower | Charset::Label => c.to_ascii_lowercase(),
            Charset::Alphanumeric | Charset::Word | Charset::Dotted => c,
        };
        if self.allows(folded) { folded } else { '-' }
    }
}

/// How names go on after the plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// The first incarnation has the plain name, later ones `-` and 4 hex characters.
    Scoped,
    /// Every incarnation has the 4 hex characters.
    Generated,
}

/// A generated name, and whether it had to be cut or changed to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedName {
    /// The name.
    pub name: String,
    /// The full name did not fit the service.
    pub cut: bool,
}

impl Naming {
    /// So many characters of a name are left at least beside its ending: a cut one keeps a part of
    /// the full name and a hash.
    pub const LEAST_ROOM: usize = 20;

    /// The name of one incarnation: a pure function of who it is. Source: `engine.md` §9.
    pub fn generate(&self, owner: &Owner) -> GeneratedName {
        let plain = format!(
            "{}-{}-{}{}",
            owner.deployment.app, owner.deployment.stage, owner.resource, self.suffix
        );
        let full = match (self.kind, owner.generation) {
            (NameKind::Scoped, 0) => plain,
            (NameKind::Scoped, _) | (NameKind::Generated, _) => {
                let generation = owner.generation.to_string();
                let tuple = [
                    owner.deployment.app.as_str(),
                    owner.deployment.stage.as_str(),
                    owner.deployment.entry.as_str(),
                    owner.resource.as_str(),
                    self.suffix,
                    &generation,
                ];
                format!("{plain}-{}", &tuple_hash(&tuple)[..4])
            }
        };
        self.fit(full)
    }

    /// Cuts and cleans a full name to what the service allows.
    fn fit(&self, full: String) -> GeneratedName {
        let room = self.max_length - self.ending.len();
        let begins = full.starts_with(|c| self.charset.begins(c));
        if begins && full.len() <= room && full.chars().all(|c| self.charset.allows(c)) {
            return GeneratedName {
                name: full + self.ending,
                cut: false,
            };
        }
        let mut clean: String = full.chars().map(|c| self.charset.clean(c)).collect();
        if !clean.starts_with(|c| self.charset.begins(c)) {
            clean.insert(0, 'n');
        }
        let cut: String = clean.chars().take(room - 9).collect();
        let hash = hex::encode(Sha256::digest(full.as_bytes()));
        let name = format!(
            "{}-{}{}",
            cut.trim_end_matches('-'),
            &hash[..8],
            self.ending
        );
        GeneratedName { name, cut: true }
    }
}

/// Hex of a hash over the length-prefixed parts, so that no two tuples can be confused.
fn tuple_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(app: &str, stage: &str, resource: &str, generation: u32) -> Owner {
        Owner {
            deployment: format!("{app}:{stage}:main").parse().unwrap(),
            resource: resource.parse().unwrap(),
            generation,
        }
    }

    fn naming(kind: NameKind, max_length: usize, ending: &'static str) -> Naming {
        Naming {
            kind,
            suffix: "",
            ending,
            max_length,
            charset: Charset::Alphanumeric,
        }
    }

    #[test]
    fn the_first_scoped_name_is_plain_and_later_ones_carry_four_hex() {
        let scoped = naming(NameKind::Scoped, 63, "");
        assert_eq!(
            scoped
                .generate(&owner("orders-app", "prod", "todos", 0))
                .name,
            "orders-app-prod-todos"
        );
        let later = scoped
            .generate(&owner("orders-app", "prod", "todos", 1))
            .name;
        assert_eq!(later.len(), "orders-app-prod-todos-".len() + 4);
    }

    #[test]
    fn equal_joins_of_different_tuples_get_different_generated_names() {
        let generated = naming(NameKind::Generated, 63, "");
        let one = generated.generate(&owner("orders", "app-prod", "x", 0));
        let other = generated.generate(&owner("orders-app", "prod", "x", 0));
        assert_ne!(one, other);
    }

    #[test]
    fn a_long_name_is_cut_to_the_limit_and_keeps_its_ending() {
        let fifo = naming(NameKind::Scoped, 40, ".fifo");
        let made = fifo.generate(&owner("orders-app", "prod", &"x".repeat(80), 0));
        assert!(
            made.cut && made.name.len() == 40 && made.name.ends_with(".fifo"),
            "{made:?}"
        );
        assert_eq!(
            made,
            fifo.generate(&owner("orders-app", "prod", &"x".repeat(80), 0))
        );
    }

    #[test]
    fn a_character_that_is_not_allowed_becomes_a_hyphen_with_a_hash() {
        let made = naming(NameKind::Scoped, 63, "").generate(&owner("a", "b", "x.y", 0));
        assert!(made.cut && made.name.starts_with("a-b-x-y-"), "{made:?}");
    }

    #[test]
    fn a_name_that_must_begin_with_a_letter_does() {
        let label = Naming {
            charset: Charset::Label,
            ..naming(NameKind::Scoped, 63, "")
        };
        let made = label.generate(&owner("1app", "dev", "api", 0));
        assert!(
            made.cut && made.name.starts_with("n1app-dev-api-"),
            "{made:?}"
        );
        assert_eq!(
            label.generate(&owner("app", "dev", "api", 0)).name,
            "app-dev-api"
        );
    }
}
