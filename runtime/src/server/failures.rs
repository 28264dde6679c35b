//! How often results are wrong when parameters leave too little room: what the noise estimate is worth in its tail.
//!
//! Plans keep a margin of 8.9 standard deviations, of which no test will ever see an end. Here it is about 2.5, and
//! failures must come as often as the estimate says.

use chacha20::ChaCha20Rng;
use chococ_plans::check::CheckedStage;
use chococ_plans::cost::Cost;
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::{LayerWeights, LinearLayer, Quantizer, ValueId};
use chococ_plans::noise::{EncryptionKey, Margin, estimate, margin, tail_probability};
use chococ_plans::op::{Conv, Linear};
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::{Alignment, CoefficientPacking, Packing, SlotPacking, TapOrder};
use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
use chococ_plans::plan::ServerStage;
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_plans::weights::{Weights, accumulator_ranges, weight_energy};
use rand::SeedableRng;

use super::prepare::{PreparedStage, prepare};
use super::tally::Tally;
use crate::bfv::context::Context;
use crate::bfv::encode::Plaintext;
use crate::bfv::encrypt::encrypt_secret;
use crate::bfv::galois::{GaloisKeys, SeededGaloisKey};
use crate::bfv::keys::{ReplyKey, SecretKey};
use crate::bfv::reply::{Reply, decrypt_reply};

const RING_DEGREE: usize = 1024;

/// Runs of each case.
const RUNS: u8 = 80;

/// From 4 to 8 channels of 6 x 6, by 3 x 3 taps.
fn layer() -> (LinearLayer, LayerWeights) {
    let operator = Linear::Conv(Conv {
        input: [4, 6, 6],
        output: [8, 6, 6],
        kernel: [3, 3],
        strides: [1, 1],
        pads_before: [1, 1],
        dilations: [1, 1],
        groups: 1,
    });
    let weights = LayerWeights {
        weights: (0..8 * 36).map(|i| (i * 5 + i / 7) % 15 - 7).collect(),
        bias: (0..8).map(|channel| channel * 9 - 30).collect(),
    };
    let quantizer = Quantizer { scale: 1.0, low: 0, high: 15 };
    let layer = LinearLayer {
        name: "conv".to_owned(),
        operator,
        input: ValueId(0),
        output: ValueId(1),
        quantizer,
        weight_bits: 4,
        output_scales: vec![1.0; 8],
        output_ranges: accumulator_ranges(&weights, quantizer.low, quantizer.high),
        weight_energy: weight_energy(&weights),
    };
    (layer, weights)
}

fn layout(packing: Packing) -> Layout {
    Layout::new(&layer().0.operator, packing, RING_DEGREE).expect("it fits")
}

/// Client and server in one, under parameters that nobody has checked.
struct Party {
    context: Context,
    secret: SecretKey,
    keys: GaloisKeys,
    layout: Layout,
    prepared: PreparedStage,
    rng: ChaCha20Rng,
}

impl Party {
    fn new(packing: Packing, parameters: &Parameters) -> Party {
        let (layer, weights) = layer();
        let layout = layout(packing);
        let context = Context::new(parameters).expect("the parameters work");
        let evaluation = Evaluation::new(&layer, &layout);
        let budget = estimate(parameters, &evaluation.noise, EncryptionKey::Secret);
        let own = parameters.stage;
        let stage =
            ServerStage { layer, key_set: 0, parameters: own, packing, budget, cost: Cost::default(), runner_up: None };
        let all = Weights { integers: [("conv".to_owned(), weights)].into(), ..Weights::default() };
        let checked = CheckedStage { stage: &stage, parameters, layout: &layout };
        let prepared = prepare(&context, checked, &all).expect("the weights are there");
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let secret = SecretKey::generate(&context, &mut rng);
        let mut key = |(stream, element)| {
            SeededGaloisKey::generate(&context, &secret, element, [255; 32], stream, &mut rng)
                .and_then(|key| key.expand(&context))
                .expect("there is a special prime")
        };
        let keys = (0..).zip(evaluation.galois).map(&mut key).collect();
        Party { context, secret, keys, layout, prepared, rng }
    }

    /// What the client decrypts, coefficient by coefficient.
    fn results(&mut self, codes: &[i32], run: u8) -> Vec<u64> {
        let context = &self.context;
        let t = context.plaintext_modulus();
        let (packed, encoder) = match &self.layout {
            Layout::Slots(layout) => (layout.pack(codes, t), context.encoder()),
            Layout::Coefficients(layout) => (layout.pack(codes, t), None),
        };
        let dropped = context.parameters().stage.request_dropped_bits;
        let mut inputs = Vec::new();
        for (stream, values) in (0..).zip(packed) {
            let plaintext = match encoder {
                Some(encoder) => encoder.encode(&values),
                None => Plaintext::from_coefficients(context, values),
            };
            let mut fresh = encrypt_secret(context, &self.secret, &plaintext, [run; 32], stream, &mut self.rng);
            // As a request leaves them out.
            let middle = (1 << dropped) / 2;
            let modulus = context.ring().moduli()[0];
            let shortened = |word: u64| modulus.reduce((word >> dropped << dropped) + middle);
            fresh.c0.residue_mut(0).iter_mut().for_each(|word| *word = shortened(*word));
            inputs.push(fresh.expand(context));
        }
        let sums = self.prepared.evaluate(context, &self.keys, &inputs, &Tally::default());
        let key = ReplyKey::new(context, &self.secret);
        let replies = sums.into_iter().enumerate().flat_map(|(output, sum)| {
            let returned = self.layout.returned(output);
            decrypt_reply(context, &key, &Reply::new(context, sum, &returned), &returned)
        });
        replies.collect()
    }
}

