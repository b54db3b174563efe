//! How much a program may take.

use std::time::Duration;

/// Limits of one evaluation.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest time the program may run, bundling not counted.
    pub time: Duration,
    /// Most memory its values may take.
    pub memory_bytes: usize,
    /// Deepest stack of its calls.
    pub stack_bytes: usize,
}

impl Default for Limits {
    /// 10 s, 256 MiB, 2 MiB of stack: a program that needs a fraction of this is unusual.
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(10),
            memory_bytes: 256 * 1024 * 1024,
            stack_bytes: 2 * 1024 * 1024,
        }
    }
}
