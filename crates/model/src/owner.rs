//! To whom an object belongs, and what its tags say of that (RFC 0010).

use std::collections::BTreeMap;

use crate::{DeploymentId, ResourceId};

/// To whom a created object belongs (RFC 0010). All but the generation decide ownership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// App, stage and entry.
    pub deployment: DeploymentId,
    /// The resource.
    pub resource: ResourceId,
    /// Which incarnation.
    pub generation: u32,
}

/// Owner tags as key and value, in a fixed order.
pub type OwnerTags = [(&'static str, String); 5];

impl Owner {
    /// `notation:app` .. `notation:generation` (`engine.md` §9, *Tags*).
    pub fn tags(&self) -> OwnerTags {
        [
            ("notation:app", self.deployment.app.to_string()),
            ("notation:stage", self.deployment.stage.to_string()),
            ("notation:entry", self.deployment.entry.to_string()),
            ("notation:resource", self.resource.to_string()),
            ("notation:generation", self.generation.to_string()),
        ]
    }

    /// Whether tags that were read name this owner, whatever the generation. `former` are
    /// earlier ids of the resource.
    pub fn owns<'a>(&self, tag: impl Fn(&str) -> Option<&'a str>, former: &[ResourceId]) -> bool {
        let [app, stage, entry, _, _] = self.tags();
        let deployment = [app, stage, entry]
            .iter()
            .all(|(key, value)| tag(key) == Some(value));
        let resource = tag("notation:resource");
        deployment
            && (resource == Some(self.resource.as_str())
                || former.iter().any(|id| resource == Some(id.as_str())))
    }

    /// Whether tags that were read name somebody else. A tag that is missing names nobody.
    pub fn is_contradicted<'a>(
        &self,
        tag: impl Fn(&str) -> Option<&'a str>,
        former: &[ResourceId],
    ) -> bool {
        let complete = self.tags();
        let whole = |key: &str| {
            let own = complete.iter().find(|(own, _)| *own == key);
            tag(key).or(own.map(|(_, value)| value.as_str()))
        };
        !self.owns(whole, former)
    }

    /// Whether an object with these tags is what this owner has a record of: they name it, or are
    /// what the record says they may be.
    pub fn owns_object(&self, tags: &BTreeMap<String, String>, earlier: Earlier<'_>) -> bool {
        self.owns(|key| tags.get(key).map(String::as_str), earlier.former)
            || earlier.is_taken_from(tags)
    }

    /// Whether tags name somebody who is not this owner and, by the record, was not. A tag that is
    /// missing names nobody.
    pub fn is_anothers(&self, tags: &BTreeMap<String, String>, earlier: Earlier<'_>) -> bool {
        self.is_contradicted(|key| tags.get(key).map(String::as_str), earlier.former)
            && !earlier.is_taken_from(tags)
    }
}

/// What the tags of a recorded object may say instead of its owner: they are of its last write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earlier<'a> {
    /// Earlier ids of the resource: renaming it writes nothing.
    pub former: &'a [ResourceId],
    /// The tags, as [`owner_tags`], of whoever had it when a person took it over.
    pub taken_from: Option<&'a str>,
}

impl Earlier<'_> {
    fn is_taken_from(&self, tags: &BTreeMap<String, String>) -> bool {
        self.taken_from == Some(&*owner_tags(tags))
    }
}

/// The tags that name an owner, as one text; empty when there are none.
pub fn owner_tags(tags: &BTreeMap<String, String>) -> String {
    let own = tags.iter().filter(|(tag, _)| tag.starts_with("notation:"));
    let texts: Vec<String> = own.map(|(tag, value)| format!("{tag}={value}")).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(deployment: &str, resource: &str) -> Owner {
        Owner {
            deployment: deployment.parse().unwrap(),
            resource: resource.parse().unwrap(),
            generation: 0,
        }
    }

    fn written_by(owner: &Owner) -> BTreeMap<String, String> {
        let tags = owner.tags().into_iter();
        tags.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    #[test]
    fn tags_of_a_former_id_and_of_whoever_it_was_taken_from_name_nobody_else() {
        let gateway = owner("shop:dev:main", "gateway");
        let api = written_by(&owner("shop:dev:main", "api"));
        let theirs = written_by(&owner("other:dev:main", "api"));
        let former = ["api".parse().unwrap()];
        let renamed = Earlier {
            former: &former,
            taken_from: None,
        };
        let text = owner_tags(&theirs);
        let taken = Earlier {
            former: &[],
            taken_from: Some(&text),
        };
        for (tags, earlier, ours) in [
            (&written_by(&gateway), Earlier::default(), true),
            (&api, Earlier::default(), false),
            (&api, renamed, true),
            (&theirs, renamed, false),
            (&theirs, taken, true),
            (&api, taken, false),
        ] {
            assert_eq!(
                gateway.owns_object(tags, earlier),
                ours,
                "{tags:?} {earlier:?}"
            );
            assert_eq!(
                gateway.is_anothers(tags, earlier),
                !ours,
                "{tags:?} {earlier:?}"
            );
        }
        // Without tags it is nobody's, and ours only where that is what was taken over.
        let none = BTreeMap::new();
        let bare = Earlier {
            former: &[],
            taken_from: Some(""),
        };
        assert!(!gateway.owns_object(&none, renamed) && gateway.owns_object(&none, bare));
        assert!(!gateway.is_anothers(&none, renamed) && !gateway.is_anothers(&none, bare));
    }
}
