//! The cost of a call, before it is made and after.

use farthing_control::types::{Channel, ChannelRole, ChannelState, Status};
use farthing_protocol::{Address, Usdc};

use crate::{history::Answer, show};

/// Said beside the button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) words: String,
    /// Present when something speaks against the call.
    pub(super) warning: Option<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    pub(super) words: String,
    /// True if a call is bound to fail.
    pub(super) is_final: bool,
}

/// Tells what a call of `price` to `owner` means for this wallet.
pub(super) fn before(price: Usdc, owner: Address, status: &Status, channels: &[Channel]) -> Before {
    let stopped = |words: &str| Some(Warning { words: words.to_owned(), is_final: true });
    let mut warning = None;
    if status.address.0 == owner {
        warning = stopped("This is your own service. Your node does not buy from itself; another node can.");
    } else if !status.spending {
        warning = stopped("Spending is stopped on this node.");
    }
    if price.is_zero() {
        return Before { words: "The owner asks nothing for this call.".to_owned(), warning };
    }
    let open = channels.iter().find(|channel| {
        channel.role == ChannelRole::Payer && channel.peer.0 == owner && channel.state == ChannelState::Open
    });
    if let Some(channel) = open {
        let left = channel.deposited.0.saturating_sub(channel.spent.0);
        let words =
            format!("Paid from your channel with this owner, which has {} USDC left.", show::usdc(left));
        return Before { words, warning };
    }
    let has_money = status.balance.usdc.is_some_and(|usdc| usdc.0 >= price);
    if warning.is_none() && !has_money {
        let words = format!("Your wallet has no USDC for it yet: send some to {}.", status.address);
        warning = Some(Warning { words, is_final: false });
    }
    let words = "Your first call to this owner also opens a payment channel: a deposit that stays yours until it is \
                 spent, and a network fee in ETH. That takes some seconds, once.";
    Before { words: words.to_owned(), warning }
}

/// Tells what an exchange cost.
pub(super) fn paid(live: bool, answer: &Answer) -> String {
    if !live {
        return "Free: nothing was sent, and you were not charged.".to_owned();
    }
    if let Some(problem) = &answer.problem {
        return match problem.charged {
            Some(false) => "You were not charged.".to_owned(),
            Some(true) => "You were charged; Activity shows how much.".to_owned(),
            None => "Whether you were charged is not known yet. Your node keeps asking the owner, Activity will show \
                     it, and the same call is never paid twice."
                .to_owned(),
        };
    }
    match answer.charged.parse::<Usdc>() {
        Ok(charged) if charged.is_zero() => "You were not charged.".to_owned(),
        Ok(charged) => format!("You were charged {} USDC.", show::usdc(charged)),
        Err(_) => "The node did not say what was charged; Activity shows it.".to_owned(),
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
            next: None,
            charged,
            call_id: None,
        };
        Answer { problem: Some(problem), ..Answer::default() }
    }

    #[test]
    fn every_end_says_what_it_cost() {
        let charged = |charged: &str| Answer { charged: charged.to_owned(), ..Answer::default() };
        for (live, answer, words) in [
            (false, Answer::default(), "you were not charged"),
            (true, charged("0.002"), "You were charged 0.002 USDC."),
            (true, charged("0"), "You were not charged."),
            (true, charged("0.00"), "You were not charged."),
            (true, problem(Some(false)), "You were not charged."),
            (true, problem(Some(true)), "You were charged;"),
            (true, problem(None), "never paid twice"),
        ] {
            let said = paid(live, &answer);
            assert!(said.contains(words), "{said}");
        }
    }
}
