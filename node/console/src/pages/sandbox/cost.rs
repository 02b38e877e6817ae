//! The cost of a call, before it is made and after.

use farthing_control::types::{CHARGED_UNDECIDED, Channel, ChannelRole, ChannelState, Status};
use farthing_values::{Address, Usdc};

use crate::{history::Answer, show};

/// Said beside the button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) words: String,
    /// The deposit that the button names beside the price.
    pub(super) deposit: Option<String>,
    /// The most that may be deposited first, as it comes back with the form; `None` where it is not known.
    pub(super) deposit_max: Option<Usdc>,
    /// Present when something speaks against the call.
    pub(super) warning: Option<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    pub(super) words: String,
    /// True if a call is bound to fail.
    pub(super) is_final: bool,
}

/// Tells what a call to `owner` means for this wallet: its price, and the deposit that it makes first.
pub(super) fn before(
    (price, deposit): (Usdc, Option<Usdc>),
    owner: Address,
    status: &Status,
    price_max: Option<Usdc>,
    channels: &[Channel],
) -> Before {
    let mut warning = stopped(status).or_else(|| above_limit(price, price_max));
    if status.address.0 == owner {
        let words = "This is your own service. Your node cannot buy from itself, but other nodes can.";
        warning = Some(Warning { words: words.to_owned(), is_final: true });
    }
    if price.is_zero() {
        let words = "This call is free.".to_owned();
        return Before { words, deposit: None, deposit_max: None, warning };
    }
    let is_final = warning.is_some();
    let open = channels.iter().find(|channel| {
        channel.role == ChannelRole::Payer && channel.peer.0 == owner && channel.state == ChannelState::Open
    });
    let is_from_wallet = open.is_none() || deposit.is_some();
    warning = warning.or_else(|| from_wallet(price, status).filter(|_| is_from_wallet));
    let left = open.map(|channel| channel.deposited.0.saturating_sub(channel.spent.0));
    let deposit_max = deposit.or(open.map(|_| Usdc::ZERO));
    let deposit = deposit.map(show::usdc);
    let words = told(left, deposit.as_deref());
    Before { words, deposit: deposit.filter(|_| !is_final), deposit_max, warning }
}

/// Tells what speaks against a call at this price that the wallet itself pays.
pub(super) fn from_wallet(price: Usdc, status: &Status) -> Option<Warning> {
    let has_money = status.balance.usdc.is_some_and(|usdc| usdc.0 >= price);
    let poor = || {
        let words =
            format!("Your wallet does not have enough USDC for this call. Send some to {}.", status.address);
        Warning { words, is_final: false }
    };
    stopped(status).or_else(|| (!has_money).then(poor))
}

fn stopped(status: &Status) -> Option<Warning> {
    let words = "Spending is stopped on this node. See Finance › Limits to resume it.";
    (!status.spending).then(|| Warning { words: words.to_owned(), is_final: true })
}

fn above_limit(price: Usdc, price_max: Option<Usdc>) -> Option<Warning> {
    let most = price_max.filter(|most| price > *most)?;
    let words =
        format!("Above your limit of {} USDC per call. Raise it in Finance › Limits.", show::usdc(most));
    Some(Warning { words, is_final: true })
}

/// Says what is paid from where, by what is left on the channel with the owner and what is deposited first.
fn told(left: Option<Usdc>, deposit: Option<&str>) -> String {
    const REFUND: &str = "The deposit is yours until you spend it: close the channel to get the rest back. Making the deposit costs \
                          one network fee in ETH and takes a few seconds.";
    match (left.map(show::usdc), deposit) {
        (Some(left), None) => {
            format!("Paid from your channel with this owner, which has {left} USDC left.")
        }
        (Some(left), Some(deposit)) => format!(
            "Your channel with this owner has {left} USDC left, so {deposit} USDC is added first. {REFUND}"
        ),
        (None, Some(deposit)) => format!(
            "Your first call to this owner opens a payment channel with a deposit of {deposit} USDC. {REFUND}"
        ),
        (None, None) => {
            format!("Your first call to this owner opens a payment channel with a deposit. {REFUND}")
        }
    }
}

const UNDECIDED: &str = "It is not known yet whether you were charged. Your node keeps asking, and Activity will show it. The same call is \
                         never paid twice.";

/// Tells what an exchange cost.
pub(super) fn paid(live: bool, answer: &Answer) -> String {
    if !live {
        return "Free: nothing was sent, and you were not charged.".to_owned();
    }
    if let Some(problem) = &answer.problem {
        return match problem.charged {
            Some(false) => "You were not charged.".to_owned(),
            Some(true) => "You were charged. Activity shows how much.".to_owned(),
            None => UNDECIDED.to_owned(),
        };
    }
    if answer.charged == CHARGED_UNDECIDED {
        return UNDECIDED.to_owned();
    }
    match answer.charged.parse::<Usdc>() {
        Ok(charged) if charged.is_zero() => "You were not charged.".to_owned(),
        Ok(charged) => format!("You were charged {} USDC.", show::usdc(charged)),
        Err(_) => "The node did not say what you were charged. Activity shows it.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farthing_control::types::Problem;

    fn problem(charged: Option<bool>) -> Answer {
        let problem = Problem {
            kind: String::new(),
            title: String::new(),
            status: 502,
            detail: String::new(),
            undone: None,
            next: None,
            charged,
            call_id: None,
            price_usdc: None,
            limit: None,
        };
        Answer { problem: Some(problem), ..Answer::default() }
    }

    #[test]
    fn what_a_call_deposits_first_is_told_with_what_becomes_of_it() {
        let (left, more) = (Some(Usdc::from_micros(1_000)), Some("0.80"));
        assert!(told(left, None).contains("which has 0.001 USDC left"));
        let added = told(left, more);
        assert!(added.contains("0.001 USDC left, so 0.80 USDC is added first"), "{added}");
        let opened = told(None, Some("0.40"));
        assert!(opened.contains("opens a payment channel with a deposit of 0.40 USDC"), "{opened}");
        for told in [added, opened, told(None, None)] {
            assert!(told.contains("get the rest back"), "{told}");
        }
        assert!(!told(left, None).contains("rest back"));
    }

    #[test]
    fn a_call_above_the_users_own_limit_is_not_offered() {
        let micros = Usdc::from_micros;
        let above = |price, most: u64| above_limit(micros(price), Some(micros(most)));
        let warning = above(3_000, 1_000).unwrap();
        assert!(
            warning.is_final && warning.words.starts_with("Above your limit of 0.001 USDC"),
            "{warning:?}"
        );
        assert_eq!((above(1_000, 1_000), above(0, 0), above_limit(micros(1), None)), (None, None, None));
    }

    #[test]
    fn every_end_says_what_it_cost() {
        let charged = |charged: &str| Answer { charged: charged.to_owned(), ..Answer::default() };
        for (live, answer, words) in [
            (false, Answer::default(), "you were not charged"),
            (true, charged("0.002"), "You were charged 0.002 USDC."),
            (true, charged(CHARGED_UNDECIDED), "It is not known yet whether you were charged."),
            (true, charged("0"), "You were not charged."),
            (true, charged("0.00"), "You were not charged."),
            (true, problem(Some(false)), "You were not charged."),
            (true, problem(Some(true)), "You were charged. Activity"),
            (true, problem(None), "never paid twice"),
        ] {
            let said = paid(live, &answer);
            assert!(said.contains(words), "{said}");
        }
    }
}
