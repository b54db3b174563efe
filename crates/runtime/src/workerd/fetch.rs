//! Fetching the binary: at most one process at a time per cache directory, and a binary is
//! there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha512};
use tokio::process::Command;

use super::{Package, Progress, RELEASE, Stage, WorkerdError, cached, package};

const TARBALL_BYTES: u64 = 47_000_000;

/// Path of a runnable `workerd`: `given` when there is one, else the one in `cache_dir`,
/// fetched first when it is not there yet.
///
/// Errors: every variant of [`WorkerdError`], each with a repair text.
pub async fn ensure(
    cache_dir: &Path,
    given: Option<&Path>,
    progress: &dyn Progress,
) -> Result<PathBuf, WorkerdError> {
    if let Some(path) = given {
        answers(path).await?;
        return Ok(path.to_owned());
    }
    let package = package()?;
    let binary = cached(cache_dir, package);
    if binary.is_file() {
        return Ok(binary);
    }
    fs::create_dir_all(cache_dir).map_err(|source| refused(cache_dir, source))?;
    let _lock = lock(cache_dir, progress).await?;
    if binary.is_file() {
        return Ok(binary); // the process we waited for has fetched it
    }
    fetch(cache_dir, package, progress).await?;
    answers(&binary).await?;
    progress.stage(Stage::Ready);
    Ok(binary)
}

/// Held while one process fetches; the system releases it when that process ends.
async fn lock(cache: &Path, progress: &dyn Progress) -> Result<File, WorkerdError> {
    let file = File::create(cache.join("workerd.lock")).map_err(|source| refused(cache, source))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(fs::TryLockError::WouldBlock) => progress.stage(Stage::Waiting),
        Err(fs::TryLockError::Error(source)) => return Err(refused(cache, source)),
    }
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked
        .unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
        .map_err(|source| refused(cache, source))
}

async fn fetch(
    cache: &Path,
    package: &'static Package,
    progress: &dyn Progress,
) -> Result<(), WorkerdError> {
    let name = format!("{}@{RELEASE}", package.name);
    let work = tempfile::Builder::new()
        .prefix(".fetching-")
        .tempdir_in(cache)
        .map_err(|source| refused(cache, source))?;
    progress.stage(Stage::Fetching {
        about_bytes: TARBALL_BYTES,
    });
    pack(&name, cache, work.path()).await?;
    progress.stage(Stage::Verifying);
    let tarball = tarball(work.path()).map_err(|source| refused(cache, source))?;
    let found = blocking(cache, {
        let tarball = tarball.clone();
        move || sha512(&tarball)
    })
    .await?;
    if found != package.sha512 {
        return Err(WorkerdError::Integrity {
            package: name,
            expected: package.sha512,
            found,
        });
    }
    progress.stage(Stage::Unpacking);
    let unpacked = work.path().join("unpacked");
    let target = cached(cache, package)
        .parent()
        .expect("the binary has a directory")
        .to_owned();
    blocking(cache, move || {
        fs::create_dir(&unpacked)?;
        unpack(&tarball, &unpacked.join("workerd"))?;
        fs::rename(&unpacked, &target)
    })
    .await
}

/// Downloads through npm, by name: which registry answers is npm's own configuration.
async fn pack(name: &str, cache: &Path, into: &Path) -> Result<(), WorkerdError> {
    let output = Command::new("npm")
        .args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
        .arg(into)
        .arg(name)
        .current_dir(into) // away from the project's own npm settings and workspaces
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WorkerdError::NpmMissing);
        }
        Err(error) => {
            return Err(WorkerdError::Npm {
                package: name.into(),
                detail: error.to_string(),
            });
        }
    };
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    Err(failure(name, cache, &String::from_utf8_lossy(&text)))
}

/// What a failed npm run means.
fn failure(name: &str, cache: &Path, text: &str) -> WorkerdError {
    const UNREACHABLE: [&str; 10] = [
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ETIMEDOUT",
        "EHOSTUNREACH",
        "ENETUNREACH",
        "ERR_SOCKET_TIMEOUT",
        "ENOTCACHED",
        "network",
    ];
    let has = |word: &&str| text.contains(*word);
    let detail = text
        .lines()
        .map(|line| {
            line.trim_start_matches("npm")
                .trim_start()
                .trim_start_matches("error ")
                .trim()
        })
        .find(|line| !line.is_empty() && !line.starts_with("code "))
        .unwrap_or("it printed nothing")
        .to_owned();
    let package = name.to_owned();
    if has(&"ENOSPC") {
        WorkerdError::DiskFull {
            cache: cache.into(),
        }
    } else if UNREACHABLE.iter().any(has) {
        WorkerdError::Network { package, detail }
    } else {
        WorkerdError::Npm { package, detail }
    }
}

fn tarball(directory: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tgz") {
            return Ok(path);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "npm reported success but left no tarball",
    ))
}

fn sha512(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha512::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(STANDARD.encode(hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Writes the binary out of a verified tarball, durable before anyone can see it.
fn unpack(tarball: &Path, to: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(tarball)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.ends_with("bin/workerd") {
            let mut file = File::create_new(to)?;
            io::copy(&mut entry, &mut file)?;
            rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o755))?;
            return file.sync_all();
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "the package holds no binary",
    ))
}

/// Asks the binary for its version: a missing library or another architecture shows here,
/// not when the first worker starts.
async fn answers(path: &Path) -> Result<(), WorkerdError> {
    let refuse = |detail: String| WorkerdError::NotRunnable {
        path: path.into(),
        detail,
    };
    let output = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| refuse(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.starts_with("workerd ") {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refuse(
        said.lines()
            .chain(text.lines())
            .next()
            .unwrap_or("it printed nothing")
            .to_owned(),
    ))
}

async fn blocking<T: Send + 'static>(
    cache: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, WorkerdError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
        .map_err(|source| refused(cache, source))
}

fn refused(cache: &Path, source: io::Error) -> WorkerdError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WorkerdError::DiskFull {
            cache: cache.into(),
        },
        _ => WorkerdError::Cache {
            cache: cache.into(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_npm_are_told_apart() {
        let of = |text: &str| failure("p@1", Path::new("/cache"), text);
        let offline = of("npm error code EAI_AGAIN\nnpm error request to a registry failed");
        assert!(
            matches!(&offline, WorkerdError::Network { detail, .. } if detail == "request to a registry failed")
        );
        assert!(matches!(
            of("npm error code ENOSPC"),
            WorkerdError::DiskFull { .. }
        ));
        assert!(matches!(
            of("npm error code E404\nnpm error 404 Not Found"),
            WorkerdError::Npm { .. }
        ));
        assert!(!of("").repair().is_empty());
    }

    #[tokio::test]
    async fn a_given_path_that_is_no_runtime_is_refused_with_what_it_said() {
        let error = ensure(Path::new("/nowhere"), Some(Path::new("/bin/false")), &())
            .await
            .expect_err("not workerd");
        assert!(matches!(error, WorkerdError::NotRunnable { .. }), "{error}");
    }
}
