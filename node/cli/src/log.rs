//! The log on standard error: its form is chosen at the start, and what it tells may change while the program runs.

use std::{
    ffi::OsStr,
    io::{self, BufWriter, IsTerminal, Write},
    thread,
    time::Duration,
};

use farthing_config::LOG_FILTER;
use farthing_shared::call_ends::ACCESS;
use parking_lot::Mutex;
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{
        self, FmtContext, FormatEvent, FormatFields,
        format::Writer,
        writer::{BoxMakeWriter, MakeWriterExt},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    reload::{self, Handle},
    util::SubscriberInitExt,
};

use super::args::{Cli, Command, LogFormat};

/// The most lines about calls that wait for whoever reads the log, of some 400 bytes each.
const CALLS_WAITING_MAX: usize = 4096;
/// Bytes of such lines in one write: as much as a pipe takes in one piece, so no line of another writer breaks one of these.
const CALLS_WRITTEN_BYTES: usize = 4096;
/// The time for which such lines gather after each write. To wake their thread costs more than to write a line.
const CALLS_GATHER: Duration = Duration::from_millis(10);

/// The running log.
#[derive(Debug)]
pub struct Log {
    filter: Handle<EnvFilter, Registry>,
    /// The thread that writes the lines about calls, while a node runs. Every call has a line, and no call may wait for
    /// whoever reads the log: a pipe that nobody empties would hold up the node. What finds no place in its queue is left
    /// out. All other lines are few, and written at once.
    calls: Mutex<Option<WorkerGuard>>,
}

impl Log {
    /// Starts the log, filtered by `FARTHING_LOG`; commands other than `run` tell only what went wrong, and with `--json`
    /// as their error alone.
    pub fn start(cli: &Cli) -> Self {
        let runs = matches!(cli.command, Command::Run { .. });
        let default = match cli.command {
            Command::Run { .. } => LOG_FILTER,
            _ if cli.global.json => "off",
            _ => "warn",
        };
        let filter = EnvFilter::try_from_env("FARTHING_LOG").unwrap_or_else(|_| EnvFilter::new(default));
        let (filter, handle) = reload::Layer::new(filter);
        let (calls, guard) = runs.then(on_its_own_thread).unzip();
        // Of a node's log the newest lines are kept, for `farthing logs`; calls have their history.
        let kept = runs.then(|| {
            fmt::layer().json().map_event_format(WithoutCalls).with_writer(farthing_os::log::writer)
        });
        tracing_subscriber::registry()
            .with(filter)
            .with(on_standard_error(cli.global.log_format, calls))
            .with(kept)
            .init();
        Self { filter: handle, calls: Mutex::new(guard) }
    }

    /// Waits a moment until the lines about calls are written: before the process ends or becomes another.
    pub fn flush(&self) {
        drop(self.calls.lock().take());
    }

    /// A log that nobody reads.
    #[cfg(test)]
    pub(super) fn silent() -> Self {
        let (_, filter) = reload::Layer::new(EnvFilter::new("off"));
        Self { filter, calls: Mutex::default() }
    }

    /// Tells what `filter` lets through from now on; one that cannot be read changes nothing.
    pub(super) fn filter(&self, filter: &str) {
        let changed = EnvFilter::try_new(filter)
            .map_err(|error| error.to_string())
            .and_then(|filter| self.filter.reload(filter).map_err(|error| error.to_string()));
        if let Err(error) = changed {
            tracing::warn!(filter, error, "`log.filter` is not valid, so the earlier filter stays in use");
        }
    }
}

/// Lines in the form of another, but for those about calls. A filter of the layer would do the same and lose others: its
/// verdict on a question whether calls are logged is taken for that on the next line.
struct WithoutCalls<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithoutCalls<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        line: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        if event.metadata().target() == ACCESS {
            return Ok(());
        }
        self.0.format_event(context, line, event)
    }
}

/// A writer that waits for nobody, and its thread, which writes all lines that wait at once.
fn on_its_own_thread() -> (NonBlocking, WorkerGuard) {
    let calls = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(CALLS_WAITING_MAX);
    let written = BufWriter::with_capacity(CALLS_WRITTEN_BYTES, io::stderr());
    calls.thread_name("log").finish(Gathering(written))
}

/// A writer that takes what came meanwhile a moment after each flush, which the thread asks for when nothing waits.
struct Gathering<W>(W);

impl<W: Write> Write for Gathering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        thread::sleep(CALLS_GATHER);
        flushed
    }
}

/// Lines about calls go to `calls`, where there is such a writer.
fn on_standard_error<S>(format: LogFormat, calls: Option<NonBlocking>) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let writer = match calls {
        Some(calls) => {
            BoxMakeWriter::new(calls.with_filter(|line| line.target() == ACCESS).or_else(io::stderr))
        }
        None => BoxMakeWriter::new(io::stderr),
    };
    let lines = fmt::layer()
        .with_writer(writer)
        // A log that cannot be written, say on a full disk, must not end the task that wrote to it.
        .log_internal_errors(false)
        .with_ansi(is_coloured(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref()));
    match format {
        LogFormat::Text => Box::new(lines.with_target(false)),
        LogFormat::Json => Box::new(lines.json()),
    }
}

/// Tells whether the log has colours: on a terminal whose user has not said otherwise (no-color.org).
fn is_coloured(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

#[cfg(test)]
mod tests {
    use farthing_control::types::LogLevel;

    use super::*;

    #[test]
    fn the_reference_has_what_is_logged_unless_said_otherwise() {
        let document = include_str!("../../../docs/logs.md");
        assert!(document.contains(&format!("\n`{LOG_FILTER}`\n")), "docs/logs.md lacks {LOG_FILTER}");
        for level in LogLevel::ALL {
            assert!(document.contains(&format!("\n| `{level}` | ")), "docs/logs.md lacks the level {level}");
        }
    }

    #[test]
    fn of_what_libraries_write_by_the_other_crate_errors_alone_are_built_in() {
        assert_eq!(::log::STATIC_MAX_LEVEL, ::log::LevelFilter::Error);
    }

    #[test]
    fn a_log_has_colours_on_a_terminal_unless_they_are_refused() {
        for (is_terminal, no_color, coloured) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (true, Some("0"), false),
            (false, None, false),
        ] {
            assert_eq!(is_coloured(is_terminal, no_color.map(OsStr::new)), coloured, "{no_color:?}");
        }
    }
}
