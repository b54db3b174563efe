//! Time, on the wall and of the processor.

use std::time::{Duration, Instant};

use crate::Failure;

/// How often something is timed.
const TIMES: usize = 5;

/// What doing something five times took, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// The third longest.
    pub median_ms: f64,
    /// The shortest.
    pub least_ms: f64,
    /// Of the processor, over all threads, on average. A busy machine does not lengthen it much,
    /// waiting for the disk does not count.
    pub cpu_ms: f64,
}

impl Took {
    /// Everything that is not the median.
    pub fn note(&self) -> String {
        format!("least {:.1} ms, cpu {:.1} ms", self.least_ms, self.cpu_ms)
    }

    /// By how much more this took. By the processor's time where both are pure work.
    pub fn over(&self, less: &Took) -> f64 {
        self.median_ms / less.median_ms
    }
}

/// Does something five times; also what it gave the last time.
pub async fn timed<T>(
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<(Took, T), Failure> {
    let mut walls = Vec::with_capacity(TIMES);
    let mut last = None;
    let before_ms = cpu_ms()?;
    for _ in 0..TIMES {
        drop(last.take());
        let wall = Instant::now();
        last = Some(work().await?);
        walls.push(ms(wall.elapsed()));
    }
    walls.sort_by(f64::total_cmp);
    let took = Took {
        median_ms: walls[TIMES / 2],
        least_ms: walls[0],
        cpu_ms: (cpu_ms()? - before_ms) / TIMES as f64,
    };
    Ok((took, last.ok_or("nothing was timed")?))
}

/// Milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Processor time of this process so far, threads that ended included. The system counts in
/// hundredths of a second.
fn cpu_ms() -> Result<f64, Failure> {
    const TICK_MS: f64 = 10.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program stands in brackets and may hold anything.
    let (_, numbers) = stat.rsplit_once(')').ok_or("an odd /proc/self/stat")?;
    let ticks = numbers.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() * TICK_MS)
}
