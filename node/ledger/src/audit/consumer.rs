//! The consumer's half: what it bought, promised and pays on.

use std::collections::{BTreeMap, HashMap};

use farthing_values::{CallId, ChannelId, Domain, Usdc};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::{AdjustmentSums, Audit, figures::Recount};
use crate::{
    allowed::{self, Allowed},
    error::Result,
    rows::{
        Side,
        figures::EndedCall,
        payer::{self, StoredEnd, StoredPromise, StoredPurchase},
    },
    tables::{self, DAY_TOTALS, PAYER_CHANNELS, PROMISES, PURCHASES, PURCHASES_BY_TIME},
};

/// Micros charged, by day and secret.
type ByDay = BTreeMap<(u32, String), u64>;

pub(super) fn purchases(
    tx: &ReadTransaction,
    audit: &mut Audit,
    adjusted: &AdjustmentSums,
    recount: &mut Recount,
    domain: Option<&Domain>,
) -> Result<HashMap<ChannelId, Usdc>> {
    let by_time = tx.open_table(PURCHASES_BY_TIME)?;
    let mut by_channel: HashMap<ChannelId, Usdc> = HashMap::new();
    let mut by_day = ByDay::new();
    let channels = tx.open_table(PAYER_CHANNELS)?;
    for entry in tx.open_table(PURCHASES)?.iter()? {
        let (id, bytes) = entry?;
        let call_id = CallId::from_bytes(*id.value());
        let purchase: StoredPurchase = tables::decode("purchases", bytes.value())?;
        audit.purchases += 1;
        let indexed = by_time.get(&payer::time_key(purchase.promised_secs, call_id))?.is_some();
        audit.require(indexed, "index", || {
            (format!("call {call_id}"), "missing from the purchases by time".into())
        });
        recount.add(&EndedCall::bought(&purchase));
        let charged = purchase.end.charged();
        if charged.is_zero() {
            continue;
        }
        let id = purchase.channel.unwrap_or(ChannelId::NONE);
        audit.require(charged <= purchase.price, "O6", || {
            (
                format!("call {call_id}"),
                format!("charged {charged} USDC, and its price was {}", purchase.price),
            )
        });
        // Receipts of channels in an earlier contract were signed for that.
        let is_of_domain = |domain: &&Domain| {
            let row = payer::channel_in(&channels, id).ok().flatten();
            row.is_some_and(|row| row.config.id(domain) == id)
        };
        let is_signed =
            domain.filter(is_of_domain).is_none_or(|domain| is_signed(&purchase, call_id, domain));
        audit.require(is_signed, "C3", || {
            (format!("call {call_id}"), format!("its receipt is not signed by {}", purchase.owner))
        });
        // What a transfer of its own has paid is on no channel, and everything else on one.
        let is_transferred = matches!(purchase.end, StoredEnd::Transferred { .. });
        if is_transferred {
            audit.require(purchase.channel.is_none() && charged == purchase.price, "C3", || {
                (format!("call {call_id}"), format!("a transfer of {charged} USDC, and another promise"))
            });
        } else {
            let channel = by_channel.entry(id).or_default();
            *channel = channel.saturating_add(charged);
        }
        *by_day.entry((payer::day_of(purchase.promised_secs), purchase.secret)).or_default() +=
            charged.micros();
    }
    let (indexed, purchases) = (by_time.len()?, audit.purchases);
    audit.require(indexed == purchases, "index", || {
        ("purchases".into(), format!("{purchases} purchases, {indexed} entries by time"))
    });
    limits(tx, audit, &by_day)?;
    for ((day, secret), sum) in &adjusted.by_budget {
        *by_day.entry((*day, (*secret).to_owned())).or_default() += sum;
    }
    days(tx, audit, &mut by_day)?;
    Ok(by_channel)
}

/// Returns whether the owner signed what it charged.
fn is_signed(purchase: &StoredPurchase, call_id: CallId, domain: &Domain) -> bool {
    let StoredEnd::Acknowledged { signature, .. } = &purchase.end else { return false };
    let receipt = purchase.end.receipt(call_id);
    receipt.is_some_and(|receipt| receipt.verify(domain, *signature, purchase.owner).is_ok())
}

/// Holds what was bought on each day against what the limits allowed then. Adjustments were held against none.
fn limits(tx: &ReadTransaction, audit: &mut Audit, by_day: &ByDay) -> Result<()> {
    let mut of_node: BTreeMap<u32, u64> = BTreeMap::new();
    for ((day, secret), sum) in by_day {
        *of_node.entry(*day).or_default() += sum;
        if let Some(allowed) = allowed::on(tx, *day, secret)? {
            within_limit(audit, &format!("day {day}, secret {secret}"), *sum, allowed);
        }
    }
    for (day, sum) in of_node {
        match allowed::on(tx, day, allowed::NODE)? {
            Some(allowed) => within_limit(audit, &format!("day {day}"), sum, allowed),
            None => audit.days_of_unknown_limits += 1,
        }
    }
    Ok(())
}

