//! Time, on the wall and of the processor.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// How often something is timed.
const TIMES: usize = 5;
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

/// Does something five times; also what it gave the last time. Each time begins with cold caches,
/// as a command does that plans once: what is small enough to stay in them must not look cheap.
pub async fn timed<T>(
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<(Took, T), Failure> {
    let mut walls = Vec::with_capacity(TIMES);
    let mut last = None;
    let mut cpus = Vec::with_capacity(TIMES);
    let mut other = vec![0u64; CACHES];
    for _ in 0..TIMES {
        drop(last.take());
        for word in other.iter_mut().step_by(LINE) {
            *word += 1;
        }
        black_box(&other);
        let (wall, before) = (Instant::now(), cpu_time());
        last = Some(work().await?);
        walls.push(ms(wall.elapsed()));
        cpus.push(ms(cpu_time().saturating_sub(before)));
    }
    walls.sort_by(f64::total_cmp);
    cpus.sort_by(f64::total_cmp);
    let took = Took {
        median_ms: walls[TIMES / 2],
        least_ms: walls[0],
        cpu_ms: cpus[TIMES / 2],
    };
    Ok((took, last.ok_or("nothing was timed")?))
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
