//! The side that answers: compares, hands out what is asked for, takes some of what it is given. Blocks while it compares
//! and while it checks signatures.

use farthing_protocol::{
    Address, NodeRecord,
    agreement::RecordsMessage,
    limits,
    reconciliation::{Answers, unpack},
};

use super::{Agreement, AgreementError, FETCHED_MAX, MESSAGES_MAX, name_of};
use crate::{
    info::{RecordSource, take_record},
    records::Rejected,
};

/// A session that a peer opened.
#[derive(Debug)]
pub(super) struct Answerer {
    shared: Agreement,
    source: RecordSource,
    messages: u32,
    /// Records that were handed out.
    handed: usize,
    answers: Answers,
}

impl Answerer {
    /// Ready for what the peer will ask.
    pub(super) fn new(shared: Agreement, source: RecordSource) -> Self {
        Self { shared, source, messages: 0, handed: 0, answers: Answers::default() }
    }

    /// Answers one message. An error ends the session: to be told as [`RecordsMessage::Refused`].
    pub(super) fn on(
        &mut self,
        message: RecordsMessage,
        now_secs: u64,
    ) -> Result<RecordsMessage, AgreementError> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(AgreementError::TooLong);
        }
        match message {
            RecordsMessage::Compare(message) => self.compare(&message, now_secs),
            RecordsMessage::Fetch(owners) if owners.len() > limits::SYNC_ITEMS_MAX => {
                Err(AgreementError::Malformed(format!("it names {} wallets", owners.len())))
            }
            RecordsMessage::Fetch(owners) => self.hand_out(&owners),
            RecordsMessage::Records(packed) => self.take(&packed),
            RecordsMessage::Done => Ok(RecordsMessage::Done),
            other @ RecordsMessage::Refused(_) => Err(AgreementError::Unexpected(name_of(&other))),
        }
    }

    fn compare(&mut self, message: &[u8], now_secs: u64) -> Result<RecordsMessage, AgreementError> {
        let picture = self.shared.picture(now_secs);
        let answer = self.answers.answer(&picture, message)?;
        Ok(RecordsMessage::Compare(answer.into()))
    }

    /// Hands out records, which were asked for or are newer than what was given: nobody has to sign anything to give what is
    /// older, so both count.
    fn hand_out(&mut self, owners: &[Address]) -> Result<RecordsMessage, AgreementError> {
        let (packed, count) = self.shared.pack(owners)?;
        self.handed += count;
        // The last frame may hold more than was left.
        if self.handed > 2 * FETCHED_MAX {
            return Err(AgreementError::TooLong);
        }
        Ok(RecordsMessage::Records(packed.into()))
    }

    /// Takes what was given, as from any neighbour that offers records, and says what is newer here.
    fn take(&mut self, packed: &[u8]) -> Result<RecordsMessage, AgreementError> {
        let Agreement { records, network, counters, .. } = &self.shared;
        let mut newer = Vec::new();
        for record in unpack::<NodeRecord>(packed)? {
            let claimed = record.claimed()?;
            match take_record(records, network, counters, record, self.source) {
                Err(Rejected::NotNewer { held }) if held > claimed.seq => {
                    newer.push(claimed.public_key.address());
                }
                Err(forged @ (Rejected::Forged | Rejected::OtherNetwork)) => {
                    return Err(AgreementError::Forged(forged));
                }
                Err(Rejected::TooMany) => break,
                Ok(()) | Err(_) => {}
            }
        }
        self.hand_out(&newer)
    }
}
