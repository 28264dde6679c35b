//! Finds the smallest encryption parameters under which a packed stage decrypts correctly.
//!
//! Assumes a layout and the plaintext modulus that holds the stage's results. Makes true: the whole modulus is secure at
//! this ring degree, the noise budget of the reply is not negative, and no parameters of this form cost fewer bytes.
//!
//! The form: the ciphertext modulus is one prime, or as few as make it up with 30 bits each, which the fastest kernels
//! serve; a special prime for key switching fills what security leaves, up to the width at which key switching adds next
//! to nothing; requests and replies leave out what noise allows.

use std::collections::BTreeMap;

use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::LinearLayer;
use chococ_plans::noise::{Budget, EncryptionKey, Profile, TAIL, estimate, key_switch_variance};
use chococ_plans::packing::layout::Layout;
use chococ_plans::params::{KeyParameters, Parameters, SECRET_VARIANCE, StageParameters, bits_of};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_plans::security::largest_log2_modulus;

/// Widest prime that the narrow kernels take.
const NARROW_BITS: u32 = 30;

/// Widest prime at all.
const WIDEST_BITS: u32 = 60;

/// Widest ciphertext modulus that is tried.
const MOST_BITS: u32 = 400;

/// Low bits of a request that are worth leaving out: beyond, each costs as much noise as it saves.
const MOST_DROPPED: u32 = 8;

/// How much wider than the narrowest possible reply one is worth trying, to leave out more of its low bits.
const WIDER_REPLIES: usize = 3;

/// Digits of key switching that are tried: more are more work, and more bytes of keys.
const MOST_DIGITS: u32 = 4;

/// What a stage asks of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// N.
    pub ring_degree: usize,
    /// t.
    pub plaintext_modulus: u64,
    /// What the noise is made of.
    pub profile: &'a Profile,
    /// Whether keys are switched.
    pub switches: bool,
    /// Whether q must be one prime, of any width.
    pub one_prime: bool,
    /// Coefficients of c0 that go up.
    pub sent: usize,
    /// Ciphertexts that come down.
    pub outputs: usize,
    /// Coefficients of c0 that come down.
    pub returned: usize,
}

/// Finds the parameters that cost the fewest bytes; Err with the best noise budget that could be had.
pub fn choose_parameters(demand: &Demand<'_>) -> Result<(Parameters, Budget), f64> {
    let mut pool = PrimePool::new(demand.ring_degree);
    let t_bits = bits_of(demand.plaintext_modulus);
    let narrowest = narrowest_reply(demand);
    let most = if demand.one_prime { WIDEST_BITS } else { MOST_BITS };
    let mut best: Option<(usize, Parameters, Budget)> = None;
    let mut closest = f64::NEG_INFINITY;
    for modulus_bits in t_bits + 1..=most {
        // What the best leaves out of requests and replies, a wider modulus may at most leave out as well.
        let floor = demand.bits(modulus_bits.saturating_sub(MOST_DROPPED), narrowest, t_bits);
        if best.as_ref().is_some_and(|&(bits, ..)| floor >= bits) {
            break;
        }
        for keys in moduli(demand, &mut pool, modulus_bits) {
            match shortened(demand, &mut pool, keys, narrowest) {
                Ok((bits, parameters, budget)) => {
                    if best.as_ref().is_none_or(|&(least, ..)| bits < least) {
                        best = Some((bits, parameters, budget));
                    }
                }
                Err(budget_bits) => closest = closest.max(budget_bits),
            }
        }
    }
    best.map(|(_, parameters, budget)| (parameters, budget)).ok_or(closest)
}

/// Finds what costs the fewest bytes under the keys of another stage; None where they do not serve.
pub fn under_keys(demand: &Demand<'_>, keys: &KeyParameters) -> Option<(Parameters, Budget)> {
    let t = demand.plaintext_modulus;
    let serves = keys.ring_degree == demand.ring_degree
        && (keys.key_switching_prime.is_some() || !demand.switches)
        && (keys.ciphertext_primes.len() == 1 || !demand.one_prime)
        && keys.ciphertext_primes.iter().all(|&prime| !t.is_multiple_of(prime));
    let mut pool = PrimePool::new(demand.ring_degree);
    let found = serves.then(|| shortened(demand, &mut pool, keys.clone(), narrowest_reply(demand)).ok()).flatten();
    found.map(|(_, parameters, budget)| (parameters, budget))
}

