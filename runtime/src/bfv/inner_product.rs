//! Sums of products of ciphertexts and plaintexts: where a server spends its time.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::multiplicand::{Multiplicand, Residue};
use super::vectorized::vectorized;
use crate::math::accumulate::{LazyAccumulator, Term};
use crate::math::poly::{Evaluations, Poly};

/// Words summed before the next ones, so that running sums and widened weights stay in a first-level cache.
const BLOCK: usize = 512;

/// Terms whose weights are widened at a time.
const TERMS: usize = 8;

/// Multiplies each ciphertext with its plaintext and sums: each word is read once, each sum reduced once.
///
/// # Panics
/// When there are no terms, or levels differ.
pub fn inner_product(context: &Context, terms: &[(&Ciphertext, &Multiplicand)]) -> Ciphertext {
    let level = terms.first().expect("a sum has terms").0.level();
    assert!(terms.iter().all(|(ciphertext, _)| ciphertext.level() == level), "terms have one level");
    let mut sum = Ciphertext::zero(context, level);
    let n = context.ring_degree();
    let mut widened = vec![0; TERMS * BLOCK];
    for i in 0..level {
        for start in (0..n).step_by(BLOCK) {
            let block = Block { residue: i, start, length: BLOCK.min(n - start) };
            let mut parts = [(); 2].map(|()| LazyAccumulator::new(context.modulus(i), block.length));
            for terms in terms.chunks(TERMS) {
                block.add(terms, &mut widened, &mut parts);
            }
            let [c0, c1] = &mut parts;
            c0.finish(block.of_mut(&mut sum.c0));
            c1.finish(block.of_mut(&mut sum.c1));
        }
    }
    sum
}

/// A stretch of one residue.
#[derive(Clone, Copy)]
struct Block {
    residue: usize,
    start: usize,
    length: usize,
}

impl Block {
    fn of(self, poly: &Poly<Evaluations>) -> &[u64] {
        &poly.residue(self.residue)[self.start..][..self.length]
    }

    fn of_mut(self, poly: &mut Poly<Evaluations>) -> &mut [u64] {
        &mut poly.residue_mut(self.residue)[self.start..][..self.length]
    }

    /// Adds up to [`TERMS`] products to the sums for c0 and c1.
    fn add(self, terms: &[(&Ciphertext, &Multiplicand)], widened: &mut [u64], parts: &mut [LazyAccumulator; 2]) {
        let weights: Vec<&[u64]> = terms
            .iter()
            .zip(widened.chunks_exact_mut(BLOCK))
            .map(|((_, multiplicand), room)| match multiplicand.residue(self.residue) {
                Residue::Long(words) => &words[self.start..][..self.length],
                Residue::Short(words) => {
                    let room = &mut room[..self.length];
                    let words = &words[self.start..][..self.length];
                    widen(words, room);
                    &*room
                }
            })
            .collect();
        let [c0, c1] = parts;
        let products = |part: fn(&Ciphertext) -> &Poly<Evaluations>| -> Vec<Term<'_>> {
            terms.iter().zip(&weights).map(|((ciphertext, _), &weight)| (self.of(part(ciphertext)), weight)).collect()
        };
        c0.add_products(&products(|ciphertext| &ciphertext.c0));
        c1.add_products(&products(|ciphertext| &ciphertext.c1));
    }
}

vectorized! {
    /// Writes short words as long ones.
    fn widen(words: &[u32], out: &mut [u64]) {
        out.iter_mut().zip(words).for_each(|(out, &word)| *out = word.into());
    }
}
