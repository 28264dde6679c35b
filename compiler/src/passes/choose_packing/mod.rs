//! Chooses, for each server stage, the packing and the parameters that cost least, and keeps what lost and why.
//!
//! Assumes ranges proved. Makes true: every stage has parameters under which it decrypts correctly. Both families of
//! packings are tried at all ring degrees: of slots, both ways to align a window, all orders of rotations and all
//! splits of the channel shifts; of coefficients, tiles of every size, with all ways to interleave, stack and
//! merge. What cannot beat the best so far is skipped by a bound. What everything costs is said by [`Prices`].

mod coefficients;
mod slots;

use chococ_plans::cost::{Cost, count, galois_key_bytes};
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::LinearLayer;
use chococ_plans::noise::Budget;
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::misfit::Misfit;
use chococ_plans::packing::windows::Windows;
use chococ_plans::packing::{Alignment, Packing, PackingKind};
use chococ_plans::params::Parameters;
use chococ_plans::plan::RunnerUp;
use chococ_plans::security::ring_degrees;

use crate::passes::choose_parameters::{Demand, choose_parameters};
use crate::target::Prices;

/// Limits on what is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restriction {
    /// Only this kind; otherwise all but the masked baseline.
    pub kind: Option<PackingKind>,
    /// Only this ring degree.
    pub ring_degree: Option<usize>,
}

/// The choice for one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Where numbers sit.
    pub packing: Packing,
    /// Under which parameters.
    pub parameters: Parameters,
    /// The automorphisms that need keys.
    pub galois: Vec<u64>,
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
    /// One entry for each kind of packing and ring degree.
    pub attempts: Vec<Attempt>,
}

/// The best that one kind of packing came to at one ring degree.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The kind.
    pub kind: PackingKind,
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
    /// The price by which choices are compared, each with keys of its own.
    pub fn price(&self, prices: &Prices) -> f64 {
        let keys = self.galois.len() * galois_key_bytes(&self.parameters.keys);
        prices.of(&self.parameters.keys, self.packing, &self.cost) + prices.of_keys(keys)
    }
}

/// The search for one stage: what it computes, and what everything costs.
#[derive(Clone, Copy)]
struct Search<'a> {
    layer: &'a LinearLayer,
    prices: &'a Prices,
}

/// Tries everything for one stage; the choice is None where nothing works.
pub fn choose_packing(layer: &LinearLayer, within: Restriction, prices: &Prices) -> (Option<Choice>, StageSearch) {
    // Where no window reaches beyond the image there is nothing to keep out, and all alignments are one.
    let wraps = Windows::new(&layer.operator).wraps();
    let kinds = match within.kind {
        Some(kind) => vec![kind],
        None => PackingKind::ALL
            .into_iter()
            .rev()
            .filter(|kind| match kind {
                PackingKind::Coefficients | PackingKind::Slots(Alignment::Rotational) => true,
                PackingKind::Slots(Alignment::Punctured) => wraps,
                PackingKind::Slots(Alignment::Masked) => false,
            })
            .collect(),
    };
    let mut attempts: Vec<Attempt> = Vec::new();
    for kind in kinds {
        // Each family by itself, so that the plan can tell what the other would have cost.
        let family = |other: PackingKind| (other == PackingKind::Coefficients) == (kind == PackingKind::Coefficients);
        for ring_degree in ring_degrees().filter(|degree| within.ring_degree.is_none_or(|only| only == *degree)) {
            let rivals = attempts.iter().filter(|attempt| family(attempt.kind)).filter_map(Attempt::choice);
            let to_beat = rivals.map(|choice| choice.price(prices)).fold(f64::INFINITY, f64::min);
            let outcome = Search { layer, prices }.attempt(kind, ring_degree, to_beat);
            attempts.push(Attempt { kind, ring_degree, outcome });
        }
    }
    let search = StageSearch { stage: layer.name.clone(), attempts };
    let choices = search.attempts.iter().filter_map(Attempt::choice);
    (choices.min_by(|a, b| a.price(prices).total_cmp(&b.price(prices))).cloned(), search)
}

