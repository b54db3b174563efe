//! The command line as data: commands, flags, their help.

mod host;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use notation_model::{AppName, ResourceId, SecretName, StageName};

pub use host::{
    DataFolder, Host, HostCommand, HostSecret, HostSecretCommand, LogFormat, Serve, TokenArgs,
    TokenCommand, TokenScope,
};

/// Deploys apps whose parts depend on each other.
#[derive(Debug, Parser)]
#[command(
    name = "notation",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 80,
    after_help = "Exit status: 0 done, 1 something to fix and nothing was written, 2 wrong usage, \
                  3 the run stopped and the state is consistent, 4 held by another run, 5 changes \
                  (with --fail-on-changes), 70 a bug of notation, 130 interrupted."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Folder to look for notation.config.ts in, going upwards [default: the working directory].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub project: Option<PathBuf>,
    /// Print one JSON object per line on stdout, and nothing else there.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Say less: problems and what was asked for.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Everywhere"
    )]
    pub quiet: bool,
    /// Say more: values in full.
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub verbose: bool,
    /// No colours. The environment variable NO_COLOR does the same.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub no_color: bool,
}

/// Everything a person can ask for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a project that deploys as it is.
    Init(Init),
    /// Evaluate the program and judge its graph; reads no state, calls nobody.
    Check(Entry),
    /// Show what deploy would do; writes nothing.
    Plan(Plan),
    /// Plan, show, ask, run, report.
    Deploy(Deploy),
    /// Remove everything an entry deployed.
    Destroy(Destroy),
    /// Record what the providers say; changes nothing there.
    Refresh(Refresh),
    /// Adopt an existing object under a resource id.
    Import(Import),
    /// Print what the entry exported at its last deploy.
    Outputs(Outputs),
    /// Values the program refers to by name.
    Secret(Secret),
    /// Records of what is deployed.
    State(State),
    /// List the deployments that have state.
    Stages,
    /// Who holds a deployment.
    Hold(Hold),
    /// Answer by hand whether a create took place.
    Resolve(Resolve),
    /// Draw the graph with its cycles, placeholders and kinds of edges.
    Graph(Graph),
    /// Lay the TypeScript types into the project for the editor.
    Types,
    /// The local host that workers run on.
    Host(Host),
    /// The simulated cloud.
    Sim(Sim),
    /// Print a script that completes commands, entries and stages.
    Completions(Completions),
    /// Print the version.
    Version,
    /// Explain a command, or an error by its code.
    Help(Help),
}

impl Command {
    /// Whether it leaves everything as it was, but for files it is told to write: who does not get
    /// its answer can ask again.
    pub fn only_asks(&self) -> bool {
        match self {
            Command::Check(_)
            | Command::Plan(_)
            | Command::Outputs(_)
            | Command::Stages
            | Command::Graph(_)
            | Command::Completions(_)
            | Command::Version
            | Command::Help(_) => true,
            Command::Secret(secret) => matches!(secret.command, SecretCommand::List { .. }),
            Command::State(state) => !matches!(state.command, StateCommand::Rm { .. }),
            Command::Hold(hold) => matches!(hold.command, HoldCommand::Show { .. }),
            Command::Sim(sim) => matches!(sim.command, SimCommand::Dump),
            Command::Host(host) => matches!(
                host.command,
                HostCommand::Status | HostCommand::Logs { .. } | HostCommand::Tenants(_)
            ),
            Command::Init(_)
            | Command::Deploy(_)
            | Command::Destroy(_)
            | Command::Refresh(_)
            | Command::Import(_)
            | Command::Resolve(_)
            | Command::Types => false,
        }
    }
}

/// Which deployment.
#[derive(Debug, Clone, Args)]
pub struct Entry {
    /// Name of an entry in notation.config.ts (not the path of its file).
    #[arg(value_name = "ENTRY")]
    pub entry: String,
    /// Stage: 1 to 32 of a-z, 0-9 and -, no hyphen at either end [default: defaultStage of the
    /// config].
    #[arg(long, value_name = "STAGE", allow_hyphen_values = true)]
    pub stage: Option<StageName>,
}

/// Which deployment, for commands that work from state: it may have left the config.
#[derive(Debug, Clone, Args)]
pub struct Recorded {
    #[command(flatten)]
    pub entry: Entry,
    /// App of a deployment from before the config's app was renamed (see stages)
    /// [default: app of the config].
    #[arg(long, value_name = "APP")]
    pub app: Option<AppName>,
}

