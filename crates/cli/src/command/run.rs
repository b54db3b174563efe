//! The road that plan, deploy and destroy share: program, session, plan, run, report.

use std::{collections::BTreeMap, sync::Arc};

use notation_engine::{
    DriftCheck, EngineError, HoldWait, OnFailure, Report, RunOptions, RunStatus, Session, Started,
};
use notation_model::{Asset, DeploymentId, DesiredGraph, Origin, TypeName};
use notation_planner::{Plan, PlanOptions, Subject, Transition};
use notation_program::{Limits, ProjectConfig, evaluate};
use notation_provider::Assets;

use crate::{
    advice::spelled,
    args::Shaping,
    consent::{Consent, refused},
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, Outcome, Plain, Problem},
    interrupt, neighbours,
    printer::Printer,
    progress::Teller,
    render::{
        outputs::{self, Sensitive},
        plan_json,
        plan_text::{self, Details, Layout, Purpose, Shown},
        report,
        transition::verb,
    },
    saved_plan::SavedPlan,
    session::{self, Wiring},
};

/// What a program asks for.
pub struct Wanted {
    /// The graph; empty to destroy.
    pub graph: Arc<DesiredGraph>,
    /// Bytes that the graph names.
    pub assets: Arc<Bundled>,
    /// Where the program asks for each secret.
    secrets: BTreeMap<String, Origin>,
}

/// Bytes by digest, as the bundler made them.
#[derive(Debug, Default)]
pub struct Bundled(BTreeMap<String, Arc<[u8]>>);

impl Assets for Bundled {
    fn bytes(&self, asset: &Asset) -> Option<Arc<[u8]>> {
        self.0.get(&asset.digest).cloned()
    }
}

impl Wanted {
    /// What an entry's program asks for.
    pub fn by(
        config: &ProjectConfig,
        deployment: &DeploymentId,
        printer: &Printer,
    ) -> Result<Wanted, Failure> {
        let types = session::types();
        let evaluated = evaluate(config, &deployment.entry, &types, &Limits::default())?;
        evaluated.said.iter().for_each(|line| printer.say(line));
        Ok(Wanted {
            graph: Arc::new(evaluated.graph),
            assets: Arc::new(Bundled(evaluated.assets)),
            secrets: evaluated.secrets,
        })
    }

    /// Nothing: to destroy.
    pub fn nothing() -> Wanted {
        Wanted {
            graph: Arc::default(),
            assets: Arc::default(),
            secrets: BTreeMap::new(),
        }
    }

    /// An engine error with the places of this project and of this program.
    pub fn failure(&self, wiring: &Wiring, error: EngineError) -> Failure {
        let places: Vec<(&Origin, String)> = match &error {
            EngineError::MissingSecrets(names) => names
                .iter()
                .filter_map(|name| self.secrets.get(name.as_str()))
                .map(|origin| (origin, "asked for here".to_owned()))
                .collect(),
            _ => Vec::new(),
        };
        let mut failure = wiring.failure(error);
        if let Some(Problem::Plain(plain)) = failure.problems.first_mut()
            && !places.is_empty()
        {
            plain.place = wiring.spot(&places);
        }
        failure
    }
}

/// The flags as the engine's options.
pub fn options(shaping: &Shaping) -> RunOptions {
    RunOptions {
        drift: if shaping.no_refresh {
            DriftCheck::Skip
        } else {
            DriftCheck::Read
        },
        on_failure: if shaping.fail_fast {
            OnFailure::Stop
        } else {
            OnFailure::KeepGoing
        },
        hold: hold(shaping.no_wait),
        parallelism: shaping.parallelism as usize,
        max_attempts: shaping.max_attempts,
        plan: PlanOptions {
            adopt: shaping.adopt.iter().cloned().collect(),
            replace: shaping.replace.iter().cloned().collect(),
            target: shaping.target.iter().cloned().collect(),
            ..PlanOptions::default()
        },
    }
}

/// `--no-wait`.
pub fn hold(no_wait: bool) -> HoldWait {
    if no_wait {
        HoldWait::GiveUp
    } else {
        HoldWait::Wait
    }
}

/// Fills the session with what a run needs besides the wiring.
pub fn session(wiring: &Wiring, wanted: &Wanted, teller: &Arc<Teller>) -> Session {
    let mut session = Session::new(
        wiring.deployment.clone(),
        wiring.store.clone(),
        wiring.registry.clone(),
    );
    session.sink = teller.clone();
    session.assets = wanted.assets.clone();
    session.machine = session::machine();
    session
}

/// Shows a plan: as the JSON event, and as text by `print`.
pub fn show(shown: Shown<'_>, printer: &Printer, print: impl Fn(&Printer, &str)) {
    printer.event("plan", plan_json::plan(shown));
    if printer.json {
        return;
    }
    let details = match (printer.quiet, printer.verbose) {
        (true, _) => Details::None,
        (false, true) => Details::Full,
        (false, false) => Details::Folded,
    };
    let layout = Layout {
        width: printer.width,
        details,
    };
    print(printer, &plan_text::render(shown, layout));
}

/// Whether a plan has calls of a provider.
pub fn calls(plan: &Plan, shown: Shown<'_>, provider: &str) -> bool {
    plan.steps.iter().any(|step| {
        !matches!(
            step.forecast.transition,
            Transition::None | Transition::Settle
        ) && matches!(step.key.subject, Subject::Incarnation(_))
            && plan_text::type_of(shown, step)
                .and_then(|ty| ty.parse::<TypeName>().ok())
                .is_some_and(|ty| ty.provider() == provider)
    })
}

