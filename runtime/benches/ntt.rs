//! Times transforms, pointwise products and sampling. An id names N and the bits of the prime.

use std::hint::black_box;

use chacha20::ChaCha20Rng;
use chococ_plans::primes::ntt_primes_below;
use chococ_runtime::math::accumulate::LazyAccumulator;
use chococ_runtime::math::modulus::Modulus;
use chococ_runtime::math::ntt::{Kernel, Ntt};
use chococ_runtime::math::{sample, vector};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::SeedableRng;

const BITS: [u32; 4] = [30, 36, 50, 58];

fn prime(bits: u32, ring_degree: usize) -> u64 {
    ntt_primes_below(bits, ring_degree).next().expect("each length has a prime for these degrees")
}

fn residues(modulus: Modulus, length: usize, seed: u8) -> Vec<u64> {
    let mut words = vec![0; length];
    sample::uniform(modulus, &mut ChaCha20Rng::from_seed([seed; 32]), &mut words);
    words
}

fn transforms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ntt");
    for ring_degree in [2048, 4096, 8192] {
        for bits in BITS {
            let modulus = Modulus::new(prime(bits, ring_degree));
            let kernels = if ring_degree == 8192 { &Kernel::ALL[..] } else { &[Kernel::best()] };
            for &kernel in kernels {
                let Some(ntt) = Ntt::with_kernel(ring_degree, modulus, kernel) else { continue };
                let mut words = residues(modulus, ring_degree, 1);
                let id = |direction: &str| {
                    BenchmarkId::new(format!("{direction}/{kernel:?}"), format!("{ring_degree}/{bits}"))
                };
                group.bench_function(id("forward"), |b| b.iter(|| ntt.forward(black_box(&mut words))));
                group.bench_function(id("inverse"), |b| b.iter(|| ntt.inverse(black_box(&mut words))));
            }
            let theirs = fhe_math::zq::Modulus::new(modulus.value()).expect("a prime below 2^62");
            let ntt = fhe_math::ntt::NttOperator::new(&theirs, ring_degree).expect("1 modulo 2N");
            let mut words = residues(modulus, ring_degree, 1);
            let id =
                |direction: &str| BenchmarkId::new(format!("{direction}/fhe-math"), format!("{ring_degree}/{bits}"));
            group.bench_function(id("forward"), |b| b.iter(|| ntt.forward(black_box(&mut words))));
            group.bench_function(id("inverse"), |b| b.iter(|| ntt.backward(black_box(&mut words))));
        }
    }
}

fn products(criterion: &mut Criterion) {
    const N: usize = 8192;
    let mut group = criterion.benchmark_group("products");
    for bits in BITS {
        let modulus = Modulus::new(prime(bits, N));
        let operands: Vec<Vec<u64>> = (0..16).map(|seed| residues(modulus, N, seed)).collect();
        let terms: Vec<_> = operands[..8].iter().zip(&operands[8..]).map(|(a, b)| (&a[..], &b[..])).collect();
        let mut out = vec![0; N];
        let id = |what: &str| BenchmarkId::new(what, format!("{N}/{bits}"));
        group.bench_function(id("reduced"), |b| {
            b.iter(|| vector::pointwise_mul(modulus, terms[0].0, terms[0].1, &mut out))
        });
        group.bench_function(id("lazy sum of 8"), |b| {
            let mut sum = LazyAccumulator::new(modulus, N);
            b.iter(|| {
                sum.add_products(black_box(&terms));
                sum.finish(&mut out);
            });
        });
        group.bench_function(id("reduced sum of 8"), |b| {
            b.iter(|| black_box(&terms).iter().for_each(|(x, y)| vector::pointwise_mul_add(modulus, &mut out, x, y)));
        });
    }
}

fn samplers(criterion: &mut Criterion) {
    const N: usize = 8192;
    let mut group = criterion.benchmark_group("sample");
    let rng = || ChaCha20Rng::from_seed([9; 32]);
    for bits in BITS {
        let modulus = Modulus::new(prime(bits, N));
        let mut out = vec![0; N];
        let id = BenchmarkId::new("uniform", format!("{N}/{bits}"));
        group.bench_function(id, |b| {
            b.iter_batched_ref(rng, |rng| sample::uniform(modulus, rng, &mut out), BatchSize::SmallInput);
        });
    }
    let mut out = vec![0; N];
    group.bench_function(BenchmarkId::new("ternary", N), |b| {
        b.iter_batched_ref(rng, |rng| sample::ternary(rng, &mut out), BatchSize::SmallInput);
    });
    group.bench_function(BenchmarkId::new("error", N), |b| {
        b.iter_batched_ref(rng, |rng| sample::error(rng, &mut out), BatchSize::SmallInput);
    });
}

criterion_group!(benches, transforms, products, samplers);
criterion_main!(benches);