fn within_limit(audit: &mut Audit, subject: &str, micros: u64, allowed: Allowed) {
    let charged = Usdc::from_micros(micros);
    audit.require(charged <= allowed.most(), "C2", || {
        let Allowed { limit, late } = allowed;
        let detail = format!("charged {charged} USDC, its limit was {limit} at most, {late} came late");
        (subject.to_owned(), detail)
    });
}

fn days(tx: &ReadTransaction, audit: &mut Audit, by_day: &mut ByDay) -> Result<()> {
    for entry in tx.open_table(DAY_TOTALS)?.iter()? {
        let (key, total) = entry?;
        let (day, secret) = key.value();
        let sum = by_day.remove(&(day, secret.to_owned())).unwrap_or(0);
        let total = total.value();
        audit.require(total == sum, "C2", || {
            (format!("day {day}, secret {secret}"), format!("total {total} micros, purchases {sum}"))
        });
    }
    for ((day, secret), sum) in by_day {
        audit.require(false, "C2", || {
            (format!("day {day}, secret {secret}"), format!("no total, purchases {sum} micros"))
        });
    }
    Ok(())
}

/// Per channel, the highest cumulative amount of an open promise.
pub(super) fn promises(tx: &ReadTransaction, audit: &mut Audit) -> Result<HashMap<ChannelId, Usdc>> {
    let purchases = tx.open_table(PURCHASES)?;
    let mut highest: HashMap<ChannelId, Usdc> = HashMap::new();
    for entry in tx.open_table(PROMISES)?.iter()? {
        let (id, bytes) = entry?;
        let promise: StoredPromise = tables::decode("promises", bytes.value())?;
        audit.promises += 1;
        let closed = purchases.get(id.value())?.is_some();
        audit.require(!closed, "C4", || {
            (format!("call {}", CallId::from_bytes(*id.value())), "open and closed at once".into())
        });
        if let Some(voucher) = promise.voucher {
            let channel = highest.entry(voucher.channel).or_default();
            *channel = (*channel).max(voucher.cumulative);
        }
    }
    Ok(highest)
}

pub(super) fn channels(
    tx: &ReadTransaction,
    audit: &mut Audit,
    bought: &HashMap<ChannelId, Usdc>,
    promised: &HashMap<ChannelId, Usdc>,
    adjusted: &AdjustmentSums,
) -> Result<()> {
    let table = tx.open_table(PAYER_CHANNELS)?;
    for entry in table.iter()? {
        let (id, bytes) = entry?;
        let id = ChannelId::from_bytes(*id.value());
        let row: payer::StoredPayerChannel = tables::decode("payer_channels", bytes.value())?;
        audit.payer_channels += 1;
        let charged = bought.get(&id).copied().unwrap_or_default();
        let explained = row.opening.saturating_add(row.pruned).saturating_add(charged);
        audit.require(row.acknowledged == explained, "C3", || {
            (id.to_string(), format!("acknowledged {}, receipts explain {explained}", row.acknowledged))
        });
        let adjusted = adjusted.of(Side::Payer, id);
        audit.require(row.opening == adjusted, "C3", || {
            (id.to_string(), format!("opening balance {}, adjustments explain {adjusted}", row.opening))
        });
        audit.require(row.claimed <= row.signed.min(row.deposited_peak), "M3", || {
            let payer::StoredPayerChannel { claimed, signed, deposited_peak, .. } = &row;
            (id.to_string(), format!("claimed {claimed}, signed {signed}, deposited {deposited_peak}"))
        });
        let is_over = row.deposited <= row.claimed && !promised.contains_key(&id);
        audit.require(!is_over || row.claimed <= row.acknowledged, "M4", || {
            (
                id.to_string(),
                format!("paid {} in all, of which calls explain {}", row.claimed, row.acknowledged),
            )
        });
        let promised = promised.get(&id).copied().unwrap_or_default();
        let covered =
            row.acknowledged <= row.signed && promised <= row.signed && row.signed <= row.deposited_peak;
        audit.require(covered, "C1", || {
            let payer::StoredPayerChannel { acknowledged, signed, deposited_peak, .. } = &row;
            let detail = format!(
                "acknowledged {acknowledged}, promised {promised}, signed {signed}, deposited {deposited_peak}"
            );
            (id.to_string(), detail)
        });
    }
    for id in bought.keys().chain(promised.keys()) {
        let known = table.get(id.as_bytes())?.is_some();
        audit.require(known, "C3", || (id.to_string(), "paid on, and not recorded".into()));
    }
    Ok(())
}
