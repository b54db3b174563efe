//! Two workers that are bound to each other, deployed to the simulated cloud without the command
//! line: `cargo run -p notation-engine --example pair`.
#![allow(clippy::print_stdout, reason = "an example speaks for itself")]

use std::{error::Error, sync::Arc};

use notation_engine::{EngineEvent, EventSink, RunOptions, Session, deploy, destroy, plan};
use notation_model::{
    Contribution, Desired, DesiredGraph, Expr, Map, Marks, Origin, OutputRef, Segment,
};
use notation_provider::Registry;
use notation_provider_sim::SimProvider;
use notation_state::{KeySource, SqliteStore};

/// Tells of every step that ended.
struct Narrator;

impl EventSink for Narrator {
    fn event(&self, event: &EngineEvent) {
        if let EngineEvent::StepDone(step) = event {
            println!("  {} {:?}", step.key, step.transition);
        }
    }
}

/// A worker that is bound to another one.
fn worker(id: &str, peer: &str) -> Result<Desired, Box<dyn Error>> {
    let name = OutputRef {
        resource: peer.parse()?,
        path: [Segment::Key("Name".into())].into(),
    };
    let binding = Map::from([
        ("type".to_owned(), Expr::from("service")),
        ("service".to_owned(), Expr::Output(name)),
    ]);
    Ok(Desired {
        id: id.parse()?,
        ty: "sim/Worker".parse()?,
        config: Map::new(),
        contributions: vec![Contribution {
            field: "bindings".into(),
            value: Expr::Map(binding),
            origin: Origin::default(),
        }],
        depend_on: Vec::new(),
        marks: Marks::default(),
        formerly: Vec::new(),
        origin: Origin::default(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(
        folder.path().join("state.db"),
        KeySource::File(folder.path().join("key")),
    );
    let cloud = SimProvider::open(folder.path().join("cloud"));
    let mut session = Session::new(
        "shop:dev:main".parse()?,
        Arc::new(store),
        Registry::new(vec![Arc::new(cloud)])?,
    );
    session.sink = Arc::new(Narrator);

    let mut desired = DesiredGraph::default();
    for resource in [worker("a", "b")?, worker("b", "a")?] {
        desired.resources.insert(resource.id.clone(), resource);
    }
    let desired = Arc::new(desired);
    let options = RunOptions::default();

    println!("planned:");
    for step in plan(&session, &desired, &options).await?.plan.steps {
        println!("  {} {:?}", step.key, step.forecast.transition);
    }
    println!("deployed:");
    deploy(&session, desired, &options).await?;
    println!("destroyed:");
    destroy(&session, &options).await?;
    Ok(())
}
