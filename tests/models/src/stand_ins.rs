//! Types of other packages, as far as the files under test name them. None of them takes part in a race.

use farthing_protocol::{
    Address, ChannelConfig, ChannelId, Signature, Usdc,
    channel::{PayeeState, PayerState},
};

/// The terms of the one channel.
const fn terms() -> ChannelConfig {
    let nobody = Address::ZERO;
    ChannelConfig {
        payer: nobody,
        payee: nobody,
        token: nobody,
        signer: nobody,
        close_delay_secs: 86_400,
        salt: [0; 32],
    }
}

/// Of `farthing-network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotStarted {
    LocalLimit,
    Stopped,
}

/// Of `farthing-ledger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Crash,
}

/// Of `farthing-ledger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayerChannelFacts {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub deposited: Usdc,
    pub claimed: Usdc,
    pub round: Option<u32>,
}

/// Of `farthing-ledger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayerChannelRow {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub deposited: Usdc,
    pub claimed: Usdc,
    pub round: Option<u32>,
    pub stopped: bool,
    pub acknowledged: Usdc,
    pub receipted: Usdc,
    pub used_secs: Option<u64>,
    pub is_promised_on: bool,
    pub may_lack_calls: bool,
}

impl PayerChannelRow {
    pub(crate) fn new(deposited: Usdc) -> Self {
        Self {
            id: ChannelId::NONE,
            config: terms(),
            deposited,
            claimed: Usdc::ZERO,
            round: None,
            stopped: false,
            acknowledged: Usdc::ZERO,
            receipted: Usdc::ZERO,
            used_secs: None,
            is_promised_on: true,
            may_lack_calls: false,
        }
    }

    pub(crate) fn state(&self) -> PayerState {
        PayerState {
            deposited: self.deposited,
            acknowledged: self.acknowledged,
            stopped: self.stopped,
            ..PayerState::default()
        }
    }
}

/// Of `farthing-ledger`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    None,
    Closes {
        round: Option<u32>,
    },
    SignedAway {
        until_secs: u64,
        round: u32,
    },
}

/// Of `farthing-ledger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayeeChannelRow {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub deposited: Usdc,
    pub claimed: Usdc,
    pub best: Usdc,
    pub best_signature: Option<Signature>,
    pub spent: Usdc,
    pub opening: Usdc,
    pub opening_version: u64,
    pub ending: Ending,
    pub brought: Option<Ending>,
}

impl PayeeChannelRow {
    pub(crate) fn new(deposited: Usdc, best: Usdc) -> Self {
        Self {
            id: ChannelId::NONE,
            config: terms(),
            deposited,
            claimed: Usdc::ZERO,
            best,
            best_signature: None,
            spent: Usdc::ZERO,
            opening: Usdc::ZERO,
            opening_version: 0,
            ending: Ending::None,
            brought: None,
        }
    }

    pub(crate) fn state(&self) -> PayeeState {
        let Self { deposited, claimed, best, spent, .. } = *self;
        PayeeState {
            deposited,
            claimed,
            best,
            spent,
            reserved: Usdc::ZERO,
            closing: self.ending != Ending::None,
        }
    }
}

pub mod clock {
    //! Of `farthing-os`.

    pub(crate) const fn now_secs() -> u64 {
        0
    }
}

pub mod gas {
    //! Of `farthing-shared`.

    use farthing_protocol::Usdc;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GasMeans {
        pub rows: usize,
    }

    impl GasMeans {
        pub const UNLIMITED: Self = Self { rows: usize::MAX };
        pub const NONE: Self = Self { rows: 0 };

        pub(crate) fn left_behind(&self, due: impl Iterator<Item = Usdc>) -> Usdc {
            due.skip(self.rows).fold(Usdc::ZERO, Usdc::saturating_add)
        }
    }
}

pub mod latest {
    //! Of `farthing-ledger`. No model asks for figures.

    #[derive(Debug)]
    pub(crate) enum FigureChange {}

    #[derive(Debug, Default)]
    pub(crate) struct LatestFigures;

    impl LatestFigures {
        pub(crate) const fn follow(&mut self, _: &[FigureChange]) {}
    }
}

pub mod group {
    //! Of `farthing-ledger`. No table of the disk is open longer than for one step.

    use crate::{WriteTransaction, latest::FigureChange};

    pub(crate) struct Group<'t>(&'t WriteTransaction);

    impl<'t> Group<'t> {
        pub(crate) const fn of(transaction: &'t WriteTransaction) -> Self {
            Self(transaction)
        }

        pub(crate) const fn transaction(&mut self) -> &WriteTransaction {
            self.0
        }

        pub(crate) const fn into_changes(self) -> Vec<FigureChange> {
            Vec::new()
        }
    }
}

pub mod rows {
    //! Of `farthing-ledger`.

    pub mod payer {
        //! Marks of channels of which calls may be lacking.

        use crate::{WriteTransaction, error::Result};

        pub(crate) const fn mark_all(_: &WriteTransaction) -> Result<bool> {
            Ok(false)
        }
    }
}
