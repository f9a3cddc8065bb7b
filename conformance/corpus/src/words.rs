//! Invented words: names for groups, kinds and fields, and sentences of a wanted length.

use crate::dice::Dice;

const SYLLABLES: [&str; 24] = [
    "ba", "cor", "del", "fin", "gra", "hal", "im", "jor", "kel", "lum", "mer", "nor", "op", "pra",
    "quil", "ras", "sel", "tor", "ul", "ver", "wen", "xan", "yor", "zel",
];

const NOUNS: [&str; 20] = [
    "harbour", "queue", "ledger", "window", "policy", "route", "bucket", "cluster", "record",
    "secret", "schedule", "quota", "gateway", "volume", "alarm", "domain", "replica", "target",
    "filter", "stream",
];

const VERBS: [&str; 8] =
    ["limits", "names", "selects", "describes", "opens", "keeps", "replaces", "counts"];

/// A made-up word, always the same for a number: numbers below 13,824 have words of their own.
pub fn word(number: usize) -> String {
    let count = SYLLABLES.len();
    let (first, second, third) =
        (number % count, number / count % count, number / count / count % count);
    format!("{}{}{}", SYLLABLES[first], SYLLABLES[second], SYLLABLES[third])
}

/// A word with a capital.
pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The name of a field, in camel case.
pub fn field_name(dice: &mut Dice) -> String {
    let noun = *dice.pick(&NOUNS);
    let word = word(dice.below(13_824));
    format!("{noun}{}", capitalised(&word))
}

/// Sentences of about `length` characters, in lines of at most 100.
pub fn description(dice: &mut Dice, length: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut written = 0;
    while written < length {
        let (noun, verb, other) = (*dice.pick(&NOUNS), *dice.pick(&VERBS), *dice.pick(&NOUNS));
        let sentence =
            format!("The {noun} {verb} what the {other} {} holds.", word(dice.below(500)));
        let sentence = sentence.get(..(length - written).max(3)).unwrap_or(&sentence).trim_end();
        written += sentence.len() + 1;
        if !line.is_empty() && line.len() + sentence.len() > 100 {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(sentence);
    }
    lines.push(line);
    lines
}
