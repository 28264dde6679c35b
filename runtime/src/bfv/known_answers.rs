//! Batch encoding, Galois maps and their direction, against the `fhe` crate 0.1.1.
//!
//! It takes as zeta any primitive 2N-th root of unity modulo t, not the smallest. An odd power of ours is one of
//! zeta^(3^s) and zeta^(-3^s), so its rows are ours rotated by one fixed s, and perhaps swapped. Everything else agrees.

use super::context::Context;
use super::encode::Plaintext;
use crate::math::poly::{Automorphism, Coefficients, Poly};
use chococ_plans::packing::Rotation;
use chococ_plans::params::{KeyParameters, Parameters, StageParameters, rotation_element};
use chococ_plans::primes::ntt_primes_below;
use fhe::bfv::{BfvParameters, BfvParametersBuilder, Ciphertext, Encoding, EvaluationKeyBuilder, SecretKey};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use rand_09::SeedableRng;
use std::sync::Arc;

const RING_DEGREE: usize = 64;
const PLAINTEXT_MODULUS: u64 = 7681;

fn both() -> (Context, Arc<BfvParameters>) {
    let primes: Vec<u64> = ntt_primes_below(50, RING_DEGREE).take(3).collect();
    let theirs = BfvParametersBuilder::new()
        .set_degree(RING_DEGREE)
        .set_plaintext_modulus(PLAINTEXT_MODULUS)
        .set_moduli(&primes)
        .build_arc()
        .expect("each prime is 1 modulo 128");
    let ours = Context::new(&Parameters {
        keys: KeyParameters {
            ring_degree: RING_DEGREE,
            ciphertext_primes: primes[..2].to_vec(),
            key_switching_prime: Some(primes[2]),
            digit_bits: 50,
        },
        stage: StageParameters {
            request_dropped_bits: 0,
            reply_modulus: primes[0],
            reply_dropped_bits: 0,
            plaintext_modulus: PLAINTEXT_MODULUS,
        },
    })
    .expect("each prime is 1 modulo 128");
    (ours, theirs)
}

fn our_slots(context: &Context, coefficients: &[u64]) -> Vec<u64> {
    let plaintext = Plaintext::from_coefficients(context, coefficients.to_vec());
    context.encoder().expect("7681 = 1 mod 128").decode(&plaintext)
}

fn their_slots(parameters: &Arc<BfvParameters>, coefficients: &[u64]) -> Vec<u64> {
    let plaintext =
        fhe::bfv::Plaintext::try_encode(coefficients, Encoding::poly(), parameters).expect("N coefficients");
    // A ciphertext carries no encoding, so encrypting and decrypting allows reading slots.
    let mut rng = rand_09::rngs::StdRng::seed_from_u64(1);
    let secret = SecretKey::random(parameters, &mut rng);
    let ciphertext: Ciphertext = secret.try_encrypt(&plaintext, &mut rng).expect("the parameters are equal");
    let decrypted = secret.try_decrypt(&ciphertext).expect("the parameters are equal");
    Vec::<u64>::try_decode(&decrypted, Encoding::simd()).expect("t is 1 modulo 2N")
}

fn turn(slots: &[u64], steps: usize, swap: bool) -> Vec<u64> {
    let (first, second) = slots.split_at(slots.len() / 2);
    let left = |row: &[u64]| [&row[steps..], &row[..steps]].concat();
    if swap { [left(second), left(first)].concat() } else { [left(first), left(second)].concat() }
}

fn sample() -> Vec<u64> {
    (0..RING_DEGREE as u64).map(|i| (i * i * 977 + 3 * i + 5) % PLAINTEXT_MODULUS).collect()
}

#[test]
fn slots_differ_from_fhe_by_one_fixed_rotation() {
    let (ours, theirs) = both();
    let mut monomial = vec![0; RING_DEGREE];
    monomial[1] = 1;
    // The slots of X name the roots themselves.
    let (mine, other) = (our_slots(&ours, &monomial), their_slots(&theirs, &monomial));
    let at = mine.iter().position(|&root| root == other[0]).expect("slots of X are all the primitive roots");
    let (steps, swap) = (at % (RING_DEGREE / 2), at >= RING_DEGREE / 2);
    assert_eq!(other, turn(&mine, steps, swap));
    assert_eq!(their_slots(&theirs, &sample()), turn(&our_slots(&ours, &sample()), steps, swap));
}

#[test]
fn rotations_go_the_way_they_go_in_fhe() {
    let (ours, theirs) = both();
    let mut rng = rand_09::rngs::StdRng::seed_from_u64(2);
    let secret = SecretKey::random(&theirs, &mut rng);
    let keys = EvaluationKeyBuilder::new_leveled(&secret, 1, 0)
        .and_then(|mut builder| builder.enable_column_rotation(5)?.enable_row_rotation()?.build(&mut rng))
        .expect("5 is below N/2");
    let encode = |encoding| fhe::bfv::Plaintext::try_encode(&sample(), encoding, &theirs).expect("N values below t");
    let encrypted = |plaintext, rng: &mut _| -> Ciphertext { secret.try_encrypt(&plaintext, rng).expect("one set") };
    let decrypt = |ciphertext, encoding| -> Vec<u64> {
        let plaintext = secret.try_decrypt(&ciphertext).expect("the parameters are equal");
        Vec::try_decode(&plaintext, encoding).expect("the parameters batch")
    };

    let slots = encrypted(encode(Encoding::simd_at_level(1)), &mut rng);
    let rotated = keys.rotates_columns_by(&slots, 5).expect("the key is there");
    assert_eq!(decrypt(rotated, Encoding::simd_at_level(1)), turn(&sample(), 5, false), "left, as ours");
    let swapped = keys.rotates_rows(&slots).expect("the key is there");
    assert_eq!(decrypt(swapped, Encoding::simd_at_level(1)), turn(&sample(), 0, true));

    // The same map on coefficients, where the choice of root plays no part.
    let coefficients = encrypted(encode(Encoding::poly_at_level(1)), &mut rng);
    let rotated = keys.rotates_columns_by(&coefficients, 5).expect("the key is there");
    let automorphism =
        Automorphism::new(RING_DEGREE, rotation_element(RING_DEGREE, Rotation { steps: 5, swap: false }));
    // Modulo the first ciphertext prime, negative coefficients are read off below t.
    let q = ours.parameters().keys.ciphertext_primes[0];
    let image = Poly::<Coefficients>::from_words(RING_DEGREE, sample()).automorphism(ours.ring(), &automorphism);
    let expected: Vec<u64> = image
        .words()
        .iter()
        .map(|&c| if c > q / 2 { (PLAINTEXT_MODULUS - (q - c)) % PLAINTEXT_MODULUS } else { c })
        .collect();
    assert_eq!(decrypt(rotated, Encoding::poly_at_level(1)), expected);
}
