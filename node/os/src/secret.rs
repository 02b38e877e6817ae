//! Text that never shows itself, and what holds such text.

use std::str::FromStr;

use zeroize::Zeroizing;

/// Implements `Debug` for what holds secrets, or more than anybody would read: the name of the type, and of its fields
/// those that are named.
#[macro_export]
macro_rules! hidden {
    ($($name:ident $({ $($shown:ident),+ })?),+) => {
        $(impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $($(shown.field(stringify!($shown), &self.$shown);)+)?
                shown.finish_non_exhaustive()
            }
        })+
    };
}

/// Text that `Debug` does not show and that is wiped on drop.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

hidden!(SecretText);

impl FromStr for SecretText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}
