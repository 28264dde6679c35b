//! The negacyclic number theoretic transform: multiplication modulo X^N + 1, point by point.

mod forward;
mod inverse;
mod roots;

pub use super::kernel::Kernel;

use super::kernel::{self, Task};
use super::lanes::{Lanes, Residues, Table, Vector};
use super::modulus::Modulus;

/// How many words of a transform are worked on to the end before the next ones: 16 KiB, half of a first-level cache.
const BLOCK: usize = 2048;

/// The transform for one ring degree and one prime.
///
/// Takes the N coefficients of a polynomial to its values at the primitive 2N-th roots of unity. Index i of the result
/// holds the value at psi^(2 bitrev(i) + 1), where bitrev reverses log2(N) bits and psi is the *smallest* primitive
/// 2N-th root of unity modulo the prime. Pointwise products of values are products modulo X^N + 1.
///
/// Every [`Kernel`] gives the same, fully reduced residues. Time does not depend on the data.
///
/// Source: Harvey, "Faster arithmetic for number-theoretic transforms", J. Symb. Comp. 60 (2014), for the lazy
/// butterflies; Longa and Naehrig, CANS 2016, for folding X^N + 1 into them.
pub struct Ntt {
    ring_degree: usize,
    modulus: Modulus,
    kernel: Kernel,
    root: u64,
    /// At index 2^level + i, what block i of that level multiplies its upper half by.
    forward: Table,
    /// The inverses of the forward constants, in the same order.
    inverse: Table,
    /// 1/N, and the inverse constant of the last level over N.
    scale: Table,
}

impl Ntt {
    /// Prepares the transform on the fastest kernel of this machine.
    ///
    /// `None` unless the ring degree is a power of two, at least 4, and 2N divides p - 1.
    pub fn new(ring_degree: usize, modulus: Modulus) -> Option<Self> {
        Self::with_kernel(ring_degree, modulus, Kernel::best())
    }

    /// Prepares the transform on a given kernel; rings too small for its registers use the scalar one.
    ///
    /// `None` as for [`new`](Self::new), or when this machine lacks the kernel.
    pub fn with_kernel(ring_degree: usize, modulus: Modulus, kernel: Kernel) -> Option<Self> {
        if !kernel.is_available() {
            return None;
        }
        let kernel = if ring_degree < Self::MIN_VECTOR_DEGREE { Kernel::Scalar } else { kernel };
        let root = roots::smallest_primitive_root(ring_degree, modulus)?;
        let forward = roots::bit_reversed_powers(ring_degree, modulus, root);
        let inverse = roots::bit_reversed_powers(ring_degree, modulus, modulus.inverse(root));
        let over_n = modulus.inverse(ring_degree as u64);
        let scale = [over_n, modulus.mul(over_n, inverse[1])];
        let table = |constants: &[u64]| {
            let mut table = None;
            kernel::run_transform(kernel, modulus, ring_degree, Prepare { modulus, constants, table: &mut table });
            table.expect("the task has run")
        };
        let (forward, inverse, scale) = (table(&forward), table(&inverse), table(&scale));
        Some(Self { ring_degree, modulus, kernel, root, forward, inverse, scale })
    }

    /// Four registers of eight lanes: each half of the polynomial fills the two that the smallest strides need.
    const MIN_VECTOR_DEGREE: usize = 32;

    /// Returns N.
    pub fn ring_degree(&self) -> usize {
        self.ring_degree
    }

    /// Returns the prime.
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// Returns the kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns psi, the smallest primitive 2N-th root of unity.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Transforms N reduced coefficients into N reduced values, in place.
    ///
    /// # Panics
    /// When `residues` does not have N words.
    pub fn forward(&self, residues: &mut [u64]) {
        self.check(residues);
        self.run(forward::Forward { table: &self.forward, residues });
    }

