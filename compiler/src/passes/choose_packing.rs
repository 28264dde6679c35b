//! Chooses, for each server stage, the packing and the parameters that cost least, and keeps what lost and why.
//!
//! Assumes ranges proved. Makes true: every stage has parameters under which it decrypts correctly. All ring degrees,
//! both ways to align a window, all orders of rotations and all splits of the channel shifts are tried; those that
//! cannot beat what was found are skipped by a bound.
//!
//! The cost is in bytes: those of the messages, and an exchange rate for what is no byte on every inference.

use chococ_plans::cost::{Cost, count};
use chococ_plans::network::LinearLayer;
use chococ_plans::noise::{Budget, Profile};
use chococ_plans::packing::grid::Grid;
use chococ_plans::packing::layout::{Layout, Misfit};
use chococ_plans::packing::{Alignment, Packing, Rotation, SlotPacking, TapOrder};
use chococ_plans::params::Parameters;
use chococ_plans::plan::RunnerUp;
use chococ_plans::security::ring_degrees;

use crate::passes::choose_parameters::{Demand, choose_parameters};

/// What one key switch of the server weighs, in bytes of a message.
const BYTES_PER_KEY_SWITCH: f64 = 32.0;

/// What one Galois key weighs: it is sent once a session, and made once by the client.
const BYTES_PER_GALOIS_KEY: f64 = 256.0;

/// Key switches that take as long as one hoisted rotation, and as one product.
const HOISTED: f64 = 0.5;
const PRODUCT: f64 = 1.0 / 64.0;

/// Limits on what is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restriction {
    /// Only this alignment; otherwise all but the masked baseline.
    pub alignment: Option<Alignment>,
    /// Only this ring degree.
    pub ring_degree: Option<usize>,
}

/// The choice for one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Where numbers sit.
    pub packing: SlotPacking,
    /// Under which parameters.
    pub parameters: Parameters,
    /// The rotations that need keys.
    pub galois: Vec<Rotation>,
    /// Noise budgets.
    pub budget: Budget,
    /// Bytes and operations.
    pub cost: Cost,
}

/// All that was tried for one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSearch {
    /// The layer.
    pub stage: String,
    /// One entry for each alignment and ring degree.
    pub attempts: Vec<Attempt>,
}

/// The best that one alignment came to at one ring degree.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// How windows are aligned.
    pub alignment: Alignment,
    /// N.
    pub ring_degree: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It does not fit.
    Misfit(Misfit),
    /// No secure parameters leave a noise budget; the best comes to this many bits.
    NoBudget(f64),
    /// Its ciphertexts alone take more bytes than the best choice so far.
    CannotBeat {
        /// Bytes that it takes at least.
        bytes_at_least: usize,
    },
    /// It works.
    Fits(Box<Choice>),
}

impl Choice {
    /// The cost by which choices are compared.
    fn weight(&self) -> f64 {
        let cost = &self.cost;
        let key_switches = cost.rotations as f64
            + HOISTED * cost.hoisted_rotations as f64
            + PRODUCT * (cost.products + cost.mask_products) as f64;
        cost.bytes() as f64 + BYTES_PER_KEY_SWITCH * key_switches + BYTES_PER_GALOIS_KEY * self.galois.len() as f64
    }
}

/// Tries everything for one stage; the choice is None where nothing works.
pub fn choose_packing(layer: &LinearLayer, within: Restriction) -> (Option<Choice>, StageSearch) {
    // Where no window reaches beyond the image there is nothing to keep out, and all alignments are one.
    let wraps = Grid::new(&layer.operator, Alignment::Punctured).wraps();
    let alignments = match within.alignment {
        Some(alignment) => vec![alignment],
        None if wraps => vec![Alignment::Rotational, Alignment::Punctured],
        None => vec![Alignment::Rotational],
    };
    let mut best: Option<Choice> = None;
    let mut attempts = Vec::new();
    for ring_degree in ring_degrees().filter(|degree| within.ring_degree.is_none_or(|only| only == *degree)) {
        for &alignment in &alignments {
            let outcome = attempt(layer, alignment, ring_degree, best.as_ref());
            if let Outcome::Fits(choice) = &outcome
                && best.as_ref().is_none_or(|best| choice.weight() < best.weight())
            {
                best = Some((**choice).clone());
            }
            attempts.push(Attempt { alignment, ring_degree, outcome });
        }
    }
    (best, StageSearch { stage: layer.name.clone(), attempts })
}

impl StageSearch {
    /// The best of those that fitted and lost.
    pub fn runner_up(&self, winner: &Choice) -> Option<RunnerUp> {
        let fits = self.attempts.iter().filter_map(|attempt| match &attempt.outcome {
            Outcome::Fits(choice) => Some(choice),
            Outcome::Misfit(_) | Outcome::NoBudget(_) | Outcome::CannotBeat { .. } => None,
        });
        fits.filter(|choice| ***choice != *winner).min_by(|a, b| a.weight().total_cmp(&b.weight())).map(|choice| {
            RunnerUp {
                packing: Packing::Slots(choice.packing),
                ring_degree: choice.parameters.ring_degree,
                bytes: choice.cost.bytes(),
            }
        })
    }
}