impl<'a> Demand<'a> {
    /// What a layer asks in some layout.
    pub fn new(layer: &LinearLayer, layout: &Layout, evaluation: &'a Evaluation) -> Demand<'a> {
        let (ring_degree, plaintext_modulus, one_prime) = match layout {
            Layout::Slots(layout) => {
                let ring_degree = 2 * layout.row_length;
                let batching = ntt_primes_from(layer.width(), ring_degree).next().expect("primes do not end");
                (ring_degree, batching, false)
            }
            Layout::Coefficients(layout) => (layout.ring_degree, layer.width().max(2), true),
        };
        Demand {
            ring_degree,
            plaintext_modulus,
            profile: &evaluation.noise,
            switches: !evaluation.galois.is_empty(),
            one_prime,
            sent: (0..layout.inputs()).map(|input| layout.sent_count(input)).sum(),
            outputs: layout.outputs(),
            returned: (0..layout.outputs()).map(|output| layout.returned_count(output)).sum(),
        }
    }
    /// Bits on the wire, if numbers of a request, of c1 and of c0 of a reply have these widths.
    fn bits(&self, sent: u32, c1: u32, c0: u32) -> usize {
        self.sent * sent as usize + self.outputs * self.ring_degree * c1 as usize + self.returned * c0 as usize
    }

    fn bits_of(&self, keys: &KeyParameters, stage: StageParameters) -> usize {
        let modulus_bits: u32 = keys.ciphertext_primes.iter().map(|&prime| bits_of(prime)).sum();
        let StageParameters { request_dropped_bits, reply_modulus, reply_dropped_bits, .. } = stage;
        let reply_bits = bits_of(reply_modulus);
        self.bits(modulus_bits - request_dropped_bits, reply_bits, reply_bits - reply_dropped_bits)
    }
}

/// All moduli with a ciphertext modulus of some bits, key switching included; few digits first.
fn moduli(demand: &Demand<'_>, pool: &mut PrimePool, modulus_bits: u32) -> Vec<KeyParameters> {
    let Some(limit) = largest_log2_modulus(demand.ring_degree) else { return Vec::new() };
    let pieces = if demand.one_prime { 1 } else { modulus_bits.div_ceil(NARROW_BITS) };
    let mut taken = vec![demand.plaintext_modulus];
    for piece in 0..pieces {
        let bits = modulus_bits / pieces + u32::from(piece < modulus_bits % pieces);
        let Some(prime) = pool.largest(bits, &taken) else { return Vec::new() };
        taken.push(prime);
    }
    let plain = KeyParameters {
        ring_degree: demand.ring_degree,
        ciphertext_primes: taken[1..].to_vec(),
        key_switching_prime: None,
        digit_bits: WIDEST_BITS,
    };
    let left = f64::from(limit) - plain.log2_q();
    if !demand.switches {
        return if left < 0.0 { Vec::new() } else { vec![plain] };
    }
    let widest = (left.floor().max(0.0) as u32).min(WIDEST_BITS);
    let widest_residue = plain.ciphertext_primes.iter().map(|&prime| bits_of(prime)).max().unwrap_or(1);
    let mut all: Vec<KeyParameters> = Vec::new();
    for digits in 1..=MOST_DIGITS {
        for special_bits in [widest.min(NARROW_BITS), widest] {
            let Some(special) = pool.largest(special_bits, &taken) else { continue };
            let digit_bits = widest_residue.div_ceil(digits);
            let with = KeyParameters { key_switching_prime: Some(special), digit_bits, ..plain.clone() };
            // No choice is quieter by more than this than one that is dominated by its rounding.
            let quiet = |other: &KeyParameters| key_switch_variance(other) < 1.02 * key_switch_variance(&with);
            if !all.iter().any(quiet) {
                all.push(with);
            }
        }
    }
    all
}

/// The narrowest reply that could hold the plaintext modulus and the rounding of c1: none narrower will do.
fn narrowest_reply(demand: &Demand<'_>) -> u32 {
    let rounding = (demand.ring_degree as f64 * SECRET_VARIANCE / 12.0).sqrt();
    (2.0 * demand.plaintext_modulus as f64 * TAIL * rounding).log2().floor() as u32
}

/// Leaves out of requests and replies what noise allows, for the fewest bits; Err with the budget where none is left.
///
/// No reply narrower than `narrowest` will do.
fn shortened(
    demand: &Demand<'_>,
    pool: &mut PrimePool,
    keys: KeyParameters,
    narrowest: u32,
) -> Result<(usize, Parameters, Budget), f64> {
    let droppable = if keys.ciphertext_primes.len() == 1 { MOST_DROPPED } else { 0 };
    let droppable = droppable.min(bits_of(keys.ciphertext_primes[0]) - 1);
    let widest = pool.largest(WIDEST_BITS, &[]).expect("there are primes of 60 bits for every ring degree");
    let stage = StageParameters {
        plaintext_modulus: demand.plaintext_modulus,
        request_dropped_bits: 0,
        reply_modulus: widest,
        reply_dropped_bits: 0,
    };
    let mut tried = Parameters { keys, stage };
    let budget = |parameters: &Parameters| estimate(parameters, demand.profile, EncryptionKey::Secret);
    let before = budget(&tried).reply_bits;
    if before < 0.0 {
        return Err(before);
    }
    let mut best: Option<(usize, StageParameters)> = None;
    for request_dropped_bits in 0..=droppable {
        let with_reply = |reply_modulus, reply_dropped_bits| StageParameters {
            request_dropped_bits,
            reply_modulus,
            reply_dropped_bits,
            ..stage
        };
        let fits = |tried: &mut Parameters, reply_modulus, reply_dropped_bits| {
            tried.stage = with_reply(reply_modulus, reply_dropped_bits);
            budget(tried).reply_bits >= 0.0
        };
        let mut replies = (narrowest.max(2)..=WIDEST_BITS).filter_map(|bits| pool.largest(bits, &[]));
        let Some(first) = replies.find(|&modulus| fits(&mut tried, modulus, 0)) else { break };
        for modulus in [first].into_iter().chain(replies.take(WIDER_REPLIES)) {
            let dropped = (0..bits_of(modulus)).take_while(|&dropped| fits(&mut tried, modulus, dropped)).last();
            let stage = with_reply(modulus, dropped.unwrap_or(0));
            let bits = demand.bits_of(&tried.keys, stage);
            if best.is_none_or(|(least, _)| bits < least) {
                best = Some((bits, stage));
            }
        }
    }
    let (bits, stage) = best.ok_or(before)?;
    let parameters = Parameters { stage, ..tried };
    let budget = budget(&parameters);
    Ok((bits, parameters, budget))
}

/// The largest primes of each width, found once.
struct PrimePool {
    ring_degree: usize,
    known: BTreeMap<u32, Vec<u64>>,
}

impl PrimePool {
    fn new(ring_degree: usize) -> PrimePool {
        PrimePool { ring_degree, known: BTreeMap::new() }
    }

