//! Light, dark, or as the system is: chosen in a cookie.

pub(super) const THEME_COOKIE: &str = "farthing-theme";

crate::texts::words! {
    /// Light, dark, or as the system is; named as forms, the cookie and the stylesheet have it.
    pub(super) enum Theme(name.0: &'static str) {
        System = "system";
        Light = "light";
        Dark = "dark";
    }
}

impl Theme {
    pub(super) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.name() == name).unwrap_or(Self::System)
    }
}
