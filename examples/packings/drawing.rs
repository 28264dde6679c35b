//! Letters, digits and grids.

use crate::tensor::CHANNELS;

/// How a slot or coefficient is marked that is a result of an output channel.
pub const CHANNEL_DIGITS: [char; CHANNELS] = ['0', '1'];

/// The letter of a code of the tensor.
pub fn letter(code: u64) -> char {
    match code as u8 {
        0 => '.',
        code @ 1..=16 => char::from(b'a' + code - 1),
        code => char::from(b'A' + code - 17),
    }
}

/// Codes of the tensor, a character each.
pub fn letters(codes: &[u64]) -> String {
    codes.iter().copied().map(letter).collect()
}

/// Weights, or the ones of a mask, a character each.
pub fn digits(values: impl IntoIterator<Item = u64>) -> String {
    values.into_iter().map(|value| if value == 0 { '.' } else { char::from(b'0' + value as u8) }).collect()
}

/// Prints the title of a section.
pub fn title(text: &str) {
    println!("\n{text}\n{}", "=".repeat(text.len()));
}

/// Prints a sentence between pictures, in lines of at most 99 characters.
pub fn say(text: &str) {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("begins with one");
        if line.len() + 1 + word.len() > 99 {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    println!("\n{}\n", lines.join("\n"));
}

/// Prints grids side by side, each below its name.
pub fn beside(grids: &[(String, Vec<String>)]) {
    let height = grids.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
    for line in 0..=height {
        let text = |(name, lines): &(String, Vec<String>)| {
            let text = line.checked_sub(1).map_or(name.as_str(), |line| lines.get(line).map_or("", |text| text));
            format!("{text:<0$}", lines[0].len().max(name.len()))
        };
        println!("  {}", grids.iter().map(text).collect::<Vec<_>>().join("     ").trim_end());
    }
}

/// Cuts values into lines of so many columns.
pub fn grid<V>(values: &[V], columns: usize, show: impl Fn(&V) -> String) -> Vec<String> {
    values.chunks(columns).map(|row| row.iter().map(&show).collect::<Vec<_>>().join(" ")).collect()
}
