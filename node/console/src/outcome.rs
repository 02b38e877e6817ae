//! Outcomes of calls as every page shows them: one word, and the colour and the sign that follow from it.

use farthing_control::types::CallOutcome;

/// An outcome in a template: `<span class="{{ tone }}">{{ words }}</span>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownOutcome {
    pub(super) words: &'static str,
    /// The class of its colour and sign.
    pub(super) tone: &'static str,
    /// The class of its colour in charts.
    pub(super) band: &'static str,
}

/// Shows an outcome with the status of the answer, where one is known. A service that answers "there is none" has answered, and
/// yet it is no success.
pub(super) const fn shown(outcome: CallOutcome, status: Option<u16>) -> ShownOutcome {
    let shown = of(outcome);
    match (outcome, status) {
        (CallOutcome::Answered, None | Some(400..)) => ShownOutcome { tone: "neutral", ..shown },
        _ => shown,
    }
}

/// Shows an outcome apart from any call.
pub(super) const fn of(outcome: CallOutcome) -> ShownOutcome {
    let (words, tone, band) = match outcome {
        CallOutcome::UnderWay => ("Under way", "undecided", "open"),
        CallOutcome::Answered => ("Answered", "good", "answered"),
        CallOutcome::Refused => ("Refused", "refused", "turned-away"),
        CallOutcome::TimedOut => ("Timed out", "bad", "timed-out"),
        CallOutcome::TooLarge => ("Too large", "bad", "too-large"),
        CallOutcome::Failed => ("Failed", "bad", "failed"),
        CallOutcome::Undecided => ("Undecided", "undecided", "open"),
    };
    ShownOutcome { words, tone, band }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_a_word_and_only_an_answer_is_a_green_dot() {
        for outcome in CallOutcome::ALL {
            for status in [None, Some(200), Some(404), Some(500)] {
                let ShownOutcome { words, tone, .. } = shown(outcome, status);
                let is_good = outcome == CallOutcome::Answered && status.is_some_and(|status| status < 400);
                assert_eq!(tone == "good", is_good, "{outcome} {status:?}");
                assert!(words.starts_with(char::is_uppercase), "{words}");
            }
        }
        let too_large = shown(CallOutcome::TooLarge, Some(200));
        assert_eq!((too_large.words, too_large.tone), ("Too large", "bad"));
    }
}
