//! Answers and records of peers, and their consequences.

use super::Directory;
use crate::{
    AskId, Contact, Failure, Key, Now, Output,
    job::Work,
    message::JobId,
    question::{AnsweringPeer, Question},
    records::{RecordRefusal, Untrue, VerifiedRecord, Verifier},
    wire::{Filed, Response},
};

impl<V: Verifier> Directory<V> {
    pub(super) fn on_answer(&mut self, now: Now, id: AskId, response: Response) {
        let Some(question) = self.take(id) else { return };
        let connected = self.connected.get(&question.contact.key());
        let fit = question.answered(&response, connected).and_then(|answered| {
            let (found, closer) = match response {
                Response::FindNode { closer } => (None, closer),
                Response::GetValue { found, closer } => (found, closer),
                Response::PutValue(_) => (None, Vec::new()),
            };
            let record = found.map(|filed| self.verified(question.contact.key(), filed)).transpose();
            Ok((answered, record.map_err(|_| Failure::Malformed)?, closer))
        });
        match fit {
            Ok((answered, record, closer)) => {
                // One of the future is as good as none.
                let record = record.filter(|record| !record.is_of_the_future(now.unix_secs));
                self.on_true_answer(now, id.job, &question, &answered, record, closer);
                self.admit(now, answered);
            }
            Err(failure) => self.on_failure(now, id, &question, failure),
        }
    }

    fn on_true_answer(
        &mut self,
        now: Now,
        job: JobId,
        question: &Question,
        answered: &AnsweringPeer,
        record: Option<VerifiedRecord<V::Document>>,
        closer: Vec<Contact>,
    ) {
        let closer = closer.into_iter().filter(|contact| self.verifier.is_peer(contact.id()));
        let closer: Vec<Contact> = match self.config.allow_private {
            true => closer.collect(),
            false => closer.map(Contact::public).filter(|contact| !contact.addresses().is_empty()).collect(),
        };
        match self.jobs.get_mut(&job).map(|job| &mut job.work) {
            Some(Work::Lookup(lookup, _)) => {
                lookup.on_answer(question, answered, record.as_ref().map(VerifiedRecord::seq), closer);
                let Some(record) = record else { return };
                if lookup.on_record(&record, now)
                    && let JobId::Command(id) = job
                {
                    self.outputs.push(Output::Found(id, record));
                }
            }
            Some(Work::Placement(placement)) => placement.kept(),
            Some(Work::Meeting(_)) | None => {}
        }
    }

    fn admit(&mut self, now: Now, answered: AnsweringPeer) {
        let was_alone = self.table.len() == 0;
        self.table.admit(answered);
        if was_alone && self.table.len() > 0 {
            self.refresh(now);
        }
    }

    /// Notes that a question failed. What our own limits kept back counts against nobody, and where nobody is connected,
    /// it is this node that is cut off.
    pub(super) fn on_failure(&mut self, now: Now, id: AskId, question: &Question, failure: Failure) {
        let work = self.jobs.get_mut(&id.job).map(|job| &mut job.work);
        match (work, failure) {
            (Some(Work::Lookup(lookup, _)), Failure::Denied) => lookup.on_denied(question, now.since),
            (Some(Work::Lookup(lookup, _)), _) => lookup.on_failure(question),
            (Some(Work::Placement(placement)), Failure::Denied) => placement.on_denied(question, now.since),
            _ => {}
        }
        if !self.connected.is_empty() {
            self.table.failed(&question.contact, failure);
        }
    }

    /// Takes a record that a peer asks us to keep. It is acknowledged when it is kept, and not before.
    pub(super) fn take_put(&mut self, now: Now, source: Key, filed: &Filed) -> bool {
        let held = self.records.get(&filed.name).map(VerifiedRecord::filed);
        if held == Some(filed) {
            return true;
        }
        if !self.records.admits(source, now.unix_secs) {
            return false;
        }
        let Ok(record) = self.verified(source, filed.clone()) else { return false };
        self.keep_heard(now, record, source).is_ok()
    }

    pub(super) fn hear(&mut self, now: Now, record: VerifiedRecord<V::Document>, source: Key) {
        let _ = self.keep_heard(now, record, source);
    }

    fn keep_heard(
        &mut self,
        now: Now,
        record: VerifiedRecord<V::Document>,
        source: Key,
    ) -> Result<(), RecordRefusal> {
        let kept = self.records.insert(record.clone(), source, now.unix_secs);
        self.outputs.push(Output::Heard { record, source, kept });
        kept
    }

    fn verified(&mut self, source: Key, filed: Filed) -> Result<VerifiedRecord<V::Document>, Untrue> {
        let record = VerifiedRecord::of(&self.verifier, filed);
        if let Err(untrue @ (Untrue::Forged | Untrue::Malformed)) = record {
            self.outputs.push(Output::Misbehaved(source, untrue));
        }
        record
    }
}
