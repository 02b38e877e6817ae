//! Frames of `/farthing/<net>/call/2`, and the rules by which the two ends of a stream take turns.
//!
//! A stream carries one call after the other: a request, its reply, the next request. Each frame begins with a
//! [`FrameHead`]; a CBOR head follows, which is that of `call/1`, and the body whose length it names. A reply names its
//! request by number, so that one that nobody waits for is never taken for another's; its last flag says that the
//! answering end takes no further request on this stream, so that none is ever written to an end that has gone by
//! intention. Pure: whoever moves the bytes asks an end what may come next.

use crate::limits;

/// The kinds of frames. Everything but [`Request`](Self::Request) and [`Reply`](Self::Reply) has its number reserved, and is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A `CallMessage` and its body; the asking end's.
    Request = 0,
    /// A `CallReply` and its body; the answering end's.
    Reply = 1,
    /// A piece of an answer that flows.
    Data = 2,
    /// The end of an answer that flows, with its receipt.
    End = 3,
    /// A voucher that covers requests which follow it.
    Voucher = 4,
    /// A signed root over receipts that come with their paths.
    ReceiptRoot = 5,
}

const KINDS: [FrameKind; 6] = [
    FrameKind::Request,
    FrameKind::Reply,
    FrameKind::Data,
    FrameKind::End,
    FrameKind::Voucher,
    FrameKind::ReceiptRoot,
];

/// The beginning of every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: FrameKind,
    /// In a reply: no further request is taken on this stream.
    pub is_last: bool,
    /// Requests of a stream are numbered from 1; a reply has its request's number.
    pub number: u32,
    /// Length of the CBOR head that follows, at most [`limits::CALL_HEAD_BYTES_MAX`].
    pub head_bytes: u32,
}

/// The reason that bytes do not begin a frame that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameHeadError {
    #[error("no frame is of kind {0}")]
    UnknownKind(u8),
    #[error("{0:?} frames are not taken by this version")]
    Reserved(FrameKind),
    #[error("a flag of {0:#010b} is unknown")]
    UnknownFlags(u8),
    #[error("the head has {bytes} bytes, at most {max} are allowed", max = limits::CALL_HEAD_BYTES_MAX)]
    TooLarge { bytes: u32 },
}

/// The only flag.
const LAST: u8 = 1;

impl FrameHead {
    /// Bytes on the wire: kind, flags, number and length, big-endian.
    pub const BYTES: usize = 10;

    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [n0, n1, n2, n3] = self.number.to_be_bytes();
        let [l0, l1, l2, l3] = self.head_bytes.to_be_bytes();
        [self.kind as u8, u8::from(self.is_last) * LAST, n0, n1, n2, n3, l0, l1, l2, l3]
    }

    /// # Errors
    /// [`FrameHeadError`], when this is no frame that is taken.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Result<Self, FrameHeadError> {
        let [kind, flags, n0, n1, n2, n3, l0, l1, l2, l3] = bytes;
        let known = KINDS.into_iter().find(|known| *known as u8 == kind);
        let kind = known.ok_or(FrameHeadError::UnknownKind(kind))?;
        if !matches!(kind, FrameKind::Request | FrameKind::Reply) {
            return Err(FrameHeadError::Reserved(kind));
        }
        if flags & !LAST != 0 {
            return Err(FrameHeadError::UnknownFlags(flags));
        }
        let head_bytes = u32::from_be_bytes([l0, l1, l2, l3]);
        if head_bytes as usize > limits::CALL_HEAD_BYTES_MAX {
            return Err(FrameHeadError::TooLarge { bytes: head_bytes });
        }
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        Ok(Self { kind, is_last: flags == LAST, number, head_bytes })
    }
}

/// A frame that this end does not wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {kind:?} with number {number} came where {expected} was expected")]
pub struct OutOfTurn {
    pub kind: FrameKind,
    pub number: u32,
    pub expected: &'static str,
}

