//! What holds for all messages, keys and toy parameters, and two sets of real size.

use super::ciphertext::Seed;
use super::decrypt::decrypt;
use super::encrypt::{encrypt_public, encrypt_secret};
use super::evaluate::{add_assign, add_plain_assign, mul_plain_assign, neg_assign, sub_assign};
use super::inner_product::inner_product;
use super::noise::measured_budget_bits;
use super::reply::{decrypt_reply, measured_reply_budget_bits};
use super::rotate::{apply, hoist, rotate_rows, swap_rows};
use super::switch::switch_modulus;
use super::*;
use chacha20::ChaCha20Rng;
use chococ_plans::packing::Rotation;
use chococ_plans::params::{ERROR_VARIANCE, KeyParameters, Parameters, StageParameters, rotation_element};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};

/// A client and a server in one.
struct Party {
    context: Context,
    secret: SecretKey,
    public: PublicKey,
    rng: ChaCha20Rng,
    stream: u64,
}

impl Party {
    fn new(parameters: &Parameters, seed: u64) -> Self {
        let context = Context::new(parameters).expect("the test's parameters are fit");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let secret = SecretKey::generate(&context, &mut rng);
        let public = PublicKey::generate(&context, &secret, &mut rng);
        Self { context, secret, public, rng, stream: 0 }
    }

    fn seed(&self) -> Seed {
        [7; 32]
    }

    fn random_slots(&mut self) -> Vec<u64> {
        let t = self.context.plaintext_modulus();
        (0..self.context.ring_degree()).map(|_| self.rng.next_u64() % t).collect()
    }

    fn encode(&self, slots: &[u64]) -> Plaintext {
        self.context.encoder().expect("t is 1 modulo 2N").encode(slots)
    }

    fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        let plaintext = self.encode(slots);
        self.stream += 1;
        let (seed, stream) = (self.seed(), self.stream);
        encrypt_secret(&self.context, &self.secret, &plaintext, seed, stream, &mut self.rng).expand(&self.context)
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<u64> {
        let plaintext = decrypt(&self.context, &self.secret, ciphertext);
        self.context.encoder().expect("t is 1 modulo 2N").decode(&plaintext)
    }

    fn budget(&self, ciphertext: &Ciphertext) -> f64 {
        measured_budget_bits(&self.context, &self.secret, ciphertext)
    }

    fn key(&mut self, element: u64) -> GaloisKey {
        let seed = self.seed();
        SeededGaloisKey::generate(&self.context, &self.secret, element, seed, (1 << 32) + element, &mut self.rng)
            .and_then(|key| key.expand(&self.context))
            .expect("the element is odd and there is a special prime")
    }
}

/// Distinct primes of the given sizes.
fn primes(ring_degree: usize, bits: &[u32]) -> Vec<u64> {
    let mut primes: Vec<u64> = Vec::new();
    for &bits in bits {
        let next = ntt_primes_below(bits, ring_degree).find(|prime| !primes.contains(prime));
        primes.push(next.expect("there are enough primes of each size"));
    }
    primes
}

fn parameters(ring_degree: usize, bits: &[u32], special_bits: Option<u32>, digit_bits: u32, t: u64) -> Parameters {
    let mut ciphertext_primes = primes(ring_degree, &[bits, special_bits.as_slice()].concat());
    let key_switching_prime = special_bits.and_then(|_| ciphertext_primes.pop());
    Parameters {
        keys: KeyParameters { ring_degree, ciphertext_primes, key_switching_prime, digit_bits },
        stage: StageParameters {
            request_dropped_bits: 0,
            reply_modulus: primes(ring_degree, &[35])[0],
            reply_dropped_bits: 4,
            plaintext_modulus: t,
        },
    }
}

fn element(ring_degree: usize, steps: i64, swap: bool) -> u64 {
    rotation_element(ring_degree, Rotation { swap, ..Rotation::left(steps, ring_degree / 2) })
}

/// The smallest prime from `least` on that batch-encodes.
fn batching(ring_degree: usize, least: u64) -> u64 {
    ntt_primes_from(least, ring_degree).next().expect("primes do not end")
}

