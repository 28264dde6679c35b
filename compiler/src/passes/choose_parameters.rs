//! Finds the smallest encryption parameters under which a packed stage decrypts correctly.
//!
//! Assumes a layout and the width of the stage's results. Makes true: the plaintext modulus holds the results, the
//! whole modulus is secure at this ring degree, the noise budget of the reply is not negative, and no parameters of
//! this form cost fewer bytes.
//!
//! The form: a reply keeps one prime, just wide enough; further primes of at most 30 bits, which the fastest kernels
//! serve, make room for the noise of evaluation; a special prime for key switching fills what security leaves, up to
//! the width at which key switching adds next to nothing.

use std::collections::BTreeMap;

use chococ_plans::cost::{reply_bytes, upload_bytes};
use chococ_plans::noise::{Budget, EncryptionKey, Profile, estimate};
use chococ_plans::params::{Parameters, bits_of};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_plans::security::largest_log2_modulus;

/// Widest prime that the narrow kernels take.
const NARROW_BITS: u32 = 30;

/// Widest prime at all.
const WIDEST_BITS: u32 = 60;

/// Room for noise beyond the reply's prime that the search goes up to, in bits.
const MOST_ROOM: u32 = 400;

/// What a stage asks of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// N.
    pub ring_degree: usize,
    /// How many values the results take.
    pub width: u64,
    /// What the noise is made of.
    pub profile: &'a Profile,
    /// Whether anything is rotated.
    pub rotates: bool,
    /// Ciphertexts up and down.
    pub ciphertexts: (usize, usize),
}

/// Finds the parameters that cost the fewest bytes; Err with the best noise budget that could be had.
pub fn choose_parameters(demand: &Demand<'_>) -> Result<(Parameters, Budget), f64> {
    let plaintext_modulus = ntt_primes_from(demand.width, demand.ring_degree)
        .next()
        .expect("there are primes in every arithmetic progression");
    let mut pool = PrimePool { ring_degree: demand.ring_degree, known: BTreeMap::new() };
    let least = bits_of(plaintext_modulus) + 1;
    let mut best: Option<(usize, Parameters, Budget)> = None;
    let mut closest = f64::NEG_INFINITY;
    for reply_bits in least..=WIDEST_BITS {
        // A wider reply alone costs more than the best so far: so will all that follow.
        let floor =
            |bits: u32| demand.ring_degree * bits as usize / 8 * (demand.ciphertexts.0 + 2 * demand.ciphertexts.1);
        if best.as_ref().is_some_and(|&(bytes, ..)| floor(reply_bits) > bytes) {
            break;
        }
        match least_room(demand, &mut pool, plaintext_modulus, reply_bits) {
            Ok((parameters, budget)) => {
                let (up, down) = demand.ciphertexts;
                let bytes = upload_bytes(&parameters, up) + reply_bytes(&parameters, down);
                if best.as_ref().is_none_or(|&(least, ..)| bytes < least) {
                    best = Some((bytes, parameters, budget));
                }
            }
            Err(budget_bits) => closest = closest.max(budget_bits),
        }
    }
    best.map(|(_, parameters, budget)| (parameters, budget)).ok_or(closest)
}

/// The least room for noise beside a reply's prime of `reply_bits`; Err with the best budget.
fn least_room(
    demand: &Demand<'_>,
    pool: &mut PrimePool,
    plaintext_modulus: u64,
    reply_bits: u32,
) -> Result<(Parameters, Budget), f64> {
    let mut closest = f64::NEG_INFINITY;
    let mut attempt = |room: u32| {
        let tried = with_room(demand, pool, plaintext_modulus, reply_bits, room);
        let budget = tried.as_ref().map_or(f64::NEG_INFINITY, |(_, budget)| budget.reply_bits);
        closest = closest.max(budget);
        tried.filter(|_| budget >= 0.0)
    };
    // Far apart first: more room helps until security runs out, so the first that fits brackets the least that does.
    let Some(enough) = (0..=MOST_ROOM).step_by(6).find(|&room| attempt(room).is_some()) else { return Err(closest) };
    let found = (enough.saturating_sub(5)..=enough).find_map(attempt);
    found.ok_or(closest)
}

