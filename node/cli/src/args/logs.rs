//! Arguments of `farthing logs`.

use clap::Args;
use farthing_control::types::LogLevel;

#[derive(Debug, Args)]
pub struct Logs {
    /// Go on with new lines as they come, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines of this weight and heavier ones: error, warn, info, debug or trace
    #[arg(long)]
    pub level: Option<LogLevel>,
    /// Lines to begin with, the newest there are
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 200)]
    pub lines: u32,
}