#[derive(Debug, Args)]
pub struct Init {
    /// Where; made when it does not exist.
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Name of the app [default: made from the folder's name].
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
}

/// Flags of plan, deploy and destroy.
#[derive(Debug, Clone, Args)]
pub struct Shaping {
    /// Do not read the providers; trust the state.
    #[arg(long)]
    pub no_refresh: bool,
    /// Only this resource, with whatever it needs and whatever must let go of it (repeatable).
    #[arg(long, value_name = "ID")]
    pub target: Vec<ResourceId>,
    /// Replace this resource by a new one (repeatable).
    #[arg(long, value_name = "ID")]
    pub replace: Vec<ResourceId>,
    /// Take over an existing object that is not ours for this resource (repeatable).
    #[arg(long, value_name = "ID")]
    pub adopt: Vec<ResourceId>,
    /// Calls at a time.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub parallelism: u32,
    /// Start nothing more after the first failure.
    #[arg(long)]
    pub fail_fast: bool,
    /// Attempts per call before giving up.
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub max_attempts: u32,
    /// End with status 4 instead of waiting when another run holds the deployment.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    pub entry: Entry,
    #[command(flatten)]
    pub shaping: Shaping,
    /// Save the plan for deploy --plan.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End with status 5 when there is something to do, or may be.
    #[arg(long)]
    pub fail_on_changes: bool,
}

#[derive(Debug, Args)]
pub struct Deploy {
    #[command(flatten)]
    pub entry: Entry,
    #[command(flatten)]
    pub shaping: Shaping,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
    /// Apply a plan saved by plan --out; refused when state or code moved since.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "replace", "adopt", "no_refresh"])]
    pub plan: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Destroy {
    #[command(flatten)]
    pub entry: Recorded,
    #[command(flatten)]
    pub shaping: Shaping,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Refresh {
    #[command(flatten)]
    pub entry: Recorded,
    /// End with status 4 instead of waiting when another run holds the deployment.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    pub entry: Entry,
    /// Id of the resource in the program.
    #[arg(value_name = "ID")]
    pub id: ResourceId,
    /// Key of the object at its provider (usually its name).
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Import the object also when its tags name another owner: ID again, to be sure.
    #[arg(long, value_name = "ID")]
    pub adopt: Option<ResourceId>,
    /// End with status 4 instead of waiting when another run holds the deployment.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
pub struct Outputs {
    #[command(flatten)]
    pub entry: Recorded,
    /// Print sensitive values in clear.
    #[arg(long)]
    pub show_secrets: bool,
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct Secret {
    #[command(subcommand)]
    pub command: SecretCommand,
}

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Set a value, read from stdin or asked for; one line break at its end is dropped.
    Set {
        #[command(flatten)]
        entry: Entry,
        /// Name the program uses in secret("NAME").
        #[arg(value_name = "NAME")]
        name: SecretName,
    },
    /// List the names that have a value; values are never printed.
    List {
        #[command(flatten)]
        entry: Recorded,
    },
    /// Remove a value.
    Rm {
        #[command(flatten)]
        entry: Recorded,
        /// Name of the secret.
        #[arg(value_name = "NAME")]
        name: SecretName,
    },
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct State {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List the records of a deployment.
    List {
        #[command(flatten)]
        entry: Recorded,
    },
    /// Show what is recorded of one resource.
    Show {
        #[command(flatten)]
        entry: Recorded,
        /// Id of the resource.
        #[arg(value_name = "ID")]
        id: ResourceId,
    },
    /// Forget a resource without deleting it at its provider.
    Rm {
        #[command(flatten)]
        entry: Recorded,
        /// Id of the resource.
        #[arg(value_name = "ID")]
        id: ResourceId,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct Hold {
    #[command(subcommand)]
    pub command: HoldCommand,
}

#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Say who holds a deployment, since when, from where.
    Show {
        #[command(flatten)]
        entry: Recorded,
    },
    /// Clear the hold of a run that is known to be over.
    Clear {
        #[command(flatten)]
        entry: Recorded,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("answer").required(true).args(["created", "absent"])))]
pub struct Resolve {
    #[command(flatten)]
    pub entry: Recorded,
    /// Id of the resource whose create has no known outcome.
    #[arg(value_name = "ID")]
    pub id: ResourceId,
    /// It was created, under this key.
    #[arg(long, value_name = "KEY")]
    pub created: Option<String>,
    /// It was not created.
    #[arg(long)]
    pub absent: bool,
}

#[derive(Debug, Args)]
pub struct Graph {
    #[command(flatten)]
    pub entry: Entry,
    /// How to draw it.
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub format: GraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Text for Markdown documents.
    Mermaid,
    /// Text for Graphviz.
    Dot,
    /// A picture.
    Svg,
}

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct Sim {
    #[command(subcommand)]
    pub command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Print the live objects.
    Dump,
    /// Empty it: objects, call log and faults.
    Reset,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(Debug, Args)]
pub struct Help {
    /// A command (`deploy`, `secret set`) or an error code (`plan::unbreakable_loop`).
    #[arg(value_name = "TOPIC", num_args = 0..)]
    pub topic: Vec<String>,
}