/// Toy sets with room for a product and a rotation: q of 55 bits or more, t of 8 to 12.
fn toy() -> impl Strategy<Value = Parameters> {
    let bits = prop_oneof![
        (56u32..=60).prop_map(|b| vec![b]),
        prop::collection::vec(28u32..=60, 2),
        prop::collection::vec(20u32..=60, 3),
        prop::collection::vec(20u32..=60, 4),
    ];
    (4u32..=6, bits, 8u32..=12).prop_flat_map(|(log_n, bits, t_bits)| {
        let longest = *bits.iter().max().expect("not empty");
        (Just((log_n, bits, t_bits)), longest.min(59)..=60, 12..=longest).prop_map(
            |((log_n, bits, t_bits), special, digit_bits)| {
                let n = 1 << log_n;
                parameters(n, &bits, Some(special), digit_bits, batching(n, 1 << t_bits))
            },
        )
    })
}

fn rotate_slots(slots: &[u64], steps: i64, swap: bool) -> Vec<u64> {
    let (first, second) = slots.split_at(slots.len() / 2);
    let left = steps.rem_euclid(first.len() as i64) as usize;
    let turn = |row: &[u64]| [&row[left..], &row[..left]].concat();
    if swap { [turn(second), turn(first)].concat() } else { [turn(first), turn(second)].concat() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decryption_undoes_both_encryptions(toy in toy(), special: bool, seed: u64) {
        let mut toy = toy;
        toy.keys.key_switching_prime = toy.keys.key_switching_prime.filter(|_| special);
        let mut party = Party::new(&toy, seed);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        prop_assert_eq!(&party.decrypt(&fresh), &slots);
        let plaintext = party.encode(&slots);
        let fresh = encrypt_public(&party.context, &party.public, &plaintext, &mut party.rng);
        prop_assert_eq!(party.decrypt(&fresh), slots);
    }

    #[test]
    fn sums_commute_with_decryption(toy in toy(), seed: u64) {
        let mut party = Party::new(&toy, seed);
        let t = party.context.plaintext_modulus();
        let (a, b, c) = (party.random_slots(), party.random_slots(), party.random_slots());
        let (mut x, y) = (party.encrypt(&a), party.encrypt(&b));
        add_assign(&party.context, &mut x, &y);
        add_assign(&party.context, &mut x, &y);
        add_plain_assign(&party.context, &mut x, &party.encode(&c));
        neg_assign(&party.context, &mut x);
        sub_assign(&party.context, &mut x, &y);
        let expected: Vec<u64> = (0..a.len()).map(|i| (5 * t - a[i] - 3 * b[i] - c[i]) % t).collect();
        prop_assert_eq!(party.decrypt(&x), expected);
    }

    #[test]
    fn products_commute_with_decryption(toy in toy(), seed: u64, count in 1usize..5) {
        let mut party = Party::new(&toy, seed);
        let t = party.context.plaintext_modulus();
        let values: Vec<[Vec<u64>; 2]> = (0..count).map(|_| [party.random_slots(), party.random_slots()]).collect();
        let ciphertexts: Vec<Ciphertext> = values.iter().map(|[a, _]| party.encrypt(a)).collect();
        let weights: Vec<Multiplicand> =
            values.iter().map(|[_, b]| Multiplicand::new(&party.context, &party.encode(b))).collect();
        let terms: Vec<_> = ciphertexts.iter().zip(&weights).collect();
        let expected: Vec<u64> =
            (0..values[0][0].len()).map(|i| values.iter().map(|[a, b]| a[i] * b[i]).sum::<u64>() % t).collect();
        let sum = inner_product(&party.context, &terms);
        prop_assert_eq!(party.decrypt(&sum), expected);
        let mut one_by_one = Ciphertext::zero(&party.context, party.context.top_level());
        for (ciphertext, weights) in terms {
            let mut product = ciphertext.clone();
            mul_plain_assign(&party.context, &mut product, weights);
            add_assign(&party.context, &mut one_by_one, &product);
        }
        prop_assert!(one_by_one.c0 == sum.c0 && one_by_one.c1 == sum.c1);
    }

    #[test]
    fn rotations_commute_with_decryption(toy in toy(), seed: u64, steps in -40i64..40, swap: bool) {
        let mut party = Party::new(&toy, seed);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        let element = element(toy.keys.ring_degree, steps, swap);
        let keys: GaloisKeys = [party.key(element)].into_iter().collect();
        let rotated = apply(&party.context, &fresh, element, &keys).expect("the key is there");
        prop_assert_eq!(party.decrypt(&rotated), rotate_slots(&slots, steps, swap));
        let hoisted = hoist(&party.context, &fresh).apply(keys.get(element).expect("the key is there"));
        prop_assert_eq!(party.decrypt(&hoisted), rotate_slots(&slots, steps, swap));
    }

    #[test]
    fn smaller_moduli_keep_the_message(toy in toy(), seed: u64) {
        let mut party = Party::new(&toy, seed);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        for level in (1..=fresh.level()).rev() {
            let switched = switch_modulus(&party.context, fresh.clone(), level);
            // Rounding adds at most 1/2 (1 + N), as the secret is ternary.
            let log2_q: f64 = toy.keys.ciphertext_primes[..level].iter().map(|&p| (p as f64).log2()).sum();
            let room = log2_q - (2.0 * toy.stage.plaintext_modulus as f64).log2() - ((toy.keys.ring_degree + 1) as f64).log2();
            if room > 2.0 {
                prop_assert_eq!(&party.decrypt(&switched), &slots, "at level {}", level);
                prop_assert!(party.budget(&switched) > 0.0);
            }
        }
    }

    #[test]
    fn replies_keep_the_message(toy in toy(), seed: u64, dropped in 0u32..8, wider in 0u32..8) {
        // Rounding adds at most 1/2 (1 + N) and half of what is dropped, as the secret is ternary.
        let room = (f64::from(toy.keys.ring_degree as u32 + 1) / 2.0 + f64::from(dropped).exp2() / 2.0).log2();
        let least = (2.0 * toy.stage.plaintext_modulus as f64).log2() + room;
        let bits = (least.ceil() as u32 + 2 + wider).max(dropped + 1);
        let reply_modulus = primes(toy.keys.ring_degree, &[bits])[0];
        let mut toy = toy;
        toy.stage = StageParameters { reply_modulus, reply_dropped_bits: dropped, ..toy.stage };
        let mut party = Party::new(&toy, seed);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        let plaintext = decrypt(&party.context, &party.secret, &fresh);
        let returned: Vec<usize> = (0..toy.keys.ring_degree).rev().step_by(3).collect();
        let reply = Reply::new(&party.context, fresh, &returned);
        prop_assert!(reply.c1.iter().all(|&c| c < reply_modulus));
        prop_assert!(reply.c0.iter().all(|&c| c <= (reply_modulus - 1) >> dropped));
        let expected: Vec<u64> = returned.iter().map(|&position| plaintext.coefficients()[position]).collect();
        let key = ReplyKey::new(&party.context, &party.secret);
        prop_assert_eq!(decrypt_reply(&party.context, &key, &reply, &returned), expected);
        let measured = measured_reply_budget_bits(&party.context, &key, &reply, &returned);
        let limit = (reply_modulus as f64).log2() - (2.0 * toy.stage.plaintext_modulus as f64).log2();
        prop_assert!((limit - room - 1.0..=limit + 1e-9).contains(&measured), "{} of {}", measured, limit);
    }

    #[test]
    fn rotations_work_at_lower_levels(toy in toy(), seed: u64) {
        let mut party = Party::new(&toy, seed);
        let slots = party.random_slots();
        let mut ciphertext = party.encrypt(&slots);
        if ciphertext.level() > 2 {
            ciphertext = switch_modulus(&party.context, ciphertext, 2);
        }
        let keys: GaloisKeys = [party.key(3)].into_iter().collect();
        let rotated = rotate_rows(&party.context, &ciphertext, 1, &keys).expect("the key is there");
        prop_assert_eq!(party.decrypt(&rotated), rotate_slots(&slots, 1, false));
    }
}

#[test]
fn seeds_fix_every_ciphertext() {
    let toy = parameters(16, &[30, 40], Some(50), 20, batching(16, 1 << 10));
    let encrypt = || {
        let mut party = Party::new(&toy, 1);
        let slots = party.random_slots();
        party.encrypt(&slots)
    };
    assert!(encrypt().c0 == encrypt().c0 && encrypt().c1 == encrypt().c1);
}

#[test]
fn fresh_budget_is_that_of_the_error() {
    for (bits, special) in [(vec![50], None), (vec![36, 36], Some(37)), (vec![30, 30, 30], Some(30))] {
        let parameters = parameters(1024, &bits, special, 30, batching(1024, 1 << 16));
        let mut party = Party::new(&parameters, 3);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        // The largest of 1024 errors is about 3.4 deviations; below 2.5 and above 6.5 is less than one in a million.
        let one = parameters.keys.log2_q() - (2.0 * parameters.stage.plaintext_modulus as f64).log2();
        let deviations = (one - party.budget(&fresh) - ERROR_VARIANCE.log2() / 2.0).exp2();
        assert!((2.5..6.5).contains(&deviations), "{deviations} deviations");
    }
}

#[test]
fn dividing_by_the_special_prime_saves_noise() {
    let with = parameters(1024, &[40], Some(41), 20, batching(1024, 1 << 10));
    let mut without = with.clone();
    without.keys.key_switching_prime = None;
    let budget = |parameters: &Parameters| {
        let mut party = Party::new(parameters, 5);
        let slots = party.random_slots();
        let plaintext = party.encode(&slots);
        let fresh = encrypt_public(&party.context, &party.public, &plaintext, &mut party.rng);
        party.budget(&fresh)
    };
    // Deviations: sqrt(10.5 (1 + 4N/3)) = 120 against sqrt((1 + 2N/3)/12) = 7.6, 4 bits less.
    let saved = budget(&with) - budget(&without);
    assert!((3.0..5.0).contains(&saved), "{saved} bits");
}

#[test]
fn several_digits_make_up_for_a_small_special_prime() {
    let bits = [50];
    let rotated_budget = |digit_bits: u32| {
        let parameters = parameters(64, &bits, Some(20), digit_bits, batching(64, 1 << 10));
        let mut party = Party::new(&parameters, 8);
        let slots = party.random_slots();
        let fresh = party.encrypt(&slots);
        let keys: GaloisKeys = [party.key(3)].into_iter().collect();
        let rotated = rotate_rows(&party.context, &fresh, 1, &keys).expect("the key is there");
        assert_eq!(party.decrypt(&rotated), rotate_slots(&slots, 1, false), "digits of {digit_bits} bits");
        party.budget(&rotated)
    };
    assert!(rotated_budget(10) > rotated_budget(25) + 3.0, "digits far above P are noisy");
    assert!(rotated_budget(17) > 34.0, "digits below P cost next to nothing");
}

#[test]
fn missing_keys_are_named() {
    let mut toy = parameters(16, &[50], Some(50), 50, batching(16, 1 << 10));
    let mut party = Party::new(&toy, 1);
    let slots = party.random_slots();
    let fresh = party.encrypt(&slots);
    let keys: GaloisKeys = [party.key(3)].into_iter().collect();
    assert_eq!(swap_rows(&party.context, &fresh, &keys).err(), Some(GaloisKeyError::Missing(31)));
    assert!(rotate_rows(&party.context, &fresh, 0, &keys).is_ok(), "no key is needed to stay");
    assert_eq!(keys.elements().collect::<Vec<_>>(), [3]);

    toy.keys.key_switching_prime = None;
    let mut party = Party::new(&toy, 1);
    let seed = party.seed();
    let key = |element, party: &mut Party| {
        SeededGaloisKey::generate(&party.context, &party.secret, element, seed, 0, &mut party.rng).err()
    };
    assert_eq!(key(3, &mut party), Some(GaloisKeyError::NoKeySwitchingPrime));
}

#[test]
fn coefficients_take_a_modulus_beyond_a_word_half() {
    let t = (1 << 40) + 3;
    let mut parameters = parameters(64, &[58], None, 58, t);
    parameters.stage.reply_modulus = primes(64, &[55])[0];
    let mut party = Party::new(&parameters, 4);
    let message: Vec<u64> = (0..64).map(|i| (t / 64 * i + i) % t).collect();
    let plaintext = Plaintext::from_coefficients(&party.context, message.clone());
    let seed = party.seed();
    let fresh = encrypt_secret(&party.context, &party.secret, &plaintext, seed, 0, &mut party.rng);
    let fresh = fresh.expand(&party.context);
    assert_eq!(decrypt(&party.context, &party.secret, &fresh).coefficients(), message);
    let returned: Vec<usize> = (0..64).collect();
    let reply = Reply::new(&party.context, fresh, &returned);
    let key = ReplyKey::new(&party.context, &party.secret);
    assert_eq!(decrypt_reply(&party.context, &key, &reply, &returned), message);
}

#[test]
fn coefficients_take_a_power_of_two() {
    let parameters = parameters(64, &[50], Some(50), 50, 1 << 12);
    let mut party = Party::new(&parameters, 2);
    let mut message = vec![0; 64];
    message[3] = 5;
    let plaintext = Plaintext::from_coefficients(&party.context, message);
    let seed = party.seed();
    let fresh = encrypt_secret(&party.context, &party.secret, &plaintext, seed, 0, &mut party.rng);
    // Times -2 X^62, divided by 2, then added to its image under X -> X^65, which is X -> -X: odd powers vanish.
    let weight = |position: usize, value: u64| {
        let mut coefficients = vec![0; 64];
        coefficients[position] = value;
        Plaintext::from_coefficients(&party.context, coefficients)
    };
    let half = Multiplicand::divided(&party.context, &weight(61, 4094), 2);
    let mut product = fresh.expand(&party.context);
    mul_plain_assign(&party.context, &mut product, &half);
    let keys: GaloisKeys = [party.key(65)].into_iter().collect();
    let image = apply(&party.context, &product, 65, &keys).expect("the key is there");
    add_assign(&party.context, &mut product, &image);
    let mut expected = vec![0; 64];
    expected[0] = 10;
    assert_eq!(decrypt(&party.context, &party.secret, &product).coefficients(), expected);
}

/// Parameters of real size: everything once.
fn smoke(parameters: &Parameters) {
    let mut party = Party::new(parameters, 11);
    let (t, slots, weights) = (parameters.stage.plaintext_modulus, party.random_slots(), party.random_slots());
    let plaintext = party.encode(&slots);
    let mut ciphertext = encrypt_public(&party.context, &party.public, &plaintext, &mut party.rng);
    assert_eq!(party.decrypt(&ciphertext), slots);
    let elements = [element(parameters.keys.ring_degree, 5, true)];
    let keys: GaloisKeys = elements.iter().map(|&element| party.key(element)).collect();
    mul_plain_assign(&party.context, &mut ciphertext, &Multiplicand::new(&party.context, &party.encode(&weights)));
    ciphertext = apply(&party.context, &ciphertext, elements[0], &keys).expect("the key is there");
    assert!(party.budget(&ciphertext) > 15.0, "{}", party.budget(&ciphertext));
    let products: Vec<u64> = slots.iter().zip(&weights).map(|(a, b)| a * b % t).collect();
    let returned: Vec<usize> = (0..parameters.keys.ring_degree).collect();
    let reply = Reply::new(&party.context, ciphertext, &returned);
    let key = ReplyKey::new(&party.context, &party.secret);
    let coefficients = decrypt_reply(&party.context, &key, &reply, &returned);
    let plaintext = Plaintext::from_coefficients(&party.context, coefficients);
    let received = party.context.encoder().expect("t is 1 modulo 2N").decode(&plaintext);
    assert_eq!(received, rotate_slots(&products, 5, true));
}

#[test]
fn real_sizes() {
    smoke(&parameters(8192, &[58, 58], Some(59), 58, batching(8192, 1 << 19)));
    smoke(&parameters(4096, &[36, 36], Some(37), 36, batching(4096, 1 << 19)));
}
