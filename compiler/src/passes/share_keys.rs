//! Lets stages share keys where that is cheaper than each having the modulus that suits it best.
//!
//! Assumes a choice for every stage. Makes true: no stage alone can take the keys of another one and lower the price of
//! the whole, Galois keys included. What a stage loses by a modulus that is wider than it needs is a few bits of each
//! number that it sends; what it gains is every key that the other stages have already.

use std::collections::BTreeSet;

use chococ_plans::cost::{count, galois_message_bytes};
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::LinearLayer;
use chococ_plans::packing::layout::Layout;
use chococ_plans::params::KeyParameters;
use rayon::prelude::*;

use crate::passes::choose_packing::Choice;
use crate::passes::choose_parameters::{Demand, under_keys};
use crate::target::Prices;

/// Moves stages to the keys of others, the most profitable move first, as long as any is.
pub fn share_keys(layers: &[&LinearLayer], choices: Vec<Choice>, prices: &Prices) -> Vec<Choice> {
    let sets: BTreeSet<KeyParameters> = choices.iter().map(|choice| choice.parameters.keys.clone()).collect();
    let options: Vec<Vec<Choice>> =
        layers.par_iter().zip(&choices).map(|(layer, choice)| options(layer, choice, &sets)).collect();
    let mut choices = choices;
    let mut price = price_of(&choices, prices);
    loop {
        let mut best: Option<(f64, usize, &Choice)> = None;
        for (stage, options) in options.iter().enumerate() {
            for option in options {
                let before = std::mem::replace(&mut choices[stage], option.clone());
                let moved = price_of(&choices, prices);
                choices[stage] = before;
                if moved < best.map_or(price, |(best, ..)| best) {
                    best = Some((moved, stage, option));
                }
            }
        }
        let Some((moved, stage, option)) = best else { return choices };
        (choices[stage], price) = (option.clone(), moved);
    }
}

/// Bytes of all Galois keys, where equal parameters share them.
pub fn key_bytes(choices: &[Choice]) -> usize {
    let sets: BTreeSet<&KeyParameters> = choices.iter().map(|choice| &choice.parameters.keys).collect();
    galois_message_bytes(sets.into_iter().map(|keys| {
        let sharing = choices.iter().filter(|choice| choice.parameters.keys == *keys);
        (keys, sharing.flat_map(|choice| &choice.galois).collect::<BTreeSet<_>>().len())
    }))
}

fn price_of(choices: &[Choice], prices: &Prices) -> f64 {
    let stages = choices.iter().map(|choice| prices.of(&choice.parameters.keys, choice.packing, &choice.cost));
    stages.sum::<f64>() + prices.of_keys(key_bytes(choices))
}

/// The choice under each of the key sets that serve it.
fn options(layer: &LinearLayer, choice: &Choice, sets: &BTreeSet<KeyParameters>) -> Vec<Choice> {
    if choice.galois.is_empty() {
        return vec![choice.clone()];
    }
    let layout =
        Layout::new(&layer.operator, choice.packing, choice.parameters.keys.ring_degree).expect("what was chosen fits");
    let evaluation = Evaluation::new(layer, &layout);
    let demand = Demand::new(layer, &layout, &evaluation);
    let under = |keys| {
        let (parameters, budget) = under_keys(&demand, keys)?;
        let cost = count(&parameters, &layout, &evaluation);
        Some(Choice { parameters, budget, cost, ..choice.clone() })
    };
    sets.iter().filter_map(under).collect()
}