    /// The largest prime of exactly `bits` bits that is not taken.
    fn largest(&mut self, bits: u32, taken: &[u64]) -> Option<u64> {
        // No parameters have more primes of one width than this leaves to choose from.
        const ENOUGH: usize = 24;
        let ring_degree = self.ring_degree;
        let list = || if bits < 2 { Vec::new() } else { ntt_primes_below(bits, ring_degree).take(ENOUGH).collect() };
        self.known.entry(bits).or_insert_with(list).iter().copied().find(|prime| !taken.contains(prime))
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::network::{Quantizer, ValueId};
    use chococ_plans::op::{Conv, Linear};
    use chococ_plans::packing::{Alignment, CoefficientPacking, Packing, SlotPacking, TapOrder};

    use super::*;

    fn layer(width: i64) -> LinearLayer {
        LinearLayer {
            name: "conv".to_owned(),
            operator: Linear::Conv(Conv {
                input: [4, 14, 14],
                output: [8, 14, 14],
                kernel: [5, 5],
                strides: [1, 1],
                pads_before: [2, 2],
                dilations: [1, 1],
                groups: 1,
            }),
            input: ValueId(0),
            output: ValueId(1),
            quantizer: Quantizer { scale: 1.0, low: 0, high: 15 },
            weight_bits: 4,
            output_scales: vec![1.0; 8],
            output_ranges: vec![(0, width - 1); 8],
            weight_energy: 1_500,
        }
    }

    fn slots() -> Packing {
        Packing::Slots(SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Inputs, baby_shifts: 1 })
    }