/// A command that runs a plan.
#[derive(Debug, Clone, Copy)]
pub struct Errand<'a> {
    /// What it is for.
    pub purpose: Purpose,
    /// What was agreed to.
    pub consent: Consent,
    /// The plan that must be run, or none.
    pub saved: Option<&'a SavedPlan>,
}

/// Plans, shows, asks, runs, reports.
pub fn go(
    wiring: &Wiring,
    wanted: &Wanted,
    options: &RunOptions,
    errand: Errand<'_>,
    printer: &Printer,
) -> Outcome {
    let teller = Arc::new(Teller::new(printer));
    let session = session(wiring, wanted, &teller);
    block_on(async {
        wiring.reach_recorded(options).await?;
        listen(&session, &teller);
        let started = notation_engine::begin(&session, wanted.graph.clone(), options)
            .await
            .map_err(|error| wanted.failure(wiring, error))?;
        let verdict = look(&started, wiring, wanted, options, errand, &session, printer).await;
        if let Err(failure) = verdict {
            started
                .give_up()
                .await
                .map_err(|error| wiring.failure(error))?;
            return Err(failure);
        }
        teller.fit(started.plan());
        run(started, wiring, &teller, printer).await
    })
}

/// Shows the plan and asks; brings up what it needs.
async fn look(
    started: &Started,
    wiring: &Wiring,
    wanted: &Wanted,
    options: &RunOptions,
    errand: Errand<'_>,
    session: &Session,
    printer: &Printer,
) -> Result<(), Failure> {
    let planned = started.planned();
    let besides = neighbours::notes(wiring.store.as_ref(), planned, &options.plan.adopt).await?;
    let shown = Shown::of(planned, &besides, errand.purpose);
    let asks = errand.consent == Consent::Ask && shown.anything();
    show(shown, printer, |printer, text| printer.say(text));
    if let Some(saved) = errand.saved {
        let secrets = wiring.store.secret_marks(&wiring.deployment).await?;
        saved.unmoved(shown, &wanted.graph, &secrets)?;
    }
    if asks {
        agree(errand.purpose, session, printer).await?;
    }
    if calls(&planned.plan, shown, "edge") {
        wiring.reach().await?;
    }
    Ok(())
}

async fn run(started: Started, wiring: &Wiring, teller: &Teller, printer: &Printer) -> Outcome {
    let ran = started.run().await;
    teller.finish();
    let report = ran.map_err(|error| wiring.failure(error))?;
    printer.event("report", report::to_json(&report));
    let problems = problems(&report, &wiring.deployment);
    if !problems.is_empty() {
        let failure = Failure {
            exit: Exit::Stopped,
            problems,
        };
        printer.say("");
        failure.tell(printer);
    }
    printer.say("");
    printer.say(report::to_text(&report, printer.width));
    if !report.outputs.is_empty() && report.status == RunStatus::Done {
        printer.out(outputs::to_text(&report.outputs, Sensitive::Hidden));
    }
    wiring.warn_of_host(printer);
    Ok(match report.status {
        RunStatus::Done => Exit::Done,
        RunStatus::Failed => Exit::Stopped,
        RunStatus::Interrupted => Exit::Interrupted,
    })
}

fn problems(report: &Report, deployment: &DeploymentId) -> Vec<Problem> {
    let problem = |step: &notation_engine::FailedStep| {
        Problem::Plain(Plain {
            code: step.error.code(),
            message: format!(
                "{}: {} failed: {}",
                step.resource,
                verb(step.transition),
                step.error
            ),
            help: Some(spelled(&step.error.help(&step.resource), deployment)),
            related: Vec::new(),
            place: None,
        })
    };
    let steps = report.failed.iter().map(problem);
    let unwritten = report
        .not_recorded
        .iter()
        .flat_map(|error| Failure::from(&**error).problems);
    steps.chain(unwritten).collect()
}

/// Passes interrupts on, and says what they do.
fn listen(session: &Session, teller: &Arc<Teller>) {
    let (interrupt, teller) = (session.interrupt.clone(), teller.clone());
    let mut interrupts = interrupt::Interrupts::listen();
    tokio::spawn(async move {
        let words = [
            "interrupted: no new step starts, running calls are waited for (interrupt again to stop waiting)",
            "interrupted again: not waiting any more",
        ];
        for text in words {
            interrupts.next().await;
            interrupt.signal();
            teller.line(text);
        }
    });
}

async fn agree(purpose: Purpose, session: &Session, printer: &Printer) -> Result<(), Failure> {
    if !printer.can_ask() {
        return Err(Failure::needs_yes(purpose.verb()));
    }
    let asked = match purpose {
        Purpose::Deploy => "Deploy",
        Purpose::Destroy => "Destroy",
    };
    let question = format!("{asked} {}?", session.deployment);
    let (send, answer) = tokio::sync::oneshot::channel();
    let asker = *printer;
    // A thread of its own, so that the hold is renewed while a person thinks; it may be left
    // behind at the prompt when an interrupt ends the command.
    std::thread::spawn(move || send.send(asker.ask(&question)));
    tokio::select! {
        said = answer => match said {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(refused("nothing was written")),
        },
        () = until_given(session) => Err(Failure::new(Exit::Interrupted, "run::interrupted", "interrupted; nothing was written")),
    }
}

async fn until_given(session: &Session) {
    // The engine's own waiting is private to it; a look now and then is enough at a prompt.
    while !session.interrupt.is_given() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
