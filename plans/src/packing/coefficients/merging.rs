//! The tree by which ciphertexts are merged.
//!
//! Level l puts together what is 2^(l-1) ciphertexts each: base e and base e + M/2^l, by h = C/2^l. So base e ends up
//! at e C/M, and the last level leaves one ciphertext. Bases that do not exist are the last ones: their places stay
//! empty, but junk must still be cancelled.

use super::layout::Layout;

/// One way to make a ciphertext out of bases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// A base, as the products give it.
    Base(usize),
    /// (E + X^h O) + sigma(E - X^h O), or E + sigma(E) where there is no O.
    Merge {
        /// E.
        even: Box<Merging>,
        /// O.
        odd: Option<Box<Merging>>,
        /// h: sigma is X -> X^(N/h + 1).
        step: usize,
    },
}

impl Merging {
    /// Merges `bases` ciphertexts, of at most `merge` places, at multiples of `interleave`.
    ///
    /// # Panics
    /// Where there are no bases.
    pub fn new(bases: usize, merge: usize, interleave: usize) -> Merging {
        Merging::at(merge.ilog2(), 0, bases, merge, interleave).expect("there is a base")
    }

    fn at(level: u32, first: usize, bases: usize, merge: usize, interleave: usize) -> Option<Merging> {
        if level == 0 {
            return (first < bases).then_some(Merging::Base(first));
        }
        let below = |first| Merging::at(level - 1, first, bases, merge, interleave).map(Box::new);
        let (even, odd) = (below(first)?, below(first + (merge >> level)));
        Some(Merging::Merge { even, odd, step: interleave >> level })
    }

    /// Automorphisms it takes, one key switch each.
    pub fn automorphisms(&self) -> usize {
        match self {
            Merging::Base(_) => 0,
            Merging::Merge { even, odd, .. } => {
                1 + even.automorphisms() + odd.as_ref().map_or(0, |odd| odd.automorphisms())
            }
        }
    }

    /// The h of every level.
    pub fn steps(merge: usize, interleave: usize) -> impl Iterator<Item = usize> {
        (1..=merge.ilog2()).map(move |level| interleave >> level)
    }
}

impl Layout {
    /// How the bases of a group of outputs are merged.
    pub fn merging(&self, output_group: usize) -> Merging {
        Merging::new(self.bases(output_group), self.packing.merge, self.packing.interleave)
    }
}
