//! Two sizes of the same work, ten times apart, each in a process of its own and in turn.
//!
//! A machine that many share is half as fast again from one second to the next, and one of its
//! processors than the other, which is more than what is to be told apart here. So both run on the
//! same processor, a round times the large one amid ten small ones, which is as much work, and it
//! counts only when those before it and those after it agree.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{
    Failure,
    stopwatch::{TIMES, Time, Took, median, once},
};

/// Small ones before the large one of a round, and as many after it.
const A_SIDE: usize = 5;
/// By how much those before and those after may differ.
const STEADY: f64 = 1.2;
/// Rounds that are tried for five that count.
const MOST_ROUNDS: usize = 20;

/// A process that does work of one size whenever it is asked to.
pub struct Worker {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// This program with these arguments.
    pub fn start(arguments: &[&str]) -> Result<Worker, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = on_one_processor(|| command.spawn())??;
        let ask = process.stdin.take().ok_or("it has no stdin")?;
        let answers = BufReader::new(process.stdout.take().ok_or("it has no stdout")?);
        Ok(Worker {
            process,
            ask,
            answers,
        })
    }

    /// What a piece of work took.
    pub fn time(&mut self, work: &str) -> Result<Time, Failure> {
        writeln!(self.ask, "{work}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(wall_ms)), Some(Ok(cpu_ms))) => Ok(Time { wall_ms, cpu_ms }),
            _ => Err(format!("a process asked for {work:?} answered {line:?}").into()),
        }
    }

    pub fn end(self) -> Result<(), Failure> {
        let Worker {
            mut process, ask, ..
        } = self;
        drop(ask);
        match process.wait()?.success() {
            true => Ok(()),
            false => Err("a process that was timed failed".into()),
        }
    }
}

/// Does something on the last processor of those that this thread may use; processes that it
/// starts stay there.
fn on_one_processor<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    let all = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| all.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(last.ok_or("this thread may use no processor")?);
    sched_setaffinity(None, &one)?;
    let done = work();
    sched_setaffinity(None, &all)?;
    Ok(done)
}

/// The process of a size: does what each line of stdin names, and prints what it took.
pub async fn serve<T>(
    mut work: impl AsyncFnMut(&str) -> Result<T, Failure>,
) -> Result<(), Failure> {
    for line in std::io::stdin().lines() {
        let line = line?;
        let (Time { wall_ms, cpu_ms }, _) = once(async || work(&line).await).await?;
        println!("{wall_ms} {cpu_ms}");
    }
    Ok(())
}

/// How work grew, over the rounds that count.
pub struct Growth {
    /// Of the small one.
    pub less: Took,
    /// Of the large one.
    pub more: Took,
    /// By how much more the large one took on the wall, the median of the rounds.
    pub wall: f64,
    /// By how much more it took of the processor's time.
    pub cpu: f64,
    /// How the rounds went, for people.
    pub rounds: String,
}

/// Times the same work of both.
pub fn in_turn(small: &mut Worker, large: &mut Worker, work: &str) -> Result<Growth, Failure> {
    let mut steady = Vec::new();
    let mut others = Vec::new();
    while steady.len() < TIMES && steady.len() + others.len() < MOST_ROUNDS {
        let round = Round {
            before: small_ones(small, work)?,
            large: large.time(work)?,
            after: small_ones(small, work)?,
        };
        match round.is_steady() {
            true => steady.push(round),
            false => others.push(round),
        }
    }
    let tried = steady.len() + others.len();
    let rounds = format!("{} of {tried} rounds steady", steady.len());
    if steady.len() < TIMES {
        steady.append(&mut others);
    }
    let small: Vec<Time> = steady.iter().flat_map(Round::small).collect();
    let large: Vec<Time> = steady.iter().map(|round| round.large).collect();
    let growth = |of: fn(&Time) -> f64| median(steady.iter().map(|round| round.growth(of)));
    Ok(Growth {
        less: Took::of(&small),
        more: Took::of(&large),
        wall: growth(Time::wall),
        cpu: growth(Time::cpu),
        rounds,
    })
}

fn small_ones(small: &mut Worker, work: &str) -> Result<Vec<Time>, Failure> {
    (0..A_SIDE).map(|_| small.time(work)).collect()
}

struct Round {
    before: Vec<Time>,
    large: Time,
    after: Vec<Time>,
}

impl Round {
    fn is_steady(&self) -> bool {
        let one = median(self.before.iter().map(Time::cpu));
        let other = median(self.after.iter().map(Time::cpu));
        one.max(other) <= STEADY * one.min(other)
    }

    fn small(&self) -> impl Iterator<Item = Time> {
        self.before.iter().chain(&self.after).copied()
    }

    fn growth(&self, of: fn(&Time) -> f64) -> f64 {
        of(&self.large) / median(self.small().map(|time| of(&time)))
    }
}
