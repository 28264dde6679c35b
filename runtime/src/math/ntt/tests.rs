//! The transform against its definition, against schoolbook products, and kernel against kernel.

use super::*;
use chococ_plans::primes::ntt_primes_below;
use proptest::prelude::*;

/// The largest prime of the given length that has a transform of the given degree, if there is one.
fn prime(bits: u32, ring_degree: usize) -> Option<Modulus> {
    ntt_primes_below(bits, ring_degree).next().map(Modulus::new)
}

fn bit_reversal(i: usize, ring_degree: usize) -> usize {
    i.reverse_bits() >> (usize::BITS - ring_degree.trailing_zeros())
}

/// The definition: the value of the polynomial at psi^(2 bitrev(i) + 1).
fn naive_forward(coefficients: &[u64], p: Modulus, root: u64) -> Vec<u64> {
    let n = coefficients.len();
    let value = |i| {
        let point = p.pow(root, 2 * bit_reversal(i, n) as u64 + 1);
        coefficients.iter().rev().fold(0, |sum, &c| p.add(p.mul(sum, point), c))
    };
    (0..n).map(value).collect()
}

/// Schoolbook product modulo X^N + 1.
fn naive_product(a: &[u64], b: &[u64], p: Modulus) -> Vec<u64> {
    let n = a.len();
    let mut product = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let term = if i + j < n { p.mul(x, y) } else { p.neg(p.mul(x, y)) };
            product[(i + j) % n] = p.add(product[(i + j) % n], term);
        }
    }
    product
}

/// Words that exercise the bounds: all p - 1, alternating extremes, or pseudo-random ones.
fn words(n: usize, p: Modulus, seed: u64) -> Vec<u64> {
    let top = p.value() - 1;
    let random = |i: usize| p.reduce((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ seed);
    match seed {
        0 => vec![top; n],
        1 => (0..n).map(|i| if i % 2 == 0 { top } else { 0 }).collect(),
        _ => (0..n).map(random).map(|x| p.mul(x, random(x as usize % 977))).collect(),
    }
}

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available())
}

#[test]
fn values_stand_in_bit_reversed_order() {
    for n in [4, 8, 32, 64, 256] {
        for bits in [14, 30, 50, 61] {
            let p = prime(bits, n).expect("small rings have primes of every length");
            for kernel in available() {
                let ntt = Ntt::with_kernel(n, p, kernel).expect("the prime fits");
                let coefficients = words(n, p, 7);
                let mut values = coefficients.clone();
                ntt.forward(&mut values);
                assert_eq!(values, naive_forward(&coefficients, p, ntt.root()), "N {n}, {bits} bits, {kernel:?}");
            }
        }
    }
}

#[test]
fn values_are_those_another_tool_finds() {
    let known: serde_json::Value =
        serde_json::from_str(include_str!("../../../../tests/kat/ntt.json")).expect("the file is JSON");
    for case in known["cases"].as_array().expect("a list of cases") {
        let number = |key: &str| case[key].as_u64().expect("a number");
        let numbers = |key: &str| case[key].as_array().expect("a list").iter().map(|x| x.as_u64().expect("a number"));
        let (n, p) = (number("n"), Modulus::new(number("p")));
        let coefficient = |i: u64| p.pow(p.reduce(i * i + 7 * i + 3), 3);
        for kernel in available() {
            let ntt = Ntt::with_kernel(n as usize, p, kernel).expect("the prime fits");
            assert_eq!(ntt.root(), number("psi"));
            let mut words: Vec<u64> = (0..n).map(coefficient).collect();
            ntt.forward(&mut words);
            for (i, value) in numbers("indices").zip(numbers("values")) {
                assert_eq!(words[i as usize], value, "N {n}, p {}, index {i}, {kernel:?}", p.value());
            }
            ntt.inverse(&mut words);
            assert!((0..n).map(coefficient).eq(words), "N {n}, p {}, {kernel:?}", p.value());
        }
    }
}

#[test]
fn kernels_agree_bit_for_bit() {
    for log_n in 3..=13 {
        let n = 1 << log_n;
        for p in (14..=61).filter_map(|bits| prime(bits, n)) {
            let scalar = Ntt::with_kernel(n, p, Kernel::Scalar).expect("the prime fits");
            for kernel in available() {
                let ntt = Ntt::with_kernel(n, p, kernel).expect("the prime fits");
                for seed in 0..3 {
                    let coefficients = words(n, p, seed);
                    let (mut expected, mut found) = (coefficients.clone(), coefficients.clone());
                    scalar.forward(&mut expected);
                    ntt.forward(&mut found);
                    assert!(found == expected, "forward: N {n}, p {}, {kernel:?}, seed {seed}", p.value());
                    ntt.inverse(&mut found);
                    assert!(found == coefficients, "round trip: N {n}, p {}, {kernel:?}, seed {seed}", p.value());
                    let factor = words(n, p, seed + 1);
                    let mut expected = coefficients.clone();
                    scalar.forward(&mut expected);
                    expected.iter_mut().zip(&factor).for_each(|(x, &y)| *x = p.mul(*x, y));
                    scalar.inverse(&mut expected);
                    let mut halfway = coefficients.clone();
                    scalar.forward(&mut halfway);
                    ntt.inverse_of_product(&mut halfway, &factor);
                    assert!(halfway == expected, "product: N {n}, p {}, {kernel:?}, seed {seed}", p.value());
                    // Values with structure of their own, not images of a forward transform.
                    let (mut expected, mut found) = (coefficients.clone(), coefficients);
                    scalar.inverse(&mut expected);
                    ntt.inverse(&mut found);
                    assert!(found == expected, "inverse: N {n}, p {}, {kernel:?}, seed {seed}", p.value());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pointwise_products_are_ring_products(log_n in 2u32..=7, bits in 14u32..=61, seed: u64) {
        let n = 1 << log_n;
        let p = prime(bits, n).expect("small rings have primes of every length");
        let ntt = Ntt::new(n, p).expect("the prime fits");
        let (a, b) = (words(n, p, seed), words(n, p, seed ^ 0xabcd));
        let (mut x, mut y) = (a.clone(), b.clone());
        ntt.forward(&mut x);
        ntt.forward(&mut y);
        let mut product: Vec<u64> = x.iter().zip(&y).map(|(&x, &y)| p.mul(x, y)).collect();
        ntt.inverse(&mut product);
        prop_assert_eq!(product, naive_product(&a, &b, p));
    }
}

#[test]
fn the_root_is_the_smallest_of_order_2n() {
    for (n, p) in [(8, 17), (16, 97), (64, 257), (1024, 12289)] {
        let p = Modulus::new(p);
        let root = Ntt::new(n, p).expect("2N divides p - 1").root();
        let primitive = |x: &u64| p.pow(*x, n as u64) == p.value() - 1;
        assert_eq!((2..p.value()).find(primitive), Some(root));
    }
}

#[test]
fn refuses_rings_without_a_transform() {
    assert!(Ntt::new(8, Modulus::new(41)).is_none(), "16 does not divide 40");
    assert!(Ntt::new(24, Modulus::new(97)).is_none(), "24 is not a power of two");
    assert!(Ntt::new(0, Modulus::new(97)).is_none());
}