/// The end that asks. Only an end at rest may ask again; any other is dropped with its stream.
#[derive(Clone, Debug, Default)]
pub struct AskingEnd {
    /// The newest request's.
    number: u32,
    turn: AskingTurn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AskingTurn {
    #[default]
    Rest,
    Asked,
    /// The beginning of the reply is there.
    Answered {
        is_last: bool,
    },
    Ended,
}

impl AskingEnd {
    /// Begins a request whose CBOR head has so many bytes. None unless this end is at rest: then the stream is dropped.
    pub fn ask(&mut self, head_bytes: u32) -> Option<FrameHead> {
        let number = self.number.checked_add(1).filter(|_| self.turn == AskingTurn::Rest)?;
        (self.number, self.turn) = (number, AskingTurn::Asked);
        Some(FrameHead { kind: FrameKind::Request, is_last: false, number, head_bytes })
    }

    /// A frame begins.
    ///
    /// # Errors
    /// [`OutOfTurn`] unless it is the reply that is waited for; nothing on this stream is believed any more.
    pub fn reply(&mut self, head: FrameHead) -> Result<(), OutOfTurn> {
        let is_awaited =
            self.turn == AskingTurn::Asked && head.kind == FrameKind::Reply && head.number == self.number;
        self.turn =
            if is_awaited { AskingTurn::Answered { is_last: head.is_last } } else { AskingTurn::Ended };
        let FrameHead { kind, number, .. } = head;
        is_awaited.then_some(()).ok_or(OutOfTurn {
            kind,
            number,
            expected: "the reply to the newest request",
        })
    }

    /// The reply was read to its end. `was_written`: the request was written to its end, too; an answer may come before.
    pub fn end(&mut self, was_written: bool) {
        self.turn = match self.turn {
            AskingTurn::Answered { is_last: false } if was_written => AskingTurn::Rest,
            _ => AskingTurn::Ended,
        };
    }

    pub fn is_at_rest(&self) -> bool {
        self.turn == AskingTurn::Rest
    }
}

/// The end that answers.
#[derive(Clone, Debug, Default)]
pub struct AnsweringEnd {
    number: u32,
    turn: AnsweringTurn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AnsweringTurn {
    #[default]
    Rest,
    Asked,
    Ended,
}

impl AnsweringEnd {
    /// A frame begins.
    ///
    /// # Errors
    /// [`OutOfTurn`] unless it is the next request; the stream is then ended.
    pub fn asked(&mut self, head: FrameHead) -> Result<(), OutOfTurn> {
        let FrameHead { kind, number, .. } = head;
        let is_next = self.turn == AnsweringTurn::Rest
            && kind == FrameKind::Request
            && self.number.checked_add(1) == Some(number);
        // A refusal names what it refuses.
        (self.number, self.turn) = (number, AnsweringTurn::Asked);
        is_next.then_some(()).ok_or(OutOfTurn { kind, number, expected: "the next request" })
    }

    /// Begins the reply, whose CBOR head has so many bytes. None unless a request waits for one.
    pub fn reply(&mut self, head_bytes: u32, is_last: bool) -> Option<FrameHead> {
        if self.turn != AnsweringTurn::Asked {
            return None;
        }
        self.turn = if is_last { AnsweringTurn::Ended } else { AnsweringTurn::Rest };
        Some(FrameHead { kind: FrameKind::Reply, is_last, number: self.number, head_bytes })
    }

