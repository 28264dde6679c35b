//! The scheme on one core, and the `fhe` crate beside it at {58, 58, 59}. Ids name N and the bits of each prime.

use chacha20::ChaCha20Rng;
use chococ_plans::packing::Rotation;
use chococ_plans::params::{KeyParameters, Parameters, StageParameters, rotation_element};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_runtime::bfv::decrypt::decrypt;
use chococ_runtime::bfv::encrypt::{encrypt_public, encrypt_secret};
use chococ_runtime::bfv::evaluate::mul_plain_assign;
use chococ_runtime::bfv::inner_product::inner_product;
use chococ_runtime::bfv::reply::decrypt_reply;
use chococ_runtime::bfv::rotate::{apply, hoist};
use chococ_runtime::bfv::{
    Ciphertext, Context, GaloisKeys, Multiplicand, PublicKey, Reply, ReplyKey, SecretKey, SeededGaloisKey,
};
use criterion::{Criterion, criterion_group, criterion_main};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use rand::SeedableRng;
use std::hint::black_box;

/// Makes a parameter set: sizes of the ciphertext primes, of the special prime, of t.
fn parameters(ring_degree: usize, bits: &[u32], special_bits: u32, plaintext_bits: u32) -> Parameters {
    let mut primes: Vec<u64> = Vec::new();
    for &bits in bits.iter().chain([&special_bits]) {
        let next = ntt_primes_below(bits, ring_degree).find(|prime| !primes.contains(prime));
        primes.push(next.expect("there are enough primes of each size"));
    }
    let key_switching_prime = primes.pop();
    let least = 1 << (plaintext_bits - 1);
    Parameters {
        keys: KeyParameters {
            ring_degree,
            ciphertext_primes: primes,
            key_switching_prime,
            digit_bits: *bits.iter().max().expect("there is a ciphertext prime"),
        },
        stage: StageParameters {
            request_dropped_bits: 0,
            reply_modulus: ntt_primes_below(plaintext_bits + 10, ring_degree).next().expect("there are some"),
            reply_dropped_bits: 4,
            plaintext_modulus: ntt_primes_from(least, ring_degree).next().expect("primes do not end"),
        },
    }
}

fn ours(criterion: &mut Criterion, name: &str, parameters: &Parameters) {
    let context = Context::new(parameters).expect("the set has transforms");
    let encoder = context.encoder().expect("t is 1 modulo 2N");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let secret = SecretKey::generate(&context, &mut rng);
    let public = PublicKey::generate(&context, &secret, &mut rng);
    let slots: Vec<u64> =
        (0..parameters.keys.ring_degree as u64).map(|i| i * i % parameters.stage.plaintext_modulus).collect();
    let plaintext = encoder.encode(&slots);
    let element = rotation_element(parameters.keys.ring_degree, Rotation { steps: 1, swap: false });
    let key = SeededGaloisKey::generate(&context, &secret, element, [3; 32], 1, &mut rng).expect("P is there");
    let keys: GaloisKeys = [key.expand(&context).expect("the key is sound")].into_iter().collect();
    let fresh = encrypt_public(&context, &public, &plaintext, &mut rng);
    let multiplicand = Multiplicand::new(&context, &plaintext);

    let mut group = criterion.benchmark_group(name);
    group.sample_size(20);
    group.bench_function("encode", |b| b.iter(|| encoder.encode(black_box(&slots))));
    group.bench_function("decode", |b| b.iter(|| encoder.decode(black_box(&plaintext))));
    group.bench_function("encode and encrypt, secret key", |b| {
        b.iter(|| encrypt_secret(&context, &secret, &encoder.encode(black_box(&slots)), [1; 32], 0, &mut rng))
    });
    group.bench_function("encrypt, secret key", |b| {
        b.iter(|| encrypt_secret(&context, &secret, black_box(&plaintext), [1; 32], 0, &mut rng))
    });
    group.bench_function("encrypt, public key", |b| {
        b.iter(|| encrypt_public(&context, &public, black_box(&plaintext), &mut rng))
    });
    group.bench_function("decrypt", |b| b.iter(|| decrypt(&context, &secret, black_box(&fresh))));
    let returned: Vec<usize> = (0..parameters.keys.ring_degree).collect();
    let reply = Reply::new(&context, fresh.clone(), &returned);
    let reply_key = ReplyKey::new(&context, &secret);
    group.bench_function("decrypt a reply", |b| {
        b.iter(|| decrypt_reply(&context, &reply_key, black_box(&reply), &returned))
    });
    group.bench_function("switch to a reply", |b| b.iter(|| Reply::new(&context, fresh.clone(), &returned)));
    group.bench_function("multiply with a plaintext", |b| {
        b.iter(|| {
            let mut product = fresh.clone();
            mul_plain_assign(&context, &mut product, black_box(&multiplicand));
            product
        })
    });
    let terms: Vec<(Ciphertext, Multiplicand)> = (0..64).map(|_| (fresh.clone(), multiplicand.clone())).collect();
    let terms: Vec<(&Ciphertext, &Multiplicand)> = terms.iter().map(|(a, b)| (a, b)).collect();
    group.bench_function("inner product of 64", |b| b.iter(|| inner_product(&context, black_box(&terms))));
    group.bench_function("prepare a plaintext", |b| b.iter(|| Multiplicand::new(&context, black_box(&plaintext))));
    group.bench_function("rotate", |b| b.iter(|| apply(&context, black_box(&fresh), element, &keys)));
    let hoisted = hoist(&context, &fresh);
    let key = keys.get(element).expect("it was just made");
    group.bench_function("rotate, hoisted", |b| b.iter(|| hoisted.apply(black_box(key))));
    group.finish();
}

