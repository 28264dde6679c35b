//! Coefficients: tiles of every size, with every way to interleave, stack and merge.

use std::collections::{BTreeMap, BTreeSet};

use chococ_plans::cost::Cost;
use chococ_plans::network::LinearLayer;
use chococ_plans::packing::coefficients::tiles::Tiles;
use chococ_plans::packing::misfit::Misfit;
use chococ_plans::packing::windows::Windows;
use chococ_plans::packing::{CoefficientPacking, Packing};

use super::{Choice, Outcome, Search};

/// Tries everything at one ring degree, the most promising first.
pub(super) fn attempt(search: Search<'_>, ring_degree: usize, to_beat: f64) -> Outcome {
    let windows = Windows::new(&search.layer.operator);
    let candidates = candidates(search, &windows, ring_degree);
    let Some(first) = candidates.first() else {
        let smallest = Tiles::new(&windows, [1, 1]).block;
        return Outcome::Misfit(Misfit::TooManyCells { cells: smallest, ring_degree });
    };
    if first.price_at_least > to_beat {
        return Outcome::CannotBeat { bytes_at_least: first.bytes_at_least };
    }
    let mut closest = f64::NEG_INFINITY;
    let mut found: Option<Choice> = None;
    // Noise depends on what is stacked and merged alone, and grows with either.
    let mut too_noisy: Vec<(usize, usize)> = Vec::new();
    for Candidate { packing, price_at_least, .. } in candidates {
        if price_at_least > found.as_ref().map_or(to_beat, |found| found.price(search.prices)) {
            break;
        }
        if too_noisy.iter().any(|&(stack, merge)| packing.stack >= stack && packing.merge >= merge) {
            continue;
        }
        match search.variant(Packing::Coefficients(packing), ring_degree) {
            Ok(choice) => search.keep(&mut found, choice),
            Err(budget_bits) => {
                closest = closest.max(budget_bits);
                too_noisy.push((packing.stack, packing.merge));
            }
        }
    }
    found.map_or(Outcome::NoBudget(closest), |choice| Outcome::Fits(Box::new(choice)))
}

/// A packing, and what it costs at least.
struct Candidate {
    price_at_least: f64,
    bytes_at_least: usize,
    packing: CoefficientPacking,
}

/// Lists all packings, those of the lowest bounds first.
fn candidates(search: Search<'_>, windows: &Windows, ring_degree: usize) -> Vec<Candidate> {
    let layer = search.layer;
    let channels_in = layer.operator.input_shape()[0] * windows.phase_count();
    let channels_out = layer.operator.output_channels();
    let bits = Bits::new(layer, ring_degree);
    let [rows, columns] = [0, 1].map(|axis| cuts(windows.output[axis]));
    let mut packings = BTreeMap::new();
    for tile in rows.iter().flat_map(|&rows| columns.iter().map(move |&columns| [rows, columns])) {
        let tiles = Tiles::new(windows, tile);
        let returned = channels_out * windows.output[0] * windows.output[1];
        let window = tiles.window_cells().count();
        for interleave in powers_of_two(channels_in.next_power_of_two().min(ring_degree)) {
            let most_at_once = (ring_degree / interleave / tiles.block).min(tiles.tiles());
            for tiles_at_once in powers_of_two(most_at_once).chain([most_at_once]).filter(|&at_once| at_once > 0) {
                let most_stacked = (ring_degree / interleave / tiles.block / tiles_at_once).min(channels_out);
                let inputs = tiles.tiles().div_ceil(tiles_at_once) * channels_in.div_ceil(interleave);
                for stack in powers_of_two(most_stacked).chain([most_stacked]) {
                    // About as many as are met by stacked kernels, but for what tiles share.
                    let met = (2 * stack - 1) * tiles_at_once * window * interleave;
                    let sent =
                        if stack == 1 { channels_in * tiles.tiles() * window } else { inputs * met.min(ring_degree) };
                    for merge in powers_of_two(interleave.min(channels_out.div_ceil(stack).next_power_of_two())) {
                        let packing = CoefficientPacking { tile, tiles_at_once, interleave, stack, merge };
                        let outputs = tiles.tiles().div_ceil(tiles_at_once) * channels_out.div_ceil(stack * merge);
                        packings.insert(packing, bits.cost([inputs, outputs], sent, outputs * ring_degree, returned));
                    }
                }
            }
        }
    }
    let candidate = |(packing, cost): (CoefficientPacking, Cost)| Candidate {
        price_at_least: search.prices.at_least(ring_degree, 1, Packing::Coefficients(packing), &cost),
        bytes_at_least: cost.bytes(),
        packing,
    };
    let mut candidates: Vec<Candidate> = packings.into_iter().map(candidate).collect();
    candidates.sort_by(|a, b| a.price_at_least.total_cmp(&b.price_at_least));
    candidates
}

/// The sizes of tile that cut a length into some number of them without need for a smaller one: the largest for each
/// number.
fn cuts(length: usize) -> Vec<usize> {
    let sizes: BTreeSet<usize> = (1..=length).map(|pieces| length.div_ceil(pieces)).collect();
    sizes.into_iter().collect()
}

fn powers_of_two(most: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS - most.leading_zeros()).map(|log| 1 << log)
}

/// Bits that a number takes on the wire at least.
struct Bits {
    sent: f64,
    c1: f64,
    c0: f64,
}

impl Bits {
    /// A fresh error, multiplied by the weights, must stay below q/2t by the tail of its distribution, and the rounding
    /// of c1 below p/2t.
    fn new(layer: &LinearLayer, ring_degree: usize) -> Bits {
        let t = (layer.width() as f64).log2();
        let rounding = (ring_degree as f64 / 18.0).log2() / 2.0;
        Bits { sent: t + (layer.weight_energy as f64).max(1.0).log2() / 2.0, c1: t + 4.0 + rounding, c0: t + 1.0 }
    }

    /// The least cost of so many ciphertexts, and so many numbers of requests and of either half of replies.
    fn cost(&self, [ciphertexts_up, ciphertexts_down]: [usize; 2], sent: usize, c1: usize, c0: usize) -> Cost {
        Cost {
            ciphertexts_up,
            ciphertexts_down,
            bytes_up: (sent as f64 * self.sent / 8.0) as usize,
            bytes_down: ((c1 as f64 * self.c1 + c0 as f64 * self.c0) / 8.0) as usize,
            ..Cost::default()
        }
    }
}
