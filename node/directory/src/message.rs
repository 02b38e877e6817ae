//! The inputs of the machine, and its outputs.

use std::time::Duration;

use crate::{
    Contact, Failure, Key,
    records::{RecordRefusal, Untrue, VerifiedRecord},
    wire::{Name, Request, Response},
};

/// The time, as the driver's clocks show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since any moment, always forward: pauses and deadlines.
    pub since: Duration,
    /// Of the wall clock: what records say of their time.
    pub unix_secs: u64,
}

/// A command of the driver's, by a number that it chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A request of a peer's, by a number that the driver chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A job of the machine's: a command, or something that it wants itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum JobId {
    Command(CommandId),
    Own(u64),
}

/// A question to a peer, by which its answer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId {
    pub(crate) job: JobId,
    pub(crate) number: u32,
}

impl AskId {
    /// Returns the command that the question is for; none if the machine wants to know for itself.
    pub const fn command(self) -> Option<CommandId> {
        match self.job {
            JobId::Command(id) => Some(id),
            JobId::Own(_) => None,
        }
    }
}

/// Something that happened, or that somebody wants.
#[derive(Debug)]
pub enum Input<D> {
    /// A peer of this network that speaks the directory's protocol is connected.
    Connected(Contact),
    /// Its last connection is closed.
    Disconnected(Key),
    /// A peer answered.
    Answer(AskId, Response),
    /// It did not.
    Failed(AskId, Failure),
    /// A connected peer asks.
    Request(Token, Contact, Request),
    /// Find the newest record.
    Find(CommandId, Name),
    /// Give a record of ours to those nearest to it.
    Put(CommandId, VerifiedRecord<D>),
    /// A record arrived in another way, from this peer.
    Told(Key, VerifiedRecord<D>),
    /// The driver has what it needs of a command.
    Stop(CommandId),
    /// Look around in all parts of the routing table: hourly, and after the machine slept.
    Refresh,
    /// Time has passed; see [`Output::Wake`].
    Tick,
}

/// Something for the driver to do or to know.
#[derive(Debug)]
pub enum Output<D> {
    /// Ask a peer, which is dialled first if it is not connected, and tell the outcome before `deadline`, after which the
    /// machine counts it as [`Failure::TimedOut`] by itself.
    Ask {
        /// To name the outcome by.
        id: AskId,
        /// The peer, and its addresses.
        contact: Contact,
        /// The question.
        request: Request,
        /// Until when the answer counts.
        deadline: Duration,
    },
    /// The answer is not needed any more; a dial for it may end.
    Abandon(AskId),
    /// Answer a peer's request.
    Reply(Token, Response),
    /// Close a peer's request without an answer.
    Refuse(Token),
    /// A record newer than any before, the one that is known first: dial by it if it is alive. It says that its node has left if
    /// it has expired.
    Found(CommandId, VerifiedRecord<D>),
    /// A command is over.
    Done {
        id: CommandId,
        /// Its end.
        outcome: Outcome,
        /// Peers that were asked for it.
        questions: u32,
    },
    /// A record came from a peer, and was kept or not: its owner is there either way.
    Heard {
        record: VerifiedRecord<D>,
        /// The peer that gave it.
        source: Key,
        /// The reason that it is not kept, if it is not.
        kept: Result<(), RecordRefusal>,
    },
    /// A peer gave something as a record that is none.
    Misbehaved(Key, Untrue),
    /// Tick at this time, unless something happens before.
    Wake(Duration),
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The record was found, and told by [`Output::Found`].
    Found,
    /// Most of those nearest to the name said that they have none.
    Absent,
    /// Too few answered to say.
    Undecided,
    /// So many of the nearest verified the record and keep it: as many as are to.
    Placed {
        /// Their number.
        holders: usize,
    },
    /// Fewer took it.
    PartlyPlaced {
        /// Their number.
        holders: usize,
        /// The number of those who are to: all who are there, or [`K`](crate::K) where that is not known.
        wanted: usize,
    },
    /// Too many commands are under way, or one of this number is.
    Busy,
    /// By [`Input::Stop`].
    Stopped,
}
