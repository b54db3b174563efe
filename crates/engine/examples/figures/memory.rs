//! The most memory that a process needs for one plan: measured in a process of its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use notation_engine::plan;

use crate::{
    Failure,
    deployment::{options, session, store},
    figure::{Figure, Target},
    free::Free,
    programs::{Program, Shape},
};

/// First argument of the process of its own.
pub const CHILD: &str = "--plan-once";

/// Peak memory of planning a program that is deployed as the folder says.
pub fn figure(program: Program, folder: &Path) -> Result<Figure, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .arg(program.shape.to_string())
        .arg(program.count.to_string())
        .arg(folder)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(peak_kb)), Some(Ok(graph_kb))) = (numbers.next(), numbers.next()) else {
        return Err(format!("{CHILD} printed {text:?}").into());
    };
    Ok(Figure {
        name: format!("peak memory of the plan of {program}"),
        value: (peak_kb / 1000.0).round(),
        unit: "MB",
        target: Target::Under(400.0),
        note: format!(
            "of it {:.0} MB before planning: the program's graph",
            graph_kb / 1000.0
        ),
    })
}

/// The process of its own: plans once, prints its peak memory and that before planning, in
/// thousands of bytes.
pub async fn child(arguments: &[String]) -> Result<(), Failure> {
    let [shape, count, folder] = arguments else {
        return Err(format!("{CHILD} SHAPE COUNT FOLDER").into());
    };
    let shape = Shape::named(shape).ok_or("no such shape")?;
    let graph = Program::new(shape, count.parse()?).graph()?;
    let before_kb = peak_kb()?;
    let store = store(&PathBuf::from(folder));
    let session = session(store, Arc::new(Free::default()))?;
    let planned = plan(&session, &graph, &options()).await?;
    if !planned.plan.steps.is_empty() {
        return Err("there is something to do".into());
    }
    println!("{} {before_kb}", peak_kb()?);
    Ok(())
}

/// The most memory that this process ever had in use, in thousands of bytes.
fn peak_kb() -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
        .ok_or("the system does not tell the peak memory of a process")?;
    Ok(kib.trim().parse::<f64>()? * 1.024)
}
