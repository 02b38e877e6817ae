//! The package's name, in every spelling that code, metadata and paths need, and such that the language and its registry
//! take it. One that they refuse gets `-sdk` at its end.

use farthing_bridge::{description::ApiDescription, shown};
use heck::{ToKebabCase, ToLowerCamelCase, ToPascalCase, ToSnakeCase};
use serde::Serialize;

use super::{
    Options, SdkError,
    names::written,
    profile::{Case, Profile, Registry},
};

/// Words that some language keeps for itself, and names of its library, are names of packages nowhere: whoever offers a
/// service in two languages wants one name.
const TAKEN: &str = "abstract api as async await class const default enum example fn for func function go http if import in \
    internal interface java json main match mod module native new package php python return self std struct super test \
    tests type use";

/// The name of the package, in every spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Package {
    /// As the registry of the language knows it: `@scope/name`, `example.com/name`, `vendor/name`, or `kebab`.
    pub(super) name: String,
    pub(super) kebab: String,
    pub(super) snake: String,
    pub(super) camel: String,
    pub(super) pascal: String,
    /// Small letters and digits alone, as Go and Java like it.
    pub(super) flat: String,
}

impl Package {
    /// The caller's name, or one made from the service's.
    ///
    /// # Errors
    /// [`SdkError::Package`] for a name of the caller's that cannot be one.
    pub(super) fn new(
        options: &Options,
        description: &ApiDescription,
        profile: &Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SdkError> {
        if let Some(given) = &options.package {
            if !is_possible(given) {
                return Err(SdkError::Package(shown(given)));
            }
            let package = Self::of(given, last_word(given, profile), profile);
            let is_kept = match profile.packages.registry {
                Registry::Npm | Registry::GoModule => package.name == *given,
                Registry::Composer if given.contains('/') => package.name == *given,
                Registry::Kebab | Registry::Composer => package.kebab == given.to_kebab_case(),
            };
            if !is_kept {
                warnings.push(format!("the package `{}` is called `{}`", shown(given), package.name));
            }
            return Ok(package);
        }
        let title = if options.service_name.is_empty() { &description.title } else { &options.service_name };
        let words = written(title, Case::Snake);
        let words = match words.chars().next() {
            None => "service".to_owned(),
            Some(c) if c.is_ascii_digit() => format!("n{words}"),
            Some(_) => words,
        };
        Ok(Self::of("", &words, profile))
    }

    fn of(given: &str, words: &str, profile: &Profile) -> Self {
        let snake = words.to_snake_case();
        let is_taken = |name: &str| {
            let taken = [TAKEN, profile.packages.taken.as_str(), profile.names.keywords.as_str()];
            taken.iter().flat_map(|names| names.split_ascii_whitespace()).any(|word| word == name)
        };
        let words = if is_taken(&snake) || is_taken(&snake.replace('_', "")) {
            format!("{snake}_sdk")
        } else {
            words.to_owned()
        };
        let snake = words.to_snake_case();
        let mut package = Self {
            name: words.to_kebab_case(),
            kebab: words.to_kebab_case(),
            camel: words.to_lower_camel_case(),
            pascal: words.to_pascal_case(),
            flat: snake.replace('_', ""),
            snake,
        };
        package.name = package.registered(given, &is_taken, profile.packages.registry);
        package
    }

    /// The name for the registry, as near to the given one as it allows.
    fn registered(&self, given: &str, is_taken: &dyn Fn(&str) -> bool, registry: Registry) -> String {
        let small = given.to_ascii_lowercase();
        let (before, last) = small.rsplit_once('/').unwrap_or(("", &small));
        // What the package is not called in code it is not called elsewhere.
        let last = if last.to_snake_case() == self.snake { last } else { &*self.kebab };
        match registry {
            Registry::Kebab => self.kebab.clone(),
            Registry::Npm => match before.strip_prefix('@') {
                Some(scope) if !scope.is_empty() && !scope.contains('/') => format!("@{scope}/{last}"),
                _ => last.to_owned(),
            },
            Registry::Composer => match before {
                // A part is of letters and digits, with single dashes between.
                vendor if !vendor.is_empty() && vendor == vendor.to_kebab_case() => {
                    format!("{vendor}/{}", self.kebab)
                }
                _ => format!("farthing-client/{}", self.kebab),
            },
            // Without a dot the first part is a module of Go's own, or one that only a `replace` finds.
            Registry::GoModule => {
                let path = given.trim_start_matches('@');
                let first = path.split('/').next().unwrap_or_default();
                let is_own = path.rsplit('/').any(|part| part.to_snake_case() == self.snake);
                if is_own && !is_taken(&first.to_ascii_lowercase()) {
                    path.to_owned()
                } else if before.contains('.') {
                    format!("{before}/{}", self.kebab)
                } else {
                    self.kebab.clone()
                }
            }
        }
    }
}

fn is_possible(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_scoped = name.starts_with('@');
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@')
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.contains("//")
        && name.chars().skip(1).all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && (!is_scoped || name.split('/').count() == 2 && !name.starts_with("@/"))
        && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the word that code calls the package: the last part, in Go the one before a version such as `v2`.
fn last_word<'n>(given: &'n str, profile: &Profile) -> &'n str {
    let mut parts = given.rsplit('/');
    let last = parts.next().unwrap_or_default();
    let is_version = last
        .strip_prefix('v')
        .is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty());
    match parts.next() {
        Some(before) if is_version && profile.packages.registry == Registry::GoModule => before,
        _ => last,
    }
}
