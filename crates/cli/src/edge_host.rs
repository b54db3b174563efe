//! The host that edge resources go to: a given one, or the project's local host.

use std::{
    env,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use notation_provider_edge::{Connect, ConnectError, EdgeConfig};
use url::Url;

use crate::{
    exit::Exit,
    failure::{Failure, Problem},
    localhost::{
        folder::{Folder, FolderError, TOKEN},
        start::{self, unusable},
        workerd,
    },
    printer::Printer,
};

/// Space that resources go to when none is said.
const SPACE: &str = "default";

/// Finds the host, and starts the local one only when somebody needs it.
#[derive(Debug, Clone)]
pub struct EdgeHost {
    project: PathBuf,
    printer: Printer,
    used_local: Arc<AtomicBool>,
}

impl EdgeHost {
    /// That of a project.
    pub fn of(project: PathBuf, printer: &Printer) -> EdgeHost {
        EdgeHost {
            project,
            printer: *printer,
            used_local: Arc::default(),
        }
    }

    /// Whether the local host was brought up or found by this command.
    pub fn used_local(&self) -> bool {
        self.used_local.load(Ordering::Relaxed)
    }

    /// The host, ready to be called. Blocks while the local one starts.
    pub fn find(&self) -> Result<EdgeConfig, Failure> {
        let space = given("NOTATION_EDGE_SPACE").unwrap_or_else(|| SPACE.into());
        if let Some(endpoint) = given("NOTATION_EDGE_ENDPOINT") {
            return elsewhere(&endpoint, space);
        }
        let printer = self.printer;
        let info = start::ensure(&self.project, || workerd::ensure(&printer).map(drop))?;
        self.used_local.store(true, Ordering::Relaxed);
        let token = Folder::of(&self.project).secret(TOKEN).ok_or_else(|| {
            unusable(FolderError {
                path: Folder::of(&self.project).path().join(TOKEN),
                verb: "read",
                source: std::io::ErrorKind::NotFound.into(),
            })
        })?;
        let url = |address: std::net::SocketAddr| {
            format!("http://{address}/")
                .parse()
                .expect("an address makes a URL")
        };
        Ok(EdgeConfig {
            endpoint: url(info.api),
            space,
            token,
            addresses: Some(url(info.ingress)),
        })
    }
}

#[async_trait]
impl Connect for EdgeHost {
    async fn connect(&self) -> Result<EdgeConfig, ConnectError> {
        let finder = self.clone();
        match tokio::task::spawn_blocking(move || finder.find()).await {
            Ok(found) => found.map_err(|failure| ConnectError(words(&failure))),
            Err(_) => Err(ConnectError("the search for the host broke off".into())),
        }
    }
}

/// The host that the environment names.
fn elsewhere(endpoint: &str, space: String) -> Result<EdgeConfig, Failure> {
    let endpoint = origin(endpoint).map_err(|why| {
        Failure::new(
            Exit::Fixable,
            "edge::endpoint",
            format!("NOTATION_EDGE_ENDPOINT={endpoint:?} {why}"),
        )
        .help("set it to the origin of the host, e.g. https://host.example, or unset it to use the local host")
    })?;
    let no_token = |why: &str| Failure::new(Exit::Fixable, "edge::no_token", why);
    let token = given("NOTATION_EDGE_TOKEN").ok_or_else(|| {
        no_token("NOTATION_EDGE_ENDPOINT is set and NOTATION_EDGE_TOKEN is not").help(
            "set NOTATION_EDGE_TOKEN to a token of that host, or unset both to use the local host",
        )
    })?;
    // As it is read from a file, with the end of its line.
    let token = token.trim();
    if !token.chars().all(|letter| letter.is_ascii_graphic()) {
        return Err(no_token("NOTATION_EDGE_TOKEN has a blank, a line break or another character in it that no token has")
            .help("set it to the token alone, as the host's operator gave it"));
    }
    Ok(EdgeConfig {
        endpoint,
        space,
        token: token.to_owned(),
        addresses: None,
    })
}

/// Where a host is. Errors: what the text is instead.
fn origin(text: &str) -> Result<Url, String> {
    let url: Url = text
        .parse()
        .map_err(|error| format!("is no URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => {}
        other => {
            return Err(format!(
                "is no address of a host: {other} is not http or https"
            ));
        }
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("has more than the origin of a host in it".to_owned());
    }
    Ok(url)
}

fn words(failure: &Failure) -> String {
    let parts = failure.problems.iter().map(|problem| match problem {
        Problem::Plain(plain) => match &plain.help {
            Some(help) => format!("{plain}; {help}"),
            None => plain.to_string(),
        },
        Problem::Project(problem) => problem.message.clone(),
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn given(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_origin_of_a_host_is_one() {
        for good in ["http://127.0.0.1:8787", "https://host.example/"] {
            assert!(origin(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("myhost", "is no URL"),
            ("localhost:8787", "localhost is not http or https"),
            ("ftp://host.example", "ftp is not http or https"),
            ("https://host.example/v1", "more than the origin"),
            ("https://host.example?x", "more than the origin"),
        ] {
            let said = origin(bad).unwrap_err();
            assert!(said.contains(why), "{bad}: {said}");
        }
    }
}