/// The `fhe` crate with two primes for ciphertexts and the third for keys, as its levels 1 and 0.
fn theirs(criterion: &mut Criterion, name: &str, parameters: &Parameters) {
    use fhe::bfv::{BfvParametersBuilder, Ciphertext, Encoding, EvaluationKeyBuilder, Plaintext, PublicKey, SecretKey};
    let primes: Vec<u64> =
        parameters.keys.ciphertext_primes.iter().chain(&parameters.keys.key_switching_prime).copied().collect();
    let set = BfvParametersBuilder::new()
        .set_degree(parameters.keys.ring_degree)
        .set_plaintext_modulus(parameters.stage.plaintext_modulus)
        .set_moduli(&primes)
        .build_arc()
        .expect("the set has transforms");
    let mut rng = <rand_09::rngs::StdRng as rand_09::SeedableRng>::seed_from_u64(1);
    let secret = SecretKey::random(&set, &mut rng);
    let public = PublicKey::new(&secret, &mut rng);
    let keys = EvaluationKeyBuilder::new_leveled(&secret, 1, 0)
        .and_then(|mut builder| builder.enable_column_rotation(1)?.build(&mut rng))
        .expect("1 is below N/2");
    let slots: Vec<u64> =
        (0..parameters.keys.ring_degree as u64).map(|i| i * i % parameters.stage.plaintext_modulus).collect();
    let encode = |level| Plaintext::try_encode(&slots, Encoding::simd_at_level(level), &set).expect("N slots");
    let (plaintext, top_plaintext) = (encode(1), encode(0));
    let fresh: Ciphertext = secret.try_encrypt(&plaintext, &mut rng).expect("one set");

    let mut group = criterion.benchmark_group(name);
    group.sample_size(20);
    group.bench_function("encode", |b| b.iter(|| encode(1)));
    group.bench_function("decode", |b| b.iter(|| Vec::<u64>::try_decode(&plaintext, Encoding::simd_at_level(1))));
    group.bench_function("encrypt, secret key", |b| {
        b.iter(|| -> Ciphertext { secret.try_encrypt(black_box(&plaintext), &mut rng).expect("one set") })
    });
    group.bench_function("encrypt, public key, 2 primes", |b| {
        // Level 0 is the public key's own; at level 1 the key itself would be switched each time.
        b.iter(|| -> Ciphertext { public.try_encrypt(black_box(&plaintext), &mut rng).expect("one set") })
    });
    group.bench_function("encrypt, public key, 3 primes", |b| {
        b.iter(|| -> Ciphertext { public.try_encrypt(black_box(&top_plaintext), &mut rng).expect("one set") })
    });
    group.bench_function("decrypt", |b| b.iter(|| secret.try_decrypt(black_box(&fresh)).expect("one set")));
    group.bench_function("multiply with a plaintext", |b| b.iter(|| &fresh * black_box(&plaintext)));
    group.bench_function("rotate", |b| b.iter(|| keys.rotates_columns_by(black_box(&fresh), 1).expect("the key")));
    group.finish();
}

fn scheme(criterion: &mut Criterion) {
    let large = parameters(8192, &[58, 58], 59, 20);
    ours(criterion, "bfv 8192 {58,58,59}", &large);
    theirs(criterion, "fhe 8192 {58,58,59}", &large);
    ours(criterion, "bfv 4096 {36,36,37}", &parameters(4096, &[36, 36], 37, 20));
    // Both convolutions of LeNet-5-Large have t = 40961; this is its second.
    ours(criterion, "bfv 4096 {24,25,30}", &parameters(4096, &[24, 25], 30, 16));
}

criterion_group!(benches, scheme);
criterion_main!(benches);