    pub fn is_at_rest(&self) -> bool {
        self.turn == AnsweringTurn::Rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: FrameKind, number: u32, is_last: bool) -> FrameHead {
        FrameHead { kind, is_last, number, head_bytes: 7 }
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_nothing_else_is() {
        for kind in KINDS {
            for is_last in [false, true] {
                let written = FrameHead { head_bytes: 32_768, ..head(kind, 0x0102_0304, is_last) };
                let read = FrameHead::from_bytes(written.to_bytes());
                let is_taken = matches!(kind, FrameKind::Request | FrameKind::Reply);
                assert_eq!(read, if is_taken { Ok(written) } else { Err(FrameHeadError::Reserved(kind)) });
            }
        }
        let bytes = head(FrameKind::Reply, 1, false).to_bytes();
        let with = |at: usize, byte: u8| {
            let mut other = bytes;
            other[at] = byte;
            FrameHead::from_bytes(other)
        };
        for kind in 6..=u8::MAX {
            assert_eq!(with(0, kind), Err(FrameHeadError::UnknownKind(kind)));
        }
        for flags in 2..=u8::MAX {
            assert_eq!(with(1, flags), Err(FrameHeadError::UnknownFlags(flags)));
        }
        assert_eq!(with(6, 1), Err(FrameHeadError::TooLarge { bytes: (1 << 24) + 7 }));
        assert!(with(8, 0x80).is_err(), "a byte more than the largest head");
    }

    /// A stream between two ends: frames under way, each with the call that it belongs to, which no end sees.
    #[derive(Clone, Default)]
    struct Play {
        asking: AskingEnd,
        answering: AnsweringEnd,
        requests: Vec<(FrameHead, usize)>,
        replies: Vec<(FrameHead, usize)>,
        /// Calls asked, whether the newest has no reply, the one that is served, and frames that somebody slipped in.
        asked: usize,
        is_waiting: bool,
        serving: Option<usize>,
        forged: usize,
    }

    const NOBODYS: usize = 0;

    /// Goes through everything that can happen next, in any order, and counts the steps.
    fn explore(play: &Play, steps: usize, ways: &mut usize) {
        *ways += 1;
        if steps == 0 {
            return;
        }
        let mut next = |change: &dyn Fn(&mut Play) -> bool| {
            let mut play = play.clone();
            if change(&mut play) {
                explore(&play, steps - 1, ways);
            }
        };
        next(&|play| {
            let Some(request) = play.asking.ask(7) else { return false };
            play.asked += 1;
            play.is_waiting = true;
            play.requests.push((request, play.asked));
            true
        });
        next(&|play| {
            if play.requests.is_empty() {
                return false;
            }
            let (request, call) = play.requests.remove(0);
            let is_idle = play.serving.is_none();
            match play.answering.asked(request) {
                Ok(()) => {
                    assert!(is_idle, "one call at a time");
                    play.serving = Some(call);
                    true
                }
                Err(_) => false,
            }
        });
        for is_last in [false, true] {
            next(&|play| {
                let Some(call) = play.serving.take() else { return false };
                let reply = play.answering.reply(7, is_last).expect("a request waits");
                play.replies.push((reply, call));
                true
            });
        }
        for was_written in [false, true] {
            next(&|play| {
                if play.replies.is_empty() {
                    return false;
                }
                let (reply, call) = play.replies.remove(0);
                // What an owner says ahead about a call it calls by its number is its answer to that call.
                let is_forged = call == NOBODYS;
                let is_its_number = reply.kind == FrameKind::Reply && reply.number as usize == play.asked;
                let is_for_newest = if is_forged { is_its_number } else { call == play.asked };
                let is_awaited = std::mem::take(&mut play.is_waiting) && is_for_newest;
                let taken = play.asking.reply(reply);
                assert_eq!(taken.is_ok(), is_awaited, "{reply:?} for call {call} of {}", play.asked);
                if taken.is_ok() {
                    play.asking.end(was_written);
                    assert_eq!(play.asking.is_at_rest(), was_written && !reply.is_last);
                }
                taken.is_ok()
            });
        }
        // A hostile owner answers what nobody asked, early, late or twice.
        for number in 0..4 {
            for kind in [FrameKind::Request, FrameKind::Reply] {
                next(&|play| {
                    play.replies.push((head(kind, number, false), NOBODYS));
                    play.forged += 1;
                    play.forged <= 3
                });
            }
        }
    }

    #[test]
    fn no_reply_is_taken_for_anothers_in_whatever_order_frames_come() {
        let mut ways = 0;
        explore(&Play::default(), 14, &mut ways);
        assert!(ways > 50_000, "{ways}");
    }

    #[test]
    fn an_end_that_was_disturbed_asks_and_answers_no_more() {
        let mut asking = AskingEnd::default();
        let request = asking.ask(7).unwrap();
        assert!(asking.ask(7).is_none(), "one call at a time");
        asking.reply(head(FrameKind::Reply, request.number + 1, false)).unwrap_err();
        asking.end(true);
        assert!(!asking.is_at_rest() && asking.ask(7).is_none());

        let mut answering = AnsweringEnd::default();
        answering.asked(head(FrameKind::Request, 1, false)).unwrap();
        assert!(!answering.is_at_rest());
        answering.asked(head(FrameKind::Request, 2, false)).unwrap_err();
        let mut skipped = AnsweringEnd::default();
        skipped.asked(head(FrameKind::Request, 2, false)).unwrap_err();
        assert_eq!(
            skipped.reply(7, true).map(|reply| reply.number),
            Some(2),
            "a refusal names what it refuses"
        );
        assert!(skipped.reply(7, true).is_none() && !skipped.is_at_rest());
    }
}
