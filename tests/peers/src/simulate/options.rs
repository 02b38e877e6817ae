//! What `farthing-simulate` is asked to do: a command and its options, read strictly. Pure.
//!
//! A run takes minutes up to an hour, so a mistyped word is refused at once instead of being left out.

use std::collections::BTreeMap;

/// One number that a command takes.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// With its dashes.
    pub name: &'static str,
    /// What it is when it is not given.
    pub default: u32,
    /// What it must be at least.
    pub least: u32,
    pub meaning: &'static str,
}

/// Something that can be simulated.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub name: &'static str,
    pub meaning: &'static str,
    pub choices: &'static [Choice],
}

/// What the words of a command line come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To be printed; nothing else is wanted.
    Help(String),
    Run(&'static str, Numbers),
}

/// The numbers of a command, given or default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(BTreeMap<&'static str, u32>);

impl Numbers {
    /// # Panics
    /// When the command has no such option.
    pub fn of(&self, name: &str) -> u32 {
        self.0[name]
    }

    /// The same as a count of things.
    ///
    /// # Panics
    /// As [`Self::of`].
    pub fn count(&self, name: &str) -> usize {
        self.of(name) as usize
    }
}

/// Reads the words after the program's name.
pub fn read(commands: &'static [Command], words: &[String]) -> Result<Wanted, String> {
    let Some((first, rest)) = words.split_first() else {
        return Err(format!("a command is missing\n\n{}", usage(commands)));
    };
    let is_help = |word: &String| matches!(word.as_str(), "--help" | "-h" | "help");
    if is_help(first) {
        return Ok(Wanted::Help(usage(commands)));
    }
    let Some(command) = commands.iter().find(|command| command.name == first) else {
        let names: Vec<_> = commands.iter().map(|command| command.name).collect();
        return Err(format!(
            "there is no command `{first}`; expected one of {}\n\n{}",
            names.join(", "),
            usage(commands)
        ));
    };
    if rest.iter().any(is_help) {
        return Ok(Wanted::Help(explained(command)));
    }
    let numbers = numbers(command, rest).map_err(|wrong| format!("{wrong}\n\n{}", explained(command)))?;
    Ok(Wanted::Run(command.name, numbers))
}

fn numbers(command: &Command, words: &[String]) -> Result<Numbers, String> {
    let mut numbers: BTreeMap<_, _> =
        command.choices.iter().map(|choice| (choice.name, choice.default)).collect();
    let mut given = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // Both `--nodes 5` and `--nodes=5` are written.
        let (name, joined) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let Some(choice) = command.choices.iter().find(|choice| choice.name == name) else {
            let names: Vec<_> = command.choices.iter().map(|choice| choice.name).collect();
            return Err(format!(
                "`{}` takes no `{name}`; expected one of {}",
                command.name,
                names.join(", ")
            ));
        };
        let value = joined.or_else(|| words.next().map(String::as_str));
        let expected = format!("a whole number from {} to {}", choice.least, u32::MAX);
        let Some(value) = value else { return Err(format!("`{name}` needs {expected} after it")) };
        let number = value.parse().ok().filter(|number| *number >= choice.least);
        let Some(number) = number else { return Err(format!("`{name}` is `{value}`; expected {expected}")) };
        if given.contains(&choice.name) {
            return Err(format!("`{name}` is given twice; expected once"));
        }
        given.push(choice.name);
        numbers.insert(choice.name, number);
    }
    Ok(Numbers(numbers))
}

fn usage(commands: &[Command]) -> String {
    let mut text = "usage: farthing-simulate <command> [options]\n\n".to_owned();
    for command in commands {
        text += &format!("  {:<9} {}\n", command.name, command.meaning);
    }
    text + "\n`farthing-simulate <command> --help` explains its options.\n\
            Tables go to standard output, progress to standard error, and all figures into \
            target/simulate/report.json.\n"
}

fn explained(command: &Command) -> String {
    let mut text = format!("usage: farthing-simulate {}", command.name);
    for Choice { name, default, .. } in command.choices {
        text += &format!(" [{name} {default}]");
    }
    text += &format!("\n\n{}\n\n", command.meaning);
    for Choice { name, default, meaning, .. } in command.choices {
        text += &format!("  {name:<12} {meaning} (default {default})\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: &[Command] = &[Command {
        name: "idle",
        meaning: "Watches nodes",
        choices: &[
            Choice { name: "--nodes", default: 11, least: 2, meaning: "nodes" },
            Choice { name: "--watch", default: 30, least: 1, meaning: "seconds" },
        ],
    }];

    fn read(line: &str) -> Result<Wanted, String> {
        super::read(COMMANDS, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_the_others_have_their_defaults() {
        for line in ["idle --watch 7", "idle --watch=7"] {
            let Ok(Wanted::Run("idle", numbers)) = read(line) else { panic!("{line}") };
            assert_eq!((numbers.of("--nodes"), numbers.count("--watch")), (11, 7));
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_was_expected() {
        for (line, said) in [
            ("", "a command is missing"),
            ("idel", "there is no command `idel`; expected one of idle"),
            ("idle --node 5", "takes no `--node`; expected one of --nodes, --watch"),
            ("idle 5", "takes no `5`"),
            ("idle --nodes", "`--nodes` needs a whole number from 2"),
            ("idle --nodes 1", "`--nodes` is `1`; expected a whole number from 2"),
            ("idle --nodes many", "`--nodes` is `many`"),
            ("idle --nodes -5", "`--nodes` is `-5`"),
            ("idle --nodes 4294967296", "`--nodes` is `4294967296`"),
            ("idle --nodes 2 --nodes 3", "given twice"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(
                refused.contains(said) && refused.contains("usage: farthing-simulate"),
                "{line}: {refused}"
            );
        }
    }

    #[test]
    fn help_explains_and_runs_nothing() {
        for line in ["--help", "-h", "help", "idle --help", "idle --watch 5 -h", "idle --nodes --help"] {
            let Ok(Wanted::Help(text)) = read(line) else { panic!("{line}") };
            assert!(text.contains("Watches nodes"), "{line}: {text}");
        }
        let Ok(Wanted::Help(text)) = read("idle --help") else { panic!() };
        assert!(text.contains("--nodes") && text.contains("default 11"), "{text}");
    }
}
