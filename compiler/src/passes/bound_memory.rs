//! Takes packings with fewer weights to keep ready, until the server's memory holds those of all stages.
//!
//! Assumes a choice for every stage, and all that was tried for it. Makes true: the weights take no more bytes than they
//! may, or no stage has anything smaller left. Slots repeat every weight in many places, coefficients hardly do; the
//! stage that pays the least for each byte that it saves changes first.

use crate::passes::choose_packing::{Attempt, Choice, StageSearch};
use crate::target::Prices;

/// Changes choices until their weights take at most `most` bytes together, if they can.
pub fn bound_memory(mut choices: Vec<Choice>, searches: &[StageSearch], most: usize, prices: &Prices) -> Vec<Choice> {
    while choices.iter().map(|choice| choice.cost.server_bytes).sum::<usize>() > most {
        let changes = choices.iter().zip(searches).enumerate().flat_map(|(stage, (choice, search))| {
            let others = search.attempts.iter().filter_map(Attempt::choice);
            others.filter_map(move |other| {
                let saved = choice.cost.server_bytes.checked_sub(other.cost.server_bytes).filter(|&saved| saved > 0)?;
                let rate = (other.price(prices) - choice.price(prices)) / saved as f64;
                Some((rate, stage, other))
            })
        });
        let Some((_, stage, other)) = changes.min_by(|(a, ..), (b, ..)| a.total_cmp(b)) else { break };
        choices[stage] = other.clone();
    }
    choices
}