/// Sizes in bits of q (one prime), P, digits, and of what travels.
struct Sizes {
    modulus: u32,
    special: u32,
    digits: u32,
    request_dropped: u32,
    reply: u32,
    reply_dropped: u32,
}

impl Sizes {
    /// Parameters of these sizes.
    fn parameters(&self, plaintext_modulus: u64) -> Parameters {
        let prime = |bits, taken: &[u64]| {
            ntt_primes_below(bits, RING_DEGREE).find(|prime| !taken.contains(prime)).expect("there are some")
        };
        let modulus = prime(self.modulus, &[plaintext_modulus]);
        let special = prime(self.special, &[plaintext_modulus, modulus]);
        Parameters {
            keys: KeyParameters {
                ring_degree: RING_DEGREE,
                ciphertext_primes: vec![modulus],
                key_switching_prime: Some(special),
                digit_bits: self.digits,
            },
            stage: StageParameters {
                plaintext_modulus,
                request_dropped_bits: self.request_dropped,
                reply_modulus: ntt_primes_below(self.reply, RING_DEGREE).next().expect("there are some"),
                reply_dropped_bits: self.reply_dropped,
            },
        }
    }

    /// With a plaintext modulus so large that the margin is 2.5 deviations or just below.
    fn tight(&self, packing: Packing) -> Parameters {
        let evaluation = Evaluation::new(&layer().0, &layout(packing));
        let mut t = layer().0.width();
        loop {
            if matches!(packing, Packing::Slots(_)) {
                t = ntt_primes_from(t, RING_DEGREE).next().expect("primes do not end");
            }
            let parameters = self.parameters(t);
            if margin(&parameters, &evaluation.noise, EncryptionKey::Secret).at_best < 2.5 {
                return parameters;
            }
            t += t / 50;
        }
    }
}

/// Compares how often results are wrong with what the estimate says.
fn fails_as_predicted(packing: Packing, sizes: &Sizes) {
    let tight = sizes.tight(packing);
    // The same plaintexts, with room to spare: never wrong.
    let wide = Sizes { modulus: 60, special: 60, digits: 30, request_dropped: 0, reply: 40, reply_dropped: 2 };
    let (mut risky, mut safe) =
        (Party::new(packing, &tight), Party::new(packing, &wide.parameters(tight.stage.plaintext_modulus)));
    let (mut wrong, mut total) = (0, 0);
    for run in 0..RUNS {
        let codes: Vec<i32> = (0..144).map(|i| (i * 7 + i * i / 5 + 11 * i32::from(run)) % 16).collect();
        let (found, exact) = (risky.results(&codes, run), safe.results(&codes, run));
        wrong += found.iter().zip(&exact).filter(|(found, exact)| found != exact).count();
        total += exact.len();
    }
    let evaluation = Evaluation::new(&layer().0, &risky.layout);
    let Margin { at_best, at_worst } = margin(&tight, &evaluation.noise, EncryptionKey::Secret);
    assert!((1.5..2.5).contains(&at_best), "a margin of {at_best} deviations");
    let [least, most] = [at_best, at_worst].map(|deviations| tail_probability(deviations) * total as f64);
    println!("{packing}: {wrong} of {total} wrong, {least:.0} to {most:.0} predicted at {at_best:.2} deviations");
    // Failures in one ciphertext are not independent, so that they spread more than their square root.
    let spread = 8.0 * least.sqrt();
    let wrong = wrong as f64;
    assert!(wrong <= most + spread, "{wrong} of {total} results are wrong, at most {most:.0} were predicted");
    assert!(wrong >= 0.5 * least - spread, "{wrong} of {total} results are wrong, {least:.0} were predicted");
}

#[test]
fn slots_fail_as_often_as_predicted() {
    let packing =
        Packing::Slots(SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Mixed, baby_shifts: 1 });
    // The noise of products and rotations; then that of the reply's rounding.
    let evaluation = Sizes { modulus: 42, special: 40, digits: 21, request_dropped: 0, reply: 42, reply_dropped: 0 };
    let reply = Sizes { modulus: 60, special: 60, digits: 30, request_dropped: 0, reply: 21, reply_dropped: 4 };
    [evaluation, reply].iter().for_each(|sizes| fails_as_predicted(packing, sizes));
}

#[test]
fn coefficients_fail_as_often_as_predicted() {
    let plain = CoefficientPacking { tile: [6, 6], tiles_at_once: 1, interleave: 4, stack: 1, merge: 1 };
    let merged = CoefficientPacking { merge: 4, ..plain };
    let stacked = CoefficientPacking { stack: 4, ..plain };
    let tiled = CoefficientPacking { tile: [3, 3], tiles_at_once: 4, merge: 2, ..plain };
    // The noise of encryption; of what a request leaves out; of key switching; of the reply's rounding.
    let fresh = Sizes { modulus: 26, special: 40, digits: 26, request_dropped: 0, reply: 26, reply_dropped: 0 };
    let cut = Sizes { modulus: 28, special: 40, digits: 28, request_dropped: 6, reply: 28, reply_dropped: 0 };
    let switched = Sizes { modulus: 30, special: 14, digits: 15, request_dropped: 0, reply: 30, reply_dropped: 0 };
    let reply = Sizes { modulus: 50, special: 50, digits: 25, request_dropped: 0, reply: 18, reply_dropped: 5 };
    for packing in [plain, merged, stacked, tiled].map(Packing::Coefficients) {
        [&fresh, &cut, &switched, &reply].into_iter().for_each(|sizes| fails_as_predicted(packing, sizes));
    }
}