/// Tries all orders of rotations and all splits of the shifts.
fn attempt(layer: &LinearLayer, alignment: Alignment, ring_degree: usize, best: Option<&Choice>) -> Outcome {
    let plain = SlotPacking { alignment, taps: TapOrder::Inputs, baby_shifts: 1 };
    let layout = match Layout::new(&layer.operator, plain, ring_degree) {
        Ok(layout) => layout,
        Err(misfit) => return Outcome::Misfit(misfit),
    };
    // No residue is narrower than the plaintext modulus, and no prime with a transform than 2N.
    let narrowest = layer.width().ilog2().max(ring_degree.ilog2() + 1) as usize + 1;
    let polynomials = layout.placement.inputs + 2 * layout.placement.outputs;
    let bytes_at_least = polynomials * (ring_degree * narrowest).div_ceil(8);
    if best.is_some_and(|best| bytes_at_least as f64 > best.weight()) {
        return Outcome::CannotBeat { bytes_at_least };
    }
    let taps: &[TapOrder] = match (alignment, layout.grid.offsets().count()) {
        (Alignment::Masked, _) | (_, 1) => &[TapOrder::Inputs],
        _ => &[TapOrder::Inputs, TapOrder::Outputs, TapOrder::Mixed],
    };
    let splits = layout.placement.shifts.trailing_zeros();
    let mut closest = f64::NEG_INFINITY;
    let mut found: Option<Choice> = None;
    for (&taps, log_split) in taps.iter().flat_map(|taps| (0..=splits).map(move |log| (taps, log))) {
        match variant(layer, SlotPacking { alignment, taps, baby_shifts: 1 << log_split }, ring_degree) {
            Ok(choice) if found.as_ref().is_none_or(|found| choice.weight() < found.weight()) => found = Some(choice),
            Ok(_) => {}
            Err(budget_bits) => closest = closest.max(budget_bits),
        }
    }
    found.map_or(Outcome::NoBudget(closest), |choice| Outcome::Fits(Box::new(choice)))
}

/// One packing in all detail; Err with the best noise budget where none is left.
fn variant(layer: &LinearLayer, packing: SlotPacking, ring_degree: usize) -> Result<Choice, f64> {
    let layout = Layout::new(&layer.operator, packing, ring_degree).map_err(|_| f64::NEG_INFINITY)?;
    let program = layout.program();
    let galois: Vec<Rotation> = program.galois_rotations().into_iter().collect();
    let demand = Demand {
        ring_degree,
        width: layer.width(),
        profile: &Profile::new(&layout, &program),
        rotates: !galois.is_empty(),
        ciphertexts: (layout.placement.inputs, layout.placement.outputs),
    };
    let (parameters, budget) = choose_parameters(&demand)?;
    let cost = count(&parameters, &layout, &program);
    Ok(Choice { packing, parameters, galois, budget, cost })
}

#[cfg(test)]
mod tests {
    use chococ_plans::network::{Quantizer, ValueId};
    use chococ_plans::op::{Dense, Linear};

    use super::*;

    fn dense(inputs: usize, outputs: usize, width: i64) -> LinearLayer {
        LinearLayer {
            name: "fc".to_owned(),
            operator: Linear::Dense(Dense { inputs, outputs }),
            input: ValueId(0),
            output: ValueId(1),
            quantizer: Quantizer { scale: 1.0, low: 0, high: 15 },
            weight_bits: 4,
            output_scales: vec![1.0; outputs],
            output_ranges: vec![(0, width); outputs],
        }
    }

    #[test]
    fn the_choice_is_the_best_of_all_attempts() {
        let layer = dense(300, 40, 20_000);
        let (choice, search) = choose_packing(&layer, Restriction::default());
        let choice = choice.expect("it fits");
        for attempt in &search.attempts {
            // Without a best so far, nothing is skipped.
            match super::attempt(&layer, attempt.alignment, attempt.ring_degree, None) {
                Outcome::Fits(other) => assert!(choice.weight() <= other.weight(), "{other:?}"),
                Outcome::CannotBeat { .. } => panic!("nothing to beat"),
                Outcome::Misfit(_) | Outcome::NoBudget(_) => {}
            }
        }
    }

    #[test]
    fn the_runner_up_is_another_one() {
        let (choice, search) = choose_packing(&dense(300, 40, 20_000), Restriction::default());
        let choice = choice.expect("it fits");
        let second = search.runner_up(&choice).expect("others fit too");
        assert_ne!(
            (second.packing, second.ring_degree),
            (Packing::Slots(choice.packing), choice.parameters.ring_degree)
        );
    }

    #[test]
    fn restrictions_are_kept() {
        let within = Restriction { alignment: Some(Alignment::Masked), ring_degree: Some(8192) };
        let (choice, search) = choose_packing(&dense(30, 4, 2_000), within);
        let choice = choice.expect("it fits");
        assert_eq!(choice.packing.alignment, Alignment::Masked);
        assert_eq!(choice.parameters.ring_degree, 8192);
        assert_eq!(search.attempts.len(), 1);
    }

    #[test]
    fn a_ring_too_small_is_refused() {
        let within = Restriction { ring_degree: Some(1024), ..Restriction::default() };
        assert_eq!(choose_packing(&dense(3000, 500, 180_000), within).0, None);
    }
}
