//! Pointwise work on whole residue polynomials, on the fastest kernel of the machine.
//!
//! Words are reduced before and after; slices of one call have one length, which need not fill registers.

use super::kernel::{self, Kernel, Task};
use super::lanes::{Lanes, Residues, Scalar, Vector, Wide};
use super::modulus::Modulus;

/// Multiplies word by word: out = ab.
///
/// # Panics
/// Here and below: when lengths differ.
pub fn pointwise_mul(modulus: Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
    update(Kernel::best(), modulus, Product, out, [a, b]);
}

/// Multiplies in place: a = ab.
pub fn mul_assign(modulus: Modulus, a: &mut [u64], b: &[u64]) {
    update(Kernel::best(), modulus, Scale, a, [b]);
}

/// Multiplies and adds: acc = acc + ab. For more than a few terms see [`super::accumulate`].
pub fn pointwise_mul_add(modulus: Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    update(Kernel::best(), modulus, AddProduct, acc, [a, b]);
}

/// Adds in place: a = a + b.
pub fn add_assign(modulus: Modulus, a: &mut [u64], b: &[u64]) {
    update(Kernel::best(), modulus, Add, a, [b]);
}

/// Subtracts in place: a = a - b.
pub fn sub_assign(modulus: Modulus, a: &mut [u64], b: &[u64]) {
    update(Kernel::best(), modulus, Sub, a, [b]);
}

/// Negates in place.
pub fn neg_assign(modulus: Modulus, a: &mut [u64]) {
    update(Kernel::best(), modulus, Neg, a, []);
}

/// Multiplies in place by one residue.
pub fn scalar_mul_assign(modulus: Modulus, a: &mut [u64], by: u64) {
    kernel::run(Kernel::best(), modulus, ScalarMul { modulus, words: a, by });
}

/// Subtracts in place and multiplies by one residue: a = (a - b) by.
pub fn sub_scale_assign(modulus: Modulus, a: &mut [u64], b: &[u64], by: u64) {
    assert_eq!(a.len(), b.len(), "pointwise work needs slices of one length");
    kernel::run(Kernel::best(), modulus, SubScale { modulus, words: a, subtracted: b, by });
}

/// What becomes of a word, given the words beside it in `K` other slices.
trait Step<const K: usize>: Copy {
    fn apply<R: Residues>(self, r: R, word: Vector<R>, others: [Vector<R>; K]) -> Vector<R>;
}

/// Declares a step.
macro_rules! step {
    ($name:ident, $count:literal, |$r:ident, $word:ident, $others:pat_param| $result:expr) => {
        #[derive(Clone, Copy)]
        struct $name;

        impl Step<$count> for $name {
            #[inline(always)]
            fn apply<R: Residues>(self, $r: R, $word: Vector<R>, $others: [Vector<R>; $count]) -> Vector<R> {
                $result
            }
        }
    };
}

step!(Product, 2, |r, _word, [a, b]| r.product(a, b));
step!(Scale, 1, |r, word, [a]| r.product(word, a));
step!(AddProduct, 2, |r, word, [a, b]| r.sub_modulus_once(r.lanes().add(word, r.product(a, b))));
step!(Add, 1, |r, word, [a]| r.sub_modulus_once(r.lanes().add(word, a)));
step!(Sub, 1, |r, word, [a]| r.sub_modulus_once(r.lanes().add(word, r.lanes().sub(r.modulus(), a))));
step!(Neg, 0, |r, word, []| r.sub_modulus_once(r.lanes().sub(r.modulus(), word)));

fn update<const K: usize>(
    kernel: Kernel,
    modulus: Modulus,
    step: impl Step<K>,
    words: &mut [u64],
    others: [&[u64]; K],
) {
    assert!(others.iter().all(|other| other.len() == words.len()), "pointwise work needs slices of one length");
    kernel::run(kernel, modulus, Update { modulus, step, words, others });
}

struct Update<'a, S, const K: usize> {
    modulus: Modulus,
    step: S,
    words: &'a mut [u64],
    others: [&'a [u64]; K],
}

impl<S: Step<K>, const K: usize> Task for Update<'_, S, K> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let whole = self.words.len() - self.words.len() % R::Lanes::LANES;
        let (body, rest) = self.words.split_at_mut(whole);
        apply_all(r, self.step, body, self.others, 0);
        apply_all(Wide::new(Scalar, self.modulus), self.step, rest, self.others, whole);
    }
}

/// Applies a step to `words`, a whole number of registers, beside `others[..]` from `offset`.
#[inline(always)]
fn apply_all<R: Residues, const K: usize>(
    r: R,
    step: impl Step<K>,
    words: &mut [u64],
    others: [&[u64]; K],
    offset: usize,
) {
    let lanes = r.lanes();
    let length = words.len();
    let mut inputs = others;
    for k in 0..K {
        inputs[k] = &others[k][offset..][..length];
    }
    for (i, word) in words.chunks_exact_mut(R::Lanes::LANES).enumerate() {
        // A loop, not a closure: closures do not take on the instructions of the function around them.
        let mut beside = [lanes.splat(0); K];
        for k in 0..K {
            beside[k] = lanes.load(&inputs[k][i * R::Lanes::LANES..][..R::Lanes::LANES]);
        }
        lanes.store(word, step.apply(r, lanes.load(word), beside));
    }
}

