//! The log of a running host: lines on stderr, which often is a file on the disk that the host
//! stores on. What cannot be written there is left out; a host with a full disk goes on.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::Mutex,
};

use crate::args::LogFormat;

/// Sends what is traced to stderr from here on.
pub fn to_stderr(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would be told on stderr, by a macro that panics when that cannot be written.
        .log_internal_errors(false)
        .with_writer(Mutex::new(Lines::to(io::stderr())));
    // A second subscriber cannot be set; there is none before this one.
    let _ = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Takes whole lines. One that was written in part is ended before the next begins, so that no
/// two are ever mixed.
struct Lines<W> {
    to: W,
    torn: bool,
}

impl<W: Write> Lines<W> {
    fn to(to: W) -> Lines<W> {
        Lines { to, torn: false }
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.to.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.torn = true;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.torn = false;
        Ok(())
    }
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.torn {
            self.put(b"\n")?;
        }
        self.put(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes.
    struct Disk {
        has: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.has.len());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.has.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_did_not_fit_is_ended_before_the_next() {
        let disk = Disk {
            has: Vec::new(),
            room: 9,
        };
        let mut lines = Lines::to(disk);
        lines.write_all(b"first\n").unwrap();
        assert!(lines.write_all(b"second\n").is_err());
        assert!(lines.write_all(b"third\n").is_err());
        lines.to.room = 100;
        lines.write_all(b"fourth\n").unwrap();
        lines.write_all(b"fifth\n").unwrap();
        let has = String::from_utf8(lines.to.has).unwrap();
        assert_eq!(has, "first\nsec\nfourth\nfifth\n");
    }
}