impl Search<'_> {
    fn attempt(self, kind: PackingKind, ring_degree: usize, to_beat: f64) -> Outcome {
        match kind {
            PackingKind::Slots(alignment) => slots::attempt(self, alignment, ring_degree, to_beat),
            PackingKind::Coefficients => coefficients::attempt(self, ring_degree, to_beat),
        }
    }

    /// One packing in all detail; Err with the best noise budget where none is left.
    fn variant(self, packing: Packing, ring_degree: usize) -> Result<Choice, f64> {
        let layout = Layout::new(&self.layer.operator, packing, ring_degree).map_err(|_| f64::NEG_INFINITY)?;
        let evaluation = Evaluation::new(self.layer, &layout);
        let (parameters, budget) = choose_parameters(&Demand::new(self.layer, &layout, &evaluation))?;
        let cost = count(&parameters, &layout, &evaluation);
        Ok(Choice { packing, parameters, galois: evaluation.galois.into_iter().collect(), budget, cost })
    }

    /// Keeps the cheaper one.
    fn keep(self, found: &mut Option<Choice>, choice: Choice) {
        if found.as_ref().is_none_or(|found| choice.price(self.prices) < found.price(self.prices)) {
            *found = Some(choice);
        }
    }
}

impl Attempt {
    /// What works, if anything does.
    pub fn choice(&self) -> Option<&Choice> {
        match &self.outcome {
            Outcome::Fits(choice) => Some(choice),
            Outcome::Misfit(_) | Outcome::NoBudget(_) | Outcome::CannotBeat { .. } => None,
        }
    }
}

impl StageSearch {
    /// The best of the other family; where nothing of that fits, the best of those that lost.
    pub fn runner_up(&self, winner: &Choice, prices: &Prices) -> Option<RunnerUp> {
        let coefficients = |packing: Packing| packing.kind() == PackingKind::Coefficients;
        let same_family = |choice: &&Choice| coefficients(choice.packing) == coefficients(winner.packing);
        let identity = |choice: &Choice| (choice.packing, choice.parameters.keys.ring_degree);
        let choices = || self.attempts.iter().filter_map(Attempt::choice);
        let others = || choices().filter(|choice| identity(choice) != identity(winner));
        let best = |a: &&Choice, b: &&Choice| a.price(prices).total_cmp(&b.price(prices));
        let second = others().filter(|choice| !same_family(choice)).min_by(best).or_else(|| others().min_by(best))?;
        Some(RunnerUp {
            packing: second.packing,
            ring_degree: second.parameters.keys.ring_degree,
            bytes: second.cost.bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::network::{Quantizer, ValueId};
    use chococ_plans::op::{Dense, Linear};

    use super::*;
    use crate::target::{Objective, Target};

    fn prices() -> Prices {
        Prices::new(Objective::Bytes, Target::default())
    }

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
            weight_energy: 20 * inputs as u64,
        }
    }

    #[test]
    fn the_choice_is_the_best_of_all_attempts() {
        let layer = dense(300, 40, 20_000);
        let (choice, search) = choose_packing(&layer, Restriction::default(), &prices());
        let choice = choice.expect("it fits");
        for attempt in &search.attempts {
            // Without a best so far, nothing is skipped.
            let search = Search { layer: &layer, prices: &prices() };
            match search.attempt(attempt.kind, attempt.ring_degree, f64::INFINITY) {
                Outcome::Fits(other) => assert!(choice.price(&prices()) <= other.price(&prices()), "{other:?}"),
                Outcome::CannotBeat { .. } => panic!("nothing to beat"),
                Outcome::Misfit(_) | Outcome::NoBudget(_) => {}
            }
        }
    }

    #[test]
    fn the_runner_up_is_another_one() {
        let (choice, search) = choose_packing(&dense(300, 40, 20_000), Restriction::default(), &prices());
        let choice = choice.expect("it fits");
        let second = search.runner_up(&choice, &prices()).expect("others fit too");
        assert_ne!((second.packing, second.ring_degree), (choice.packing, choice.parameters.keys.ring_degree));
    }

    #[test]
    fn restrictions_are_kept() {
        let within = Restriction { kind: Some(PackingKind::Slots(Alignment::Masked)), ring_degree: Some(8192) };
        let (choice, search) = choose_packing(&dense(30, 4, 2_000), within, &prices());
        let choice = choice.expect("it fits");
        assert_eq!(choice.packing.kind(), PackingKind::Slots(Alignment::Masked));
        assert_eq!(choice.parameters.keys.ring_degree, 8192);
        assert_eq!(search.attempts.len(), 1);
    }

    #[test]
    fn a_ring_too_small_is_refused() {
        let within = Restriction { ring_degree: Some(1024), ..Restriction::default() };
        assert_eq!(choose_packing(&dense(3000, 500, 180_000), within, &prices()).0, None);
    }
}
