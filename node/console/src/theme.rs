//! Light, dark, or as the system is: chosen in a cookie.

pub(super) const THEME_COOKIE: &str = "farthing-theme";

/// Light, dark, or as the system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    pub(super) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// As forms, the cookie and the stylesheet have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(super) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.name() == name).unwrap_or(Self::System)
    }
}