/// Parameters with primes of `reply_bits` and, beside it, `room` bits, if primes and security allow.
fn with_room(
    demand: &Demand<'_>,
    pool: &mut PrimePool,
    plaintext_modulus: u64,
    reply_bits: u32,
    room: u32,
) -> Option<(Parameters, Budget)> {
    let limit = largest_log2_modulus(demand.ring_degree)?;
    let mut taken = vec![plaintext_modulus];
    let mut take = |bits: u32| {
        let prime = pool.largest(bits, &taken)?;
        taken.push(prime);
        Some(prime)
    };
    let pieces = room.div_ceil(NARROW_BITS);
    let widths = (0..pieces).map(|piece| room / pieces + u32::from(piece < room % pieces));
    let mut ciphertext_primes = vec![take(reply_bits)?];
    for bits in widths {
        ciphertext_primes.push(take(bits)?);
    }
    let mut parameters = Parameters {
        ring_degree: demand.ring_degree,
        ciphertext_primes,
        key_switching_prime: None,
        digit_bits: WIDEST_BITS,
        reply_primes: 1,
        plaintext_modulus,
    };
    if !demand.rotates {
        let budget = estimate(&parameters, demand.profile, EncryptionKey::Secret);
        return (parameters.log2_q() <= f64::from(limit)).then_some((parameters, budget));
    }
    let left = f64::from(limit) - parameters.log2_q();
    let widest = (left.floor().max(0.0) as u32).min(WIDEST_BITS);
    let mut best: Option<(Parameters, Budget)> = None;
    // Few digits are fewer transforms for the server and fewer bytes of keys: more only where they are needed.
    for special_bits in [widest.min(NARROW_BITS), widest] {
        let Some(special) = pool.largest(special_bits, &taken) else { continue };
        parameters.key_switching_prime = Some(special);
        for digits in 1..=4 {
            let widest_residue = parameters.ciphertext_primes.iter().map(|&prime| bits_of(prime)).max()?;
            parameters.digit_bits = widest_residue.div_ceil(digits);
            let budget = estimate(&parameters, demand.profile, EncryptionKey::Secret);
            let better = best.as_ref().is_none_or(|(_, other)| budget.reply_bits > other.reply_bits);
            if better {
                best = Some((parameters.clone(), budget));
            }
            if budget.reply_bits >= 0.0 {
                return best;
            }
        }
    }
    best
}

/// The largest primes of each width, found once.
struct PrimePool {
    ring_degree: usize,
    known: BTreeMap<u32, Vec<u64>>,
}

impl PrimePool {
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
    use chococ_plans::op::{Conv, Dense, Linear};
    use chococ_plans::packing::layout::Layout;
    use chococ_plans::packing::{Alignment, SlotPacking, TapOrder};

    use super::*;

    fn layout(operator: &Linear, ring_degree: usize) -> Layout {
        let packing = SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Inputs, baby_shifts: 1 };
        Layout::new(operator, packing, ring_degree).expect("it fits")
    }

    fn conv() -> Linear {
        Linear::Conv(Conv {
            input: [4, 14, 14],
            output: [8, 14, 14],
            kernel: [5, 5],
            strides: [1, 1],
            pads_before: [2, 2],
            dilations: [1, 1],
            groups: 1,
        })
    }

    /// Every reply and every room, one bit at a time: what the search must not be worse than.
    fn cheapest(demand: &Demand<'_>) -> Option<usize> {
        let plaintext_modulus = ntt_primes_from(demand.width, demand.ring_degree).next().expect("there are primes");
        let mut pool = PrimePool { ring_degree: demand.ring_degree, known: BTreeMap::new() };
        let all = (2..=WIDEST_BITS).flat_map(|reply| (0..=120).map(move |room| (reply, room)));
        let fits = all.filter_map(|(reply, room)| with_room(demand, &mut pool, plaintext_modulus, reply, room));
        let fits = fits.filter(|(_, budget)| budget.reply_bits >= 0.0);
        let (up, down) = demand.ciphertexts;
        fits.map(|(parameters, _)| upload_bytes(&parameters, up) + reply_bytes(&parameters, down)).min()
    }

    #[test]
    fn nothing_of_this_form_costs_less() {
        let dense = Linear::Dense(Dense { inputs: 100, outputs: 30 });
        for (operator, width, ring_degree) in
            [(conv(), 3_000, 2048), (conv(), 30_000, 4096), (conv(), 2_000_000, 8192), (dense, 9_000, 2048)]
        {
            let layout = layout(&operator, ring_degree);
            let program = layout.program();
            let demand = Demand {
                ring_degree,
                width,
                profile: &Profile::new(&layout, &program),
                rotates: !program.galois_rotations().is_empty(),
                ciphertexts: (layout.placement.inputs, layout.placement.outputs),
            };
            let (up, down) = demand.ciphertexts;
            let found = choose_parameters(&demand).map(|(parameters, budget)| {
                assert!(budget.reply_bits >= 0.0);
                assert!(parameters.plaintext_modulus >= width);
                let limit = largest_log2_modulus(ring_degree).expect("in the table");
                assert!(parameters.log2_whole() <= f64::from(limit));
                upload_bytes(&parameters, up) + reply_bytes(&parameters, down)
            });
            assert_eq!(found.ok(), cheapest(&demand), "{operator:?} at {ring_degree}");
        }
    }

    #[test]
    fn what_cannot_work_says_how_far_off_it_is() {
        let layout = layout(&conv(), 1024);
        let program = layout.program();
        let profile = Profile::new(&layout, &program);
        let demand = Demand { ring_degree: 1024, width: 30_000, profile: &profile, rotates: true, ciphertexts: (1, 1) };
        assert!(choose_parameters(&demand).expect_err("26 bits are too few") < 0.0);
    }
}
