//! Services of the machine that the program runs on: the wall clock ([`clock`]), a container that it may have to itself
//! ([`container`]), the names of a data folder's files ([`file_names`]), files that nobody else reads ([`files`]), an end like a power cut ([`killpoint`]), a data folder that one
//! process holds ([`lock`]), the newest lines of the log ([`mod@log`]), memory to itself ([`process`]), text that is wiped
//! and never shown ([`secret`]), paths in commands to paste ([`shell`]), and sockets that only chosen users can connect to
//! ([`socket`]).

pub mod clock;
pub mod container;
pub mod file_names;
pub mod files;
pub mod killpoint;
pub mod lock;
pub mod log;
pub mod process;
pub mod secret;
pub mod shell;
pub mod socket;
