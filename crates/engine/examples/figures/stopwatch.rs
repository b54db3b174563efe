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

/// What doing something five times took, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// The third longest.
    pub median_ms: f64,
    /// The shortest.
    pub least_ms: f64,
    /// Of the processor, over all threads, the third longest. A busy machine does not lengthen it
    /// much, waiting for the disk does not count.
    pub cpu_ms: f64,
}

impl Took {
    /// Of as many times on the wall and of the processor.
    pub fn of(times: &[(f64, f64)]) -> Took {
        let sorted = |of: fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = times.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (walls, cpus) = (sorted(|time| time.0), sorted(|time| time.1));
        Took {
            median_ms: walls[times.len() / 2],
            least_ms: walls[0],
            cpu_ms: cpus[times.len() / 2],
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

    /// By how much more of the processor's time this took: what pure work on one thread takes
    /// where nobody takes the processor away. On a busy machine whatever is longer than a slice of
    /// time waits for its turn, and what is shorter does not.
    pub fn work_over(&self, less: &Took) -> f64 {
        self.cpu_ms / less.cpu_ms
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

/// Does something; milliseconds on the wall and of the processor, and what it gave. It begins with
/// cold caches, as a command does that plans once: what is small enough to stay in them must not
/// look cheap.
pub async fn once<T>(
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<((f64, f64), T), Failure> {
    let mut other = vec![0u64; CACHES];
    for word in other.iter_mut().step_by(LINE) {
        *word += 1;
    }
    black_box(&other);
    let (wall, before) = (Instant::now(), cpu_time());
    let gave = work().await?;
    let cpu = cpu_time().saturating_sub(before);
    Ok(((ms(wall.elapsed()), ms(cpu)), gave))
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
