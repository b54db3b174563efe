//! The packages that are inside the binary: `@notation/core`, `@notation/edge`, `@notation/sim`.

use std::path::Path;

use crate::{codes, problem::Problem};

/// One embedded package.
pub(crate) struct Package {
    pub name: &'static str,
    /// File name and text; `index.ts` first.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! package {
    ($name:literal, $folder:literal, [$($file:literal),* $(,)?]) => {
        Package {
            name: $name,
            files: &[$((
                $file,
                include_str!(concat!("../../../sdk/", $folder, "/src/", $file)),
            )),*],
        }
    };
}

/// Every embedded package.
pub(crate) const PACKAGES: &[Package] = &[
    package!(
        "@notation/core",
        "core",
        [
            "index.ts",
            "config.ts",
            "names.ts",
            "reference.ts",
            "resource.ts",
            "runtime.ts",
        ]
    ),
    package!(
        "@notation/edge",
        "edge",
        ["index.ts", "handlers.ts", "worker.ts"]
    ),
    package!("@notation/sim", "sim", ["index.ts"]),
];

/// Marks module ids of embedded files; no file of a project can have it.
pub(crate) const PREFIX: &str = "\0sdk:";

/// The module id that an import from `importer` means, if it is one of ours.
pub(crate) fn resolve(specifier: &str, importer: Option<&str>) -> Option<String> {
    if let Some(package) = PACKAGES.iter().find(|package| package.name == specifier) {
        return Some(format!("{PREFIX}{}/index.ts", package.name));
    }
    let folder = importer?.strip_prefix(PREFIX)?.rsplit_once('/')?.0;
    Some(format!(
        "{PREFIX}{folder}/{}.ts",
        specifier.strip_prefix("./")?
    ))
}

/// The package that a module id belongs to.
pub(crate) fn package(id: &str) -> Option<&'static str> {
    let path = id.strip_prefix(PREFIX)?;
    let mut names = PACKAGES.iter().map(|package| package.name);
    names.find(|name| {
        path.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('/'))
    })
}

/// The text of an embedded module.
pub(crate) fn load(id: &str) -> Option<&'static str> {
    let path = id.strip_prefix(PREFIX)?;
    PACKAGES.iter().find_map(|package| {
        let file = path.strip_prefix(package.name)?.strip_prefix('/')?;
        package
            .files
            .iter()
            .find(|(name, _)| *name == file)
            .map(|(_, text)| *text)
    })
}

/// Packages of ours that are installed beside the project in another version. The embedded ones
/// are always used, so the editor would show other types than the ones that count.
pub(crate) fn installed_differently(root: &Path) -> Vec<Problem> {
    let own = env!("CARGO_PKG_VERSION");
    root.ancestors()
        .map(|folder| folder.join("node_modules/@notation"))
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| {
            PACKAGES.iter().filter_map(move |package| {
                let short = package.name.rsplit('/').next()?;
                let manifest = std::fs::read(folder.join(short).join("package.json")).ok()?;
                let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
                let version = manifest.get("version")?.as_str()?.to_owned();
                (version != own).then_some((package.name, version))
            })
        })
        .map(|(name, version)| {
            Problem::new(
                codes::PACKAGE_VERSION,
                format!("{name} {version} is installed, and this is notation {own}"),
            )
            .help(format!(
                "install {name}@{own}, or remove it: the packages are inside the binary, and `notation types` lays their types for the editor"
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_import_of_an_embedded_file_is_embedded() {
        for package in PACKAGES {
            for (file, text) in package.files {
                let id = format!("{PREFIX}{}/{file}", package.name);
                assert_eq!(load(&id), Some(*text));
                for specifier in text
                    .split("from \"")
                    .skip(1)
                    .filter_map(|rest| rest.split('"').next())
                {
                    let target = resolve(specifier, Some(&id)).expect(specifier);
                    assert!(load(&target).is_some(), "{specifier} in {id}");
                }
            }
        }
    }

    #[test]
    fn the_packages_have_the_version_of_the_binary() {
        for package in [
            include_str!("../../../sdk/core/package.json"),
            include_str!("../../../sdk/edge/package.json"),
            include_str!("../../../sdk/sim/package.json"),
        ] {
            let manifest: serde_json::Value = serde_json::from_str(package).unwrap();
            assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
        }
    }
}