    /// Transforms N reduced values into N reduced coefficients, in place.
    ///
    /// # Panics
    /// When `residues` does not have N words.
    pub fn inverse(&self, residues: &mut [u64]) {
        self.check(residues);
        self.run(inverse::Inverse { table: &self.inverse, scale: &self.scale, factor: None, residues });
    }

    /// Transforms the products of two lists of N reduced values into N reduced coefficients, in place.
    ///
    /// # Panics
    /// When either does not have N words.
    pub fn inverse_of_product(&self, residues: &mut [u64], factor: &[u64]) {
        self.check(residues);
        self.check(factor);
        self.run(inverse::Inverse { table: &self.inverse, scale: &self.scale, factor: Some(factor), residues });
    }

    fn run(&self, task: impl Task) {
        kernel::run_transform(self.kernel, self.modulus, self.ring_degree, task);
    }

    fn check(&self, residues: &[u64]) {
        assert_eq!(residues.len(), self.ring_degree, "a residue polynomial has N words");
        debug_assert!(residues.iter().all(|&x| x < self.modulus.value()), "residues are reduced");
    }
}

/// Prepares a table for the arithmetic that a kernel will use.
struct Prepare<'a> {
    modulus: Modulus,
    constants: &'a [u64],
    table: &'a mut Option<Table>,
}

impl Task for Prepare<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, _residues: R) {
        *self.table = Some(R::table(self.modulus, self.constants));
    }
}

/// Blocks of two registers that the levels within registers work on at once. Each step of those waits for the one
/// before, and processors do not look far enough ahead to find the next block by themselves.
const SIDE_BY_SIDE: usize = 4;

/// Returns [`SIDE_BY_SIDE`], or 1 where so many blocks would not fit the registers.
#[inline(always)]
fn side_by_side<R: Residues>(_: R) -> usize {
    if R::Lanes::LANES == 8 { SIDE_BY_SIDE } else { 1 }
}

/// Blocks of two registers.
type Pairs<R, const B: usize> = [[Vector<R>; 2]; B];

#[inline(always)]
fn load<R: Residues, const B: usize>(r: R, words: &[u64]) -> Pairs<R, B> {
    let (lanes, count) = (r.lanes(), R::Lanes::LANES);
    let mut pairs = [[lanes.splat(0); 2]; B];
    for i in 0..B {
        pairs[i] = [lanes.load(&words[2 * i * count..]), lanes.load(&words[(2 * i + 1) * count..])];
    }
    pairs
}

#[inline(always)]
fn store<R: Residues, const B: usize>(r: R, words: &mut [u64], pairs: Pairs<R, B>) {
    let (lanes, count) = (r.lanes(), R::Lanes::LANES);
    for i in 0..B {
        lanes.store(&mut words[2 * i * count..], pairs[i][0]);
        lanes.store(&mut words[(2 * i + 1) * count..], pairs[i][1]);
    }
}

/// Returns the four quarters of a block, each in register-sized chunks.
fn quarters(block: &mut [u64], lanes: usize) -> impl Iterator<Item = [&mut [u64]; 4]> {
    let (lower, upper) = block.split_at_mut(block.len() / 2);
    let (a, b) = lower.split_at_mut(lower.len() / 2);
    let (c, d) = upper.split_at_mut(upper.len() / 2);
    let lower = a.chunks_exact_mut(lanes).zip(b.chunks_exact_mut(lanes));
    let upper = c.chunks_exact_mut(lanes).zip(d.chunks_exact_mut(lanes));
    lower.zip(upper).map(|((a, b), (c, d))| [a, b, c, d])
}

/// Returns the two halves of a block, each in register-sized chunks.
fn halves(block: &mut [u64], lanes: usize) -> impl Iterator<Item = [&mut [u64]; 2]> {
    let (lower, upper) = block.split_at_mut(block.len() / 2);
    lower.chunks_exact_mut(lanes).zip(upper.chunks_exact_mut(lanes)).map(|(a, b)| [a, b])
}

#[cfg(test)]
mod tests;
