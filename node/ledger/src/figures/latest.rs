//! Figures of the newest calls, each call by itself: for a time that is shorter than the hours of the tables.
//!
//! They are read from the rows of calls, which have their seconds, so that nothing more is written for them.

use farthing_values::CallId;

use crate::{
    Ledger,
    error::Result,
    rows::{
        figures::{CallFigures, EndedCall, Subject},
        payee::{self, StoredCall},
        payer,
    },
    tables::{self, CALLS, CALLS_BY_TIME, PURCHASES, PURCHASES_BY_TIME},
};

impl Ledger {
    /// Reads the calls of the services that are wanted, each as the figures of one call, with its second, which is not before
    /// `from_secs`: the newest `most` calls of each side. Calls that the ledger no longer keeps one by one are not among them.
    pub fn latest_figures(
        &self,
        from_secs: u64,
        most: usize,
        is_wanted: impl Fn(&Subject) -> bool,
        mut each: impl FnMut(u64, Subject, CallFigures),
    ) -> Result<()> {
        let mut tell = |ended: EndedCall| {
            if is_wanted(&ended.subject) {
                let mut figures = CallFigures::default();
                figures.count(&ended);
                each(ended.time_secs, ended.subject, figures);
            }
        };
        self.read(|tx| {
            let calls = tx.open_table(CALLS)?;
            let first = payee::time_key(from_secs, &[0; 36]);
            let by_time = tx.open_table(CALLS_BY_TIME)?;
            for entry in by_time.range::<&[u8; 44]>(&first..)?.rev().take(most) {
                let key: [u8; 36] = tables::join(&[&entry?.0.value()[8..]]);
                let call = tables::get::<_, StoredCall>(&calls, "calls", &key)?;
                if let Some(ended) = call.as_ref().and_then(EndedCall::served) {
                    tell(ended);
                }
            }
            let purchases = tx.open_table(PURCHASES)?;
            let first = payer::time_key(from_secs, CallId::from_bytes([0; 16]));
            let by_time = tx.open_table(PURCHASES_BY_TIME)?;
            for entry in by_time.range::<&[u8; 24]>(&first..)?.rev().take(most) {
                let call_id = CallId::from_bytes(tables::join(&[&entry?.0.value()[8..]]));
                if let Some(purchase) = payer::purchase_in(&purchases, call_id)? {
                    tell(EndedCall::bought(&purchase));
                }
            }
            Ok(())
        })
    }
}
