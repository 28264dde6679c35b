//! Polynomials modulo X^N + 1 over several primes, with their form in the type.

use std::marker::PhantomData;

use zeroize::Zeroize;

pub use super::automorphism::Automorphism;
pub use super::ring::Ring;

/// The form in which a polynomial is its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficients;

/// The form in which a polynomial is its values at the roots of X^N + 1, in the order of [`Ntt`](super::ntt::Ntt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluations;

/// A polynomial in form `F`: one residue of N words for each of the first primes of its [`Ring`].
///
/// Residues stand one after the other, reduced. The ring is not stored; it is an argument of what needs it. There is
/// no `Debug`, because the polynomial may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Poly<F> {
    ring_degree: usize,
    words: Vec<u64>,
    form: PhantomData<F>,
}

impl<F> Poly<F> {
    /// Makes the zero polynomial with `residues` residues.
    pub fn zero(ring_degree: usize, residues: usize) -> Self {
        Self::from_words(ring_degree, vec![0; ring_degree * residues])
    }

    /// Takes residues of N words each, one after the other, each reduced modulo its prime.
    ///
    /// # Panics
    /// When the words do not make whole residues.
    pub fn from_words(ring_degree: usize, words: Vec<u64>) -> Self {
        assert!(words.len().is_multiple_of(ring_degree), "residues have N words");
        Self { ring_degree, words, form: PhantomData }
    }

    /// Returns N.
    pub fn ring_degree(&self) -> usize {
        self.ring_degree
    }

    /// Returns how many residues there are.
    pub fn residue_count(&self) -> usize {
        self.words.len() / self.ring_degree
    }

    /// Returns all words, residue by residue.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns residue `i`.
    pub fn residue(&self, i: usize) -> &[u64] {
        &self.words[i * self.ring_degree..][..self.ring_degree]
    }

    /// Returns residue `i`, to be changed; its words must stay reduced.
    pub fn residue_mut(&mut self, i: usize) -> &mut [u64] {
        &mut self.words[i * self.ring_degree..][..self.ring_degree]
    }

    /// Lists the residues.
    pub fn residues(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.words.chunks_exact(self.ring_degree)
    }

    /// Lists the residues, to be changed; their words must stay reduced.
    pub fn residues_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u64]> {
        self.words.chunks_exact_mut(self.ring_degree)
    }

    /// Forgets the last `count` residues, without rounding: the polynomial is taken modulo the primes that stay.
    pub fn drop_last_residues(&mut self, count: usize) {
        let kept = self.residue_count().checked_sub(count).expect("callers drop residues that are there");
        self.words[kept * self.ring_degree..].zeroize();
        self.words.truncate(kept * self.ring_degree);
    }

    /// Changes the form in the type; the words must have been changed to fit.
    pub(super) fn with_form<G>(self) -> Poly<G> {
        Poly { ring_degree: self.ring_degree, words: self.words, form: PhantomData }
    }
}

impl<F> Zeroize for Poly<F> {
    fn zeroize(&mut self) {
        self.words.zeroize();
    }
}
