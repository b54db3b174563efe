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
    let mut times = Times::new();
    let mut last = None;
    for _ in 0..TIMES {
        drop(last.take());
        let begun = times.begin();
        last = Some(work().await?);
        times.end(begun);
    }
    Ok((times.took(), last.ok_or("nothing was timed")?))
}

/// Does two things five times in turn, so that whatever else the machine does falls on both.
pub fn timed_in_turn<T>(
    mut works: [&mut dyn FnMut() -> Result<T, Failure>; 2],
) -> Result<[Took; 2], Failure> {
    let mut times = [Times::new(), Times::new()];
    for _ in 0..TIMES {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let begun = times.begin();
            let given = work()?;
            times.end(begun);
            drop(given);
        }
    }
    Ok(times.map(|times| times.took()))
}

/// What doing something took, each time.
struct Times {
    walls: Vec<f64>,
    cpus: Vec<f64>,
    /// Fills the caches with something else.
    other: Vec<u64>,
}

impl Times {
    fn new() -> Times {
        Times {
            walls: Vec::with_capacity(TIMES),
            cpus: Vec::with_capacity(TIMES),
            other: vec![0; CACHES],
        }
    }

    fn begin(&mut self) -> (Instant, Duration) {
        for word in self.other.iter_mut().step_by(LINE) {
            *word += 1;
        }
        black_box(&self.other);
        (Instant::now(), cpu_time())
    }

    fn end(&mut self, (wall, cpu): (Instant, Duration)) {
        self.walls.push(ms(wall.elapsed()));
        self.cpus.push(ms(cpu_time().saturating_sub(cpu)));
    }

    fn took(mut self) -> Took {
        self.walls.sort_by(f64::total_cmp);
        self.cpus.sort_by(f64::total_cmp);
        Took {
            median_ms: self.walls[TIMES / 2],
            least_ms: self.walls[0],
            cpu_ms: self.cpus[TIMES / 2],
        }
    }
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