struct ScalarMul<'a> {
    modulus: Modulus,
    words: &'a mut [u64],
    by: u64,
}

impl Task for ScalarMul<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let lanes = r.lanes();
        let constant = r.constant(&R::table(self.modulus, &[self.by]), 0);
        let mut chunks = self.words.chunks_exact_mut(R::Lanes::LANES);
        for word in &mut chunks {
            lanes.store(word, r.canonical(r.mul(lanes.load(word), constant)));
        }
        for word in chunks.into_remainder() {
            *word = self.modulus.mul(*word, self.by);
        }
    }
}

struct SubScale<'a> {
    modulus: Modulus,
    words: &'a mut [u64],
    subtracted: &'a [u64],
    by: u64,
}

impl Task for SubScale<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let lanes = r.lanes();
        let constant = r.constant(&R::table(self.modulus, &[self.by]), 0);
        let mut words = self.words.chunks_exact_mut(R::Lanes::LANES);
        let mut subtracted = self.subtracted.chunks_exact(R::Lanes::LANES);
        for (word, other) in (&mut words).zip(&mut subtracted) {
            // Below 2p, which every arithmetic's multiplication takes.
            let difference = lanes.add(lanes.load(word), lanes.sub(r.modulus(), lanes.load(other)));
            lanes.store(word, r.canonical(r.mul(difference, constant)));
        }
        for (word, &other) in words.into_remainder().iter_mut().zip(subtracted.remainder()) {
            *word = self.modulus.mul(self.modulus.sub(*word, other), self.by);
        }
    }
}

/// Says whether all words are below a bound of at most 2^63.
///
/// Without a branch in the loop, and in a form that any registers serve: the sign bit tells.
pub fn are_below(words: &[u64], bound: u64) -> bool {
    words.iter().fold(0, |signs, &word| signs | word | (bound - 1).wrapping_sub(word)) >> 63 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    fn residues(p: Modulus, seed: u64, length: usize) -> Vec<u64> {
        let words = (1..=length as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed).rotate_left(31));
        words.map(|x| if x % 5 == 0 { p.value() - 1 - x % 3 } else { p.reduce(x) }).collect()
    }

    proptest! {
        #[test]
        fn every_kernel_does_what_single_words_do(bits in 14u32..=61, length in 0usize..70, seed: u64, by: u64) {
            let p = Modulus::new(ntt_primes_below(bits, 16).next().expect("16 is small"));
            let (a, b, c) = (residues(p, seed, length), residues(p, !seed, length), residues(p, seed / 3, length));
            let by = p.reduce(by);
            for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
                let check = |found: Vec<u64>, expected: &dyn Fn(usize) -> u64| {
                    prop_assert_eq!(found, (0..length).map(expected).collect::<Vec<_>>(), "{:?}", kernel);
                    Ok(())
                };
                let updated = |f: &dyn Fn(&mut [u64])| { let mut words = c.clone(); f(&mut words); words };
                check(updated(&|w| update(kernel, p, Product, w, [&a, &b])), &|i| p.mul(a[i], b[i]))?;
                check(updated(&|w| update(kernel, p, Scale, w, [&a])), &|i| p.mul(c[i], a[i]))?;
                check(updated(&|w| update(kernel, p, AddProduct, w, [&a, &b])), &|i| p.add(c[i], p.mul(a[i], b[i])))?;
                check(updated(&|w| update(kernel, p, Add, w, [&a])), &|i| p.add(c[i], a[i]))?;
                check(updated(&|w| update(kernel, p, Sub, w, [&a])), &|i| p.sub(c[i], a[i]))?;
                check(updated(&|w| update(kernel, p, Neg, w, [])), &|i| p.neg(c[i]))?;
                let scaled = updated(&|w| kernel::run(kernel, p, ScalarMul { modulus: p, words: w, by }));
                check(scaled, &|i| p.mul(c[i], by))?;
                let scaled = updated(&|words| {
                    kernel::run(kernel, p, SubScale { modulus: p, words, subtracted: &a, by });
                });
                check(scaled, &|i| p.mul(p.sub(c[i], a[i]), by))?;
            }
        }
    }

    #[test]
    fn public_functions_name_the_right_step() {
        let p = Modulus::new(97);
        let (a, b) = ([3, 96, 0], [40, 2, 5]);
        let mut out = [1; 3];
        pointwise_mul(p, &a, &b, &mut out);
        assert_eq!(out, [23, 95, 0]);
        pointwise_mul_add(p, &mut out, &a, &b);
        assert_eq!(out, [46, 93, 0]);
        add_assign(p, &mut out, &b);
        assert_eq!(out, [86, 95, 5]);
        sub_assign(p, &mut out, &a);
        assert_eq!(out, [83, 96, 5]);
        neg_assign(p, &mut out);
        assert_eq!(out, [14, 1, 92]);
        mul_assign(p, &mut out, &b);
        assert_eq!(out, [75, 2, 72]);
        scalar_mul_assign(p, &mut out, 2);
        assert_eq!(out, [53, 4, 47]);
        sub_scale_assign(p, &mut out, &a, 3);
        assert_eq!(out, [53, 15, 44]);
    }
}
