//! The thread that starts processes.
//!
//! A worker process must not outlive the host. Linux delivers the signal that ensures it
//! when the *thread* that started the process ends, so all processes are started by one
//! thread that lives as long as the runtime does, never by a pool thread that may retire.

use std::io;

use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use crate::sweep::Marks;

struct Order {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Handle of the thread. The thread ends, and with it every process, when the last handle
/// is dropped.
#[derive(Clone)]
pub(crate) struct Spawner {
    orders: mpsc::UnboundedSender<Order>,
    marks: Marks,
}

impl Spawner {
    /// Starts the thread. Must be called within an async runtime.
    pub(crate) fn start(marks: Marks) -> io::Result<Spawner> {
        let (orders, mut queue) = mpsc::unbounded_channel::<Order>();
        let handle = tokio::runtime::Handle::current();
        std::thread::Builder::new()
            .name("worker-spawner".into())
            .spawn(move || {
                let _entered = handle.enter();
                while let Some(Order { mut command, reply }) = queue.blocking_recv() {
                    bind_to_this_thread(&mut command);
                    // A caller that gave up drops the child, which kills it.
                    let _ = reply.send(command.spawn());
                }
            })?;
        Ok(Spawner { orders, marks })
    }

    /// Starts a process that ends when the host ends, in whatever way.
    pub(crate) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, child) = oneshot::channel();
        let gone = || {
            io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the thread that starts processes has ended",
            )
        };
        self.orders
            .send(Order { command, reply })
            .map_err(|_| gone())?;
        let child = child.await.map_err(|_| gone())??;
        child.id().into_iter().for_each(|pid| self.marks.mark(pid));
        Ok(child)
    }

    /// A process of this spawner has ended.
    pub(crate) fn buried(&self, pid: u32) {
        self.marks.unmark(pid);
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "settings a child makes between fork and exec")]
fn bind_to_this_thread(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let host = getpid();
    let settings = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
        // The host may have ended before the signal was set.
        if getppid() == Some(host) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: the closure makes four system calls and touches no memory of other threads.
    unsafe { command.pre_exec(settings) };
}

/// Elsewhere only the sweep at the next start removes processes of a killed host.
#[cfg(not(target_os = "linux"))]
fn bind_to_this_thread(_: &mut Command) {}
