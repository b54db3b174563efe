//! Time, on the wall and of the processor.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// How often something is timed.
pub const TIMES: usize = 5;
/// More than the caches of any processor this is run on hold: 64 MiB of words.
const CACHES: usize = 8 << 20;
/// Words of a line of a cache.
const LINE: usize = 8;

/// What doing something once took.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Milliseconds on the wall.
    pub wall_ms: f64,
    /// Milliseconds of the processor, over all threads.
    pub cpu_ms: f64,
}

impl Time {
    pub fn wall(&self) -> f64 {
        self.wall_ms
    }

    pub fn cpu(&self) -> f64 {
        self.cpu_ms
    }
}

/// The one in the middle; of an even number the greater of the two.
pub fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What doing something some times took, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// The median.
    pub median_ms: f64,
    /// The shortest.
    pub least_ms: f64,
    /// Of the processor, over all threads, the median. A busy machine does not lengthen it
    /// much, waiting for the disk does not count.
    pub cpu_ms: f64,
}

impl Took {
    /// Of as many times.
    pub fn of(times: &[Time]) -> Took {
        let least = times.iter().map(Time::wall).min_by(f64::total_cmp);
        Took {
            median_ms: median(times.iter().map(Time::wall)),
            least_ms: least.unwrap_or(f64::NAN),
            cpu_ms: median(times.iter().map(Time::cpu)),
        }
    }

    /// Everything that is not the median.
    pub fn note(&self) -> String {
        format!("least {:.1} ms, cpu {:.1} ms", self.least_ms, self.cpu_ms)
    }

    /// By how much more this took.
    pub fn over(&self, less: &Took) -> f64 {
        self.median_ms / less.median_ms
    }
}

/// Does something five times; also what it gave the last time.
pub async fn timed<T>(
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<(Took, T), Failure> {
    let mut times = Vec::with_capacity(TIMES);
    let mut last = None;
    for _ in 0..TIMES {
        drop(last.take());
        let (time, gave) = once(&mut work).await?;
        times.push(time);
        last = Some(gave);
    }
    Ok((Took::of(&times), last.ok_or("nothing was timed")?))
}

/// Does something; what it took, and what it gave. It begins with
/// cold caches, as a command does that plans once: what is small enough to stay in them must not
/// look cheap.
pub async fn once<T>(
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<(Time, T), Failure> {
    let mut other = vec![0u64; CACHES];
    for word in other.iter_mut().step_by(LINE) {
        *word += 1;
    }
    black_box(&other);
    let (wall, before) = (Instant::now(), cpu_time());
    let gave = work().await?;
    let cpu = cpu_time().saturating_sub(before);
    let time = Time {
        wall_ms: ms(wall.elapsed()),
        cpu_ms: ms(cpu),
    };
    Ok((time, gave))
}

/// Milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Processor time of this process so far, threads that ended included.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