    fn coefficients() -> Packing {
        let (tile, tiles_at_once, interleave, stack, merge) = ([14, 14], 1, 4, 1, 4);
        Packing::Coefficients(CoefficientPacking { tile, tiles_at_once, interleave, stack, merge })
    }

    /// Runs `check` on what a packing at a ring degree demands.
    fn with_demand(packing: Packing, width: i64, ring_degree: usize, check: impl Fn(&Demand<'_>)) {
        let layer = layer(width);
        let layout = Layout::new(&layer.operator, packing, ring_degree).expect("it fits");
        let evaluation = Evaluation::new(&layer, &layout);
        check(&Demand { switches: true, ..Demand::new(&layer, &layout, &evaluation) });
    }

    /// Every modulus and every width of requests and replies: what the search must not be worse than.
    fn cheapest(demand: &Demand<'_>) -> Option<usize> {
        let mut pool = PrimePool::new(demand.ring_degree);
        let moduli = (2..=90).flat_map(|bits| moduli(demand, &mut pool, bits)).collect::<Vec<_>>();
        let plaintext_modulus = demand.plaintext_modulus;
        let replies: Vec<u64> = (2..=40).filter_map(|bits| pool.largest(bits, &[])).collect();
        let fits = moduli.iter().flat_map(|keys| {
            let droppable = if keys.ciphertext_primes.len() == 1 { MOST_DROPPED } else { 0 };
            let stages = (0..=droppable).flat_map(|request_dropped_bits| {
                replies.iter().flat_map(move |&reply_modulus| {
                    (0..bits_of(reply_modulus).min(12)).map(move |reply_dropped_bits| StageParameters {
                        plaintext_modulus,
                        request_dropped_bits,
                        reply_modulus,
                        reply_dropped_bits,
                    })
                })
            });
            stages.map(|stage| Parameters { keys: keys.clone(), stage }).collect::<Vec<_>>()
        });
        let budget = |parameters: &Parameters| estimate(parameters, demand.profile, EncryptionKey::Secret).reply_bits;
        let fits = fits.filter(|parameters| {
            let wide_enough = parameters.keys.ciphertext_primes[0] >> parameters.stage.request_dropped_bits > 0;
            wide_enough && budget(parameters) >= 0.0
        });
        fits.map(|parameters| demand.bits_of(&parameters.keys, parameters.stage)).min()
    }

    #[test]
    fn nothing_of_this_form_costs_less() {
        for (packing, width, ring_degree) in [
            (slots(), 3_000, 2048),
            (slots(), 30_000, 4096),
            (coefficients(), 3_000, 2048),
            (coefficients(), 30_000, 4096),
        ] {
            with_demand(packing, width, ring_degree, |demand| {
                let found = choose_parameters(demand).map(|(parameters, budget)| {
                    assert!(budget.reply_bits >= 0.0);
                    let limit = largest_log2_modulus(ring_degree).expect("in the table");
                    assert!(parameters.keys.log2_whole() <= f64::from(limit));
                    demand.bits_of(&parameters.keys, parameters.stage)
                });
                assert_eq!(found.ok(), cheapest(demand), "{packing} at {ring_degree}");
            });
        }
    }

    #[test]
    fn what_cannot_work_says_how_far_off_it_is() {
        with_demand(coefficients(), 30_000, 1024, |demand| {
            assert!(choose_parameters(demand).expect_err("26 bits are too few") < 0.0);
        });
    }
}
