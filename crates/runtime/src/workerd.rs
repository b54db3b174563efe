//! The `workerd` binary: one pinned release, fetched on first use through npm, verified by
//! the integrity written here, unpacked once per cache directory.

mod fetch;

use std::io;
use std::path::{Path, PathBuf};

pub use fetch::ensure;

/// The release everything here was written for. Texts on stderr, flags and slots of the
/// configuration belong to it.
pub const RELEASE: &str = "1.20261117.1";

/// One platform's package: what it is called and the SHA-512 of its tarball (base64).
struct Package {
    os: &'static str,
    arch: &'static str,
    name: &'static str,
    sha512: &'static str,
}

const PACKAGES: [Package; 4] = [
    Package {
        os: "linux",
        arch: "x86_64",
        name: "@cloudflare/workerd-linux-64",
        sha512: "gZLA8X11m/luZwn+YA3+mDu61vdxNJzpksP/QZqjydKTQ+VUCulsK5gtn9Bqst1p3KJu2kafQpJ1nDQv4B23jA==",
    },
    Package {
        os: "linux",
        arch: "aarch64",
        name: "@cloudflare/workerd-linux-arm64",
        sha512: "gxWngFojq41ULKNKb9rpWYvKotN5hT2I/xot+Bpy31cXzrwcTgtDLSMb2t75sW5BJxH7hihFvikgYb577kB3Zg==",
    },
    Package {
        os: "macos",
        arch: "x86_64",
        name: "@cloudflare/workerd-darwin-64",
        sha512: "qfAYw6iPoey0BmPsp4z5ARWOa+XSBD3gQzmcBI2ql9pKTSA5eEC8F1oI6BIk/FVguhomfSn5gS4RzbWhTd/EpQ==",
    },
    Package {
        os: "macos",
        arch: "aarch64",
        name: "@cloudflare/workerd-darwin-arm64",
        sha512: "cInx5Cr9O27oW+ujyI49lTRQZra/lMgWUFiKmGY3jxDncATSxzfQ6udXHkVvK4//1/PfxQTDyMjdQUIN8m6Aqg==",
    },
];

/// A moment of [`ensure`] worth showing to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another process is fetching into the same cache directory.
    Waiting,
    /// npm is downloading; the tarball has about this many bytes.
    Fetching {
        /// Expected size of the download in bytes.
        about_bytes: u64,
    },
    /// The tarball is compared with the integrity of this release.
    Verifying,
    /// The binary is written to the cache directory.
    Unpacking,
    /// The binary was asked for its version and answered.
    Ready,
}

/// Told about the stages of [`ensure`], in order. A cached binary tells nothing.
pub trait Progress: Send + Sync {
    /// A stage begins.
    fn stage(&self, stage: Stage);
}

/// For callers that show nothing.
impl Progress for () {
    fn stage(&self, _: Stage) {}
}

/// Why there is no runtime binary. [`WorkerdError::repair`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerdError {
    /// No package exists for this machine.
    #[error("the worker runtime has no build for {os} on {arch}")]
    Unsupported {
        /// Operating system, as Rust calls it.
        os: &'static str,
        /// Processor architecture.
        arch: &'static str,
    },
    /// `npm` is not on the path.
    #[error("npm was not found, and the worker runtime is fetched through it")]
    NpmMissing,
    /// npm could not reach its registry.
    #[error("npm could not download {package}: {detail}")]
    Network {
        /// Package with its version.
        package: String,
        /// Last line npm printed.
        detail: String,
    },
    /// npm failed in some other way.
    #[error("npm could not provide {package}: {detail}")]
    Npm {
        /// Package with its version.
        package: String,
        /// Last line npm printed.
        detail: String,
    },
    /// The bytes are not those of the pinned release.
    #[error("{package} does not have the expected content (sha512 {found} instead of {expected})")]
    Integrity {
        /// Package with its version.
        package: String,
        /// SHA-512 in our source, base64.
        expected: &'static str,
        /// SHA-512 of what arrived, base64.
        found: String,
    },
    /// No space left for about 210 MB of download and binary.
    #[error("the disk of {} is full", .cache.display())]
    DiskFull {
        /// The cache directory.
        cache: PathBuf,
    },
    /// The cache directory cannot be used.
    #[error("{} cannot be used as cache directory", .cache.display())]
    Cache {
        /// The cache directory.
        cache: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The binary does not run, or is another release.
    #[error("{} does not run: {detail}", .path.display())]
    NotRunnable {
        /// The binary.
        path: PathBuf,
        /// What it said or what the system said.
        detail: String,
    },
}

impl WorkerdError {
    /// What the person at the keyboard can do about it.
    pub fn repair(&self) -> String {
        match self {
            WorkerdError::Unsupported { .. } => {
                "run the local host on Linux or macOS (x86-64 or arm64), or deploy to an endpoint elsewhere".into()
            }
            WorkerdError::NpmMissing => "install Node.js, which brings npm, and try again".into(),
            WorkerdError::Network { .. } => {
                "check the network and npm's registry and proxy settings (`npm ping` shows them), then try again".into()
            }
            WorkerdError::Npm { package, .. } => {
                format!("run `npm pack {package}` to see what npm says, repair it, then try again")
            }
            WorkerdError::Integrity { .. } => {
                "clear npm's cache (`npm cache clean --force`) and try again; if it stays, the registry npm is \
                 configured for serves something else under this name"
                    .into()
            }
            WorkerdError::DiskFull { .. } => {
                "free about 250 MB there, or name another cache directory, then try again".into()
            }
            WorkerdError::Cache { cache, .. } => {
                format!("make {} a directory this user may write to, or name another one", cache.display())
            }
            WorkerdError::NotRunnable { .. } => {
                "the binary needs a system with glibc; delete the cache directory to fetch it again, or name a \
                 working workerd binary of the same release"
                    .into()
            }
        }
    }
}

fn package() -> Result<&'static Package, WorkerdError> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    PACKAGES
        .iter()
        .find(|package| package.os == os && package.arch == arch)
        .ok_or(WorkerdError::Unsupported { os, arch })
}

/// Where the binary of this release lives in a cache directory.
fn cached(cache: &Path, package: &Package) -> PathBuf {
    cache
        .join(format!("workerd-{RELEASE}-{}-{}", package.os, package.arch))
        .join("workerd")
}
