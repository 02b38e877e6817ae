//! The step from schema 1, whose channels are in an earlier contract, to schema 2.
//!
//! A channel's id binds its contract, and this program reads and pays on the present one alone. So a ledger
//! with money that only the earlier contract can pay is left as it is, for the program that wrote it.
//! Otherwise everything stays readable, and the earlier channels hold nothing: no voucher on them is taken.

use farthing_values::Usdc;
use redb::{ReadableTable, WriteTransaction};

use crate::{
    documents::Namespace,
    error::{EarlierMoney, OpenError},
    rows::{payee, payer},
    tables::{self, DOCUMENTS, PAYEE_CHANNELS, PAYER_CHANNELS},
};

pub(crate) fn leave_earlier_contract(transaction: &WriteTransaction) -> Result<(), OpenError> {
    let unclaimed = empty_payee_channels(transaction)?;
    let deposited = deposits_of_payer_channels(transaction)?;
    let under_way = transactions_under_way(transaction)?;
    let money = EarlierMoney { unclaimed, deposited, under_way };
    // A refusal drops the transaction, and with it what was written above.
    if money.is_none() { Ok(()) } else { Err(OpenError::EarlierContract(money)) }
}

fn empty_payee_channels(transaction: &WriteTransaction) -> Result<(usize, Usdc), OpenError> {
    let mut table = transaction.open_table(PAYEE_CHANNELS)?;
    let mut rows = Vec::new();
    for entry in table.iter()? {
        let (id, bytes) = entry?;
        let row: payee::StoredPayeeChannel = decode("payee_channels", bytes.value())?;
        rows.push((*id.value(), row));
    }
    let mut unclaimed = Money::default();
    for (id, mut row) in rows {
        unclaimed.add(row.spent.min(row.deposited).saturating_sub(row.claimed));
        row.deposited = row.claimed;
        table.insert(&id, tables::encode(&row).as_slice())?;
    }
    Ok(unclaimed.into())
}

fn deposits_of_payer_channels(transaction: &WriteTransaction) -> Result<(usize, Usdc), OpenError> {
    let table = transaction.open_table(PAYER_CHANNELS)?;
    let mut deposits = Money::default();
    for entry in table.iter()? {
        let row: payer::StoredPayerChannel = decode("payer_channels", entry?.1.value())?;
        deposits.add(row.deposited.saturating_sub(row.claimed));
    }
    Ok(deposits.into())
}

/// The chain's journal names its transactions `chain/wallet/tx/nonce`.
fn transactions_under_way(transaction: &WriteTransaction) -> Result<usize, OpenError> {
    let table = transaction.open_table(DOCUMENTS)?;
    let mut count = 0;
    for entry in table.iter()? {
        let (key, _) = entry?;
        let (namespace, key) = key.value();
        let is_transaction = key.split(|byte| *byte == b'/').nth(2) == Some(b"tx");
        count += usize::from(namespace == Namespace::Transactions as u8 && is_transaction);
    }
    Ok(count)
}

#[derive(Default)]
struct Money(usize, Usdc);

impl Money {
    fn add(&mut self, amount: Usdc) {
        self.0 += usize::from(!amount.is_zero());
        self.1 = self.1.saturating_add(amount);
    }
}

impl From<Money> for (usize, Usdc) {
    fn from(money: Money) -> Self {
        (money.0, money.1)
    }
}

fn decode<'b, T: minicbor::Decode<'b, ()>>(table: &'static str, bytes: &'b [u8]) -> Result<T, OpenError> {
    minicbor::decode(bytes).map_err(|error| OpenError::Damaged { table, cause: error.to_string() })
}
