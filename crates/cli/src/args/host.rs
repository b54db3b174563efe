//! `notation host ...` as data.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use notation_host::{Origin, is_endpoint_domain};
use notation_runtime::Scheme;

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct Host {
    #[command(subcommand)]
    pub command: HostCommand,
}

#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Start the project's local host in the background, unless it runs already.
    Start,
    /// Stop it, and the workers with it. Its data stays.
    Stop,
    /// Say whether it runs, where, and what runs on it.
    Status,
    /// Print its log, with the lines its workers wrote.
    Logs {
        /// Go on printing what is added.
        #[arg(short, long)]
        follow: bool,
        /// Only the last lines.
        #[arg(short = 'n', long, value_name = "N", default_value = "200")]
        lines: usize,
    },
    /// Tokens of a running host: who may use it.
    #[command(disable_help_subcommand = true)]
    Token(TokenArgs),
    /// Tenants of a running host, their principals and what they have.
    Tenants(DataFolder),
    /// Secret values of Workers of a running host, for whoever runs it.
    #[command(disable_help_subcommand = true)]
    Secret(HostSecret),
    /// Have a running host remove what nobody holds, now.
    Collect(DataFolder),
    /// Run a host in the foreground.
    Serve(Box<Serve>),
}

/// Which host.
#[derive(Debug, Clone, Args)]
pub struct DataFolder {
    /// Folder of the host [default: .notation/host of the project].
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
    #[command(flatten)]
    pub folder: DataFolder,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, this once.
    Create {
        /// Whose resources it reaches; tenants see nothing of each other.
        #[arg(long, value_name = "NAME", default_value = "local", value_parser = name)]
        tenant: String,
        /// Who uses it.
        #[arg(long, value_name = "NAME", default_value = "owner", value_parser = name)]
        principal: String,
        /// What it may be used for (repeatable) [default: both].
        #[arg(long, value_name = "SCOPE", value_enum)]
        scope: Vec<TokenScope>,
        /// A remark, to tell tokens apart.
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
    },
    /// List tokens by id; the tokens themselves are not stored.
    List,
    /// Revoke a token; takes effect at once.
    Revoke {
        /// Its id, from `host token list`.
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenScope {
    /// The host API.
    Api,
    /// Sealed values of workers.
    Sealed,
}

#[derive(Debug, Clone, Args)]
pub struct HostSecret {
    #[command(subcommand)]
    pub command: HostSecretCommand,
    #[command(flatten)]
    pub folder: DataFolder,
    /// Tenant of the Worker.
    #[arg(long, value_name = "NAME", default_value = "local", global = true, value_parser = name)]
    pub tenant: String,
    /// Space of the Worker.
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    pub space: String,
}

#[derive(Debug, Clone, Subcommand)]
pub enum HostSecretCommand {
    /// Set a value, read from stdin or asked for; one line break at its end is dropped.
    Set {
        /// Name of the ModuleWorker.
        #[arg(value_name = "WORKER")]
        worker: String,
        /// Name the code reads it by, like API_KEY.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the names that have a value; values are never printed.
    List {
        /// Name of the ModuleWorker.
        #[arg(value_name = "WORKER")]
        worker: String,
    },
    /// Remove a value; versions that need it are not ready from then on.
    Rm {
        /// Name of the ModuleWorker.
        #[arg(value_name = "WORKER")]
        worker: String,
        /// Name of the value.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// Where the host keeps its data [default: .notation/host of the project].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address of the control plane; beyond loopback only with a certificate.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Address at which workers are reached by host name.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub ingress: SocketAddr,
    /// What clients of workers speak: https when a proxy with TLS stands in front of the ingress.
    #[arg(long, value_name = "SCHEME", value_enum, default_value_t = IngressScheme::Http)]
    pub ingress_scheme: IngressScheme,
    /// Address of the status page and the metrics, on loopback.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub status: SocketAddr,
    /// Domain under which endpoints get their host names.
    #[arg(long, value_name = "DOMAIN", default_value = "endpoints.localhost", value_parser = domain)]
    pub endpoint_domain: String,
    /// Origin that discovery tells clients [default: the one they asked].
    #[arg(long, value_name = "URL")]
    pub public_origin: Option<Origin>,
    /// Certificate chain to serve the control plane with, PEM, the host's own first.
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "data")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Bucket for artifacts, s3://BUCKET/PREFIX with the usual AWS_* variables [default: a folder
    /// of the data].
    #[arg(long, value_name = "URL")]
    pub artifacts: Option<String>,
    /// A published set of contract documents, in place of the built-in one.
    #[arg(long, value_name = "DIR")]
    pub contracts: Option<PathBuf>,
    /// Turn the adapter for conformance runs on, with their contract; on loopback only.
    #[arg(long, value_name = "DIR", requires = "data")]
    pub conformance: Option<PathBuf>,
    /// A workerd binary to use, in place of the one that is fetched.
    #[arg(long, value_name = "FILE")]
    pub workerd: Option<PathBuf>,
    /// How lines of the log look.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub limits: Limits,
    /// Leave the terminal's session: what `host start` does.
    #[arg(long, hide = true)]
    pub detached: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IngressScheme {
    /// Clients reach the ingress itself.
    Http,
    /// TLS ends at a proxy in front of it.
    Https,
}

impl From<IngressScheme> for Scheme {
    fn from(scheme: IngressScheme) -> Scheme {
        match scheme {
            IngressScheme::Http => Scheme::Http,
            IngressScheme::Https => Scheme::Https,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What protects a host from its clients.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Requests at a time; further ones are answered 429.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = count)]
    pub max_requests: usize,
    /// Connections at a time, to the control plane and to Workers each; requests on further ones
    /// are answered 503. Never more than a sixth of the files that the host may open.
    #[arg(long, value_name = "N", default_value = "4096", value_parser = count)]
    pub max_connections: usize,
    /// Largest JSON body, in bytes.
    #[arg(long, value_name = "N", default_value = "8388608", value_parser = count)]
    pub max_body_bytes: usize,
    /// Largest target with all headers of a request, in bytes.
    #[arg(long, value_name = "N", default_value = "65536", value_parser = count)]
    pub max_head_bytes: usize,
    /// How long a request's head, each further part of its body, and a client that takes nothing
    /// of its answer are waited for, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub read_timeout: Duration,
    /// How long a whole body may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub body_timeout: Duration,
    /// How long what is in flight may take when the host is to end, at its Workers too, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub grace: Duration,
    /// Pause between removals of what nobody holds, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    pub collect_every: Duration,
    /// Days that recorded answers, ended operations and unfinished uploads are kept.
    #[arg(long, value_name = "DAYS", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub keep_days: u32,
}

/// A variable that is not set in a shell must not make one tenant of everybody.
fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("a name is needed".into())
    } else {
        Ok(text.to_owned())
    }
}

fn domain(text: &str) -> Result<String, String> {
    if is_endpoint_domain(text) {
        Ok(text.to_owned())
    } else {
        Err("it must be a lower-case DNS name like workers.example".into())
    }
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("it must be at least 1".into()),
        Ok(number) => Ok(number as usize),
        Err(error) => Err(format!("{error}")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("it must be at least 1".into()),
        Ok(number) => Ok(Duration::from_secs(number.into())),
        Err(error) => Err(format!("{error}")),
    }
}
