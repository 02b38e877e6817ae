//! Streams between the two nodes: a message there, its reply back, and a connection that may break in between.

use std::time::Duration;

use farthing_protocol::{CallId, CallMessage, CallReply};

/// A stream that does not deliver its head within this time is given up by the owner's node.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// What came back on a stream.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a handful is under way at once")]
pub enum Brought {
    Reply(CallReply),
    /// The stream broke; its message may have arrived.
    Lost,
    /// No stream was to be had.
    NotSent,
}

#[derive(Clone, Debug)]
pub struct Stream {
    pub number: u64,
    pub call_id: CallId,
    pub message: CallMessage,
    pub has_arrived: bool,
    pub reply: Option<CallReply>,
    /// Nobody listens any more.
    pub is_given_up: bool,
    /// Since the stream broke, its message may arrive until then.
    until: Option<Duration>,
}

/// All streams that may still bring something.
#[derive(Debug, Default)]
pub struct Wire {
    pub streams: Vec<Stream>,
    last: u64,
}

impl Wire {
    pub fn send(&mut self, call_id: CallId, message: CallMessage) -> u64 {
        self.last += 1;
        let (number, reply) = (self.last, None);
        let stream =
            Stream { number, call_id, message, has_arrived: false, reply, is_given_up: false, until: None };
        self.streams.push(stream);
        number
    }

    /// Forgets streams that bring nothing any more.
    pub fn sweep(&mut self, now: Duration) {
        let may_arrive =
            |stream: &Stream| !stream.has_arrived && stream.until.is_none_or(|until| now < until);
        self.streams.retain(|stream| !stream.is_given_up || may_arrive(stream));
    }

    pub fn stream(&mut self, number: u64) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.number == number)
    }

    pub fn give_up(&mut self, number: u64, now: Duration) {
        if let Some(stream) = self.stream(number) {
            stream.give_up(now);
        }
    }

    /// The process at the near end died.
    pub fn break_all(&mut self, now: Duration) {
        self.streams.iter_mut().for_each(|stream| stream.give_up(now));
    }

    /// The process at the far end died: nothing more arrives on these streams, in either direction.
    pub fn die(&mut self) {
        for stream in &mut self.streams {
            stream.has_arrived = true;
            stream.reply = None;
        }
    }
}

impl Stream {
    fn give_up(&mut self, now: Duration) {
        self.is_given_up = true;
        self.until.get_or_insert(now + HEAD_WITHIN);
    }
}
