//! A request to close that is signed here and sent to the chain by anybody: for a wallet without ETH whose owner does not help.

use farthing_protocol::ChannelId;

use super::Payer;
use crate::{consumer::funding::SignedRequest, settlement::SettlementError};

impl Payer {
    /// Signs the request to close a channel that is open. Nothing is sent, and no owner is asked.
    pub(in crate::settlement) async fn sign_request(
        &self,
        id: ChannelId,
    ) -> Result<SignedRequest, SettlementError> {
        let channel = self.channels.get(id).ok_or(SettlementError::NoSuchChannel(id))?;
        if !channel.holds_something() || channel.close_at_secs.is_some() {
            return Err(SettlementError::NotOpen(id));
        }
        Ok(self.funding.sign_request(&channel).await?)
    }
}
