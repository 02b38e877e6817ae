//! Names and forms of settings.

mod form;

pub use self::form::{CHAIN_PRESETS, Fallback, Form, Item};

/// One setting, `section.key` in the file and `FARTHING_SECTION__KEY` in the environment.
#[derive(Debug)]
pub struct SettingKey {
    pub name: &'static str,
    pub form: Form,
    pub default: Fallback,
    /// One sentence for the example file, with the unit and the reason.
    pub about: &'static str,
}

pub(super) const fn integer(min: u64, max: u64) -> Form {
    Form::Integer { min, max }
}

impl SettingKey {
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(section, _)| section)
    }

    /// The name within its section.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }

    /// `FARTHING_GATEWAY__LISTEN`
    pub fn variable(&self) -> String {
        format!("FARTHING_{}", self.name.replace('.', "__").to_uppercase())
    }

    pub const fn is_secret(&self) -> bool {
        matches!(self.form, Form::Secret)
    }

    pub const fn is_list(&self) -> bool {
        matches!(self.form, Form::List(_))
    }
}

#[cfg(test)]
mod tests;
