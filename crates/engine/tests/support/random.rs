//! Random programs of up to four workers and what stands beside them.

use proptest::prelude::*;

use super::{
    Program,
    program::{out, resource},
};

/// Ids of the workers.
pub const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// What a program says of one of them.
#[derive(Clone)]
pub struct Wanted {
    /// Which of `IDS`; absent ones are not declared.
    pub declared: bool,
    pub written_name: bool,
    pub region: u8,
    /// Who is bound to, by contribution.
    pub binds: Vec<usize>,
    /// A thing beside it that names it in config.
    pub thing: bool,
    /// `dependOn`.
    pub after: Option<usize>,
    /// Which of `TYPES`.
    pub ty: usize,
    /// Bound in the config to one that was declared before.
    pub made_with: Option<usize>,
    /// `placeholder: "never"`.
    pub never_bare: bool,
    /// A frozen thing beside it, which a change of this value replaces.
    pub frozen: Option<u8>,
    /// Goes by another id, and says which one it had.
    pub renamed: bool,
}

impl Wanted {
    /// The id of the worker of this number.
    pub fn id(&self, number: usize) -> String {
        match self.renamed {
            true => format!("{}2", IDS[number]),
            false => IDS[number].to_owned(),
        }
    }
}

impl std::fmt::Debug for Wanted {
    /// `Worker eu written >a >b =c @d never thing frozen-1`; `-` for one that is not declared.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.declared {
            return f.write_str("-");
        }
        f.write_str(TYPES[self.ty].trim_start_matches("sim/"))?;
        write!(f, " {}", ["us", "eu"][usize::from(self.region)])?;
        let marks = [
            (self.renamed, "renamed"),
            (self.written_name, "written"),
            (self.never_bare, "never"),
            (self.thing, "thing"),
        ];
        for (_, word) in marks.iter().filter(|(is_so, _)| *is_so) {
            write!(f, " {word}")?;
        }
        self.binds
            .iter()
            .try_for_each(|to| write!(f, " >{}", IDS[*to]))?;
        self.made_with
            .iter()
            .try_for_each(|to| write!(f, " ={}", IDS[*to]))?;
        self.after
            .iter()
            .try_for_each(|to| write!(f, " @{}", IDS[*to]))?;
        self.frozen
            .iter()
            .try_for_each(|value| write!(f, " frozen-{value}"))
    }
}

const TYPES: [&str; 6] = [
    "sim/Worker",
    "sim/Worker",
    "sim/Worker",
    "sim/StrictWorker",
    "sim/PinnedWorker",
    "sim/GuardedWorker",
];

/// One worker of a random program.
pub fn wanted() -> impl Strategy<Value = Wanted> {
    let plain = (
        prop::bool::weighted(0.8),
        any::<bool>(),
        0..2u8,
        prop::collection::vec(0..IDS.len(), 0..3),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.2, 0..IDS.len()),
    );
    let odd = (
        0..TYPES.len(),
        prop::option::weighted(0.2, 0..IDS.len()),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, 0..3u8),
        prop::bool::weighted(0.1),
    );
    (plain, odd).prop_map(
        |(
            (declared, written_name, region, binds, thing, after),
            (ty, made_with, never_bare, frozen, renamed),
        )| Wanted {
            declared,
            written_name,
            region,
            binds,
            thing,
            after,
            ty,
            made_with,
            never_bare,
            frozen,
            renamed,
        },
    )
}

/// The program of these; what a mere reader of the state cannot declare is left out.
pub fn program(wanted: &[Wanted]) -> Program {
    let declared = |index: &usize| wanted[*index].declared;
    let id_of = |index: usize| wanted[index].id(index);
    let mut items = Vec::new();
    for (index, one) in wanted.iter().enumerate().filter(|(_, one)| one.declared) {
        let id = IDS[index];
        let made_with = one
            .made_with
            .filter(|target| *target < index && declared(target));
        let mut bound = one.binds.clone();
        bound.sort_unstable();
        bound.dedup();
        bound.retain(declared);
        // What is required must be given.
        let given = made_with.is_some() || !bound.is_empty();
        let ty = TYPES[if given { one.ty } else { 0 }];
        let mut item =
            resource(ty, &id_of(index)).set("region", ["us", "eu"][usize::from(one.region)]);
        if one.written_name {
            item = item.named(&format!("shop-dev-{id}-x"));
        }
        if one.never_bare {
            item = item.never_bare();
        }
        if one.renamed {
            item = item.formerly(id);
        }
        if let Some(target) = made_with {
            item = item.made_with(&id_of(target));
        }
        for target in bound {
            item = item.binds(&id_of(target));
        }
        if let Some(target) = one.after.filter(declared) {
            item = item.after(&id_of(target));
        }
        items.push(item);
    }
    for (index, one) in wanted.iter().enumerate().filter(|(_, one)| one.declared) {
        if one.thing {
            let thing = resource("sim/Thing", &format!("t{}", IDS[index]));
            items.push(thing.set("parent", out(&id_of(index), "Name")));
        }
        if let Some(value) = one.frozen {
            let frozen = resource("sim/Frozen", &format!("f{}", IDS[index]));
            items.push(frozen.set("value", ["one", "two", "three"][usize::from(value)]));
        }
    }
    Program::new(items)
}
