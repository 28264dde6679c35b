//! Vectors of residues: registers of 64-bit lanes, and modular arithmetic in them.
//!
//! [`Lanes`] is what a register can do on each instruction set; [`Residues`] is lazy arithmetic modulo one prime on top
//! of it, written once per range of the prime.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "x86_64")]
pub(super) mod chacha;
#[cfg(target_arch = "x86_64")]
pub(super) mod ifma;
mod narrow;
#[cfg(target_arch = "x86_64")]
pub(super) mod roomy;
#[cfg(target_arch = "x86_64")]
pub(super) mod sampling;
mod scalar;
#[cfg(target_arch = "x86_64")]
pub(super) mod vbmi;
mod wide;

pub(super) use narrow::Narrow;
pub(super) use scalar::Scalar;
pub(super) use wide::Wide;

use super::modulus::Modulus;

/// A register of 64-bit lanes and the instructions on it.
///
/// A value of the type is the proof that the machine has the instructions, so only a checked caller makes one.
pub(super) trait Lanes: Copy {
    /// The register.
    type Vector: Copy;
    /// How many lanes it has.
    const LANES: usize;

    /// Loads the first `LANES` words of a slice, which has at least so many.
    fn load(self, from: &[u64]) -> Self::Vector;
    /// Stores into the first `LANES` words of a slice, which has at least so many.
    fn store(self, to: &mut [u64], x: Self::Vector);
    /// Repeats one word in all lanes.
    fn splat(self, x: u64) -> Self::Vector;
    /// Loads `LANES / stride` words and repeats each in `stride` neighbouring lanes.
    fn load_spread(self, from: &[u64], stride: usize) -> Self::Vector;

    /// Adds, modulo 2^64.
    fn add(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Subtracts, modulo 2^64.
    fn sub(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Subtracts `bound` from the lanes that are at least `bound`; needs bound <= 2^63 and x - bound < 2^63.
    fn sub_once(self, x: Self::Vector, bound: Self::Vector) -> Self::Vector;
    /// As [`sub_once`](Self::sub_once) where x and bound are below 2^32.
    fn sub_once_32(self, x: Self::Vector, bound: Self::Vector) -> Self::Vector;
    /// Takes the bits set in both.
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Shifts left by fewer than 64 bits.
    fn shift_left(self, x: Self::Vector, bits: u32) -> Self::Vector;
    /// Shifts right by fewer than 64 bits.
    fn shift_right(self, x: Self::Vector, bits: u32) -> Self::Vector;

    /// Multiplies the low halves of the lanes.
    fn mul_32(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Multiplies, modulo 2^64.
    fn mul_low(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Returns the high word of the product, or up to 2 less.
    fn mul_high_about(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Transposes 2 x 2 blocks of `stride` lanes: of x, y seen as rows of such blocks, `x` keeps the even columns and
    /// `y` the odd ones. Its own inverse. `stride` is a power of two below `LANES`.
    fn exchange(self, x: Self::Vector, y: Self::Vector, stride: usize) -> (Self::Vector, Self::Vector);
    /// Turns evens and odds into consecutive words: x0 y0 x1 y1 ...
    fn interleave(self, evens: Self::Vector, odds: Self::Vector) -> (Self::Vector, Self::Vector);
    /// Undoes [`interleave`](Self::interleave).
    fn deinterleave(self, first: Self::Vector, second: Self::Vector) -> (Self::Vector, Self::Vector);
}

/// Constants of a table, prepared for the multiplications of one arithmetic.
pub(super) struct Table {
    /// The residues, possibly with their quotients in the high half.
    pub values: Vec<u64>,
    /// Their quotients; empty where they travel with the values.
    pub quotients: Vec<u64>,
}

/// Lazy arithmetic modulo one prime.
///
/// Values carried from step to step lie in [0, 2Lp) and fit the arithmetic's words, where L is its laziness.
pub(super) trait Residues: Copy {
    /// The registers it works on.
    type Lanes: Lanes;
    /// A multiplicand with its Shoup quotient.
    type Constant: Copy;

    /// Returns the registers.
    fn lanes(self) -> Self::Lanes;
    /// Returns p in all lanes.
    fn modulus(self) -> Vector<Self>;
    /// Returns Lp in all lanes.
    fn lazy_bound(self) -> Vector<Self>;
    /// Returns a multiple of p that no multiple of a constant reaches, at most Lp, in all lanes.
    #[inline(always)]
    fn multiple_bound(self) -> Vector<Self> {
        self.lazy_bound()
    }
    /// Prepares public constants for multiplication.
    fn table(modulus: Modulus, constants: &[u64]) -> Table;
    /// Reads one constant of a table, for all lanes.
    fn constant(self, table: &Table, index: usize) -> Self::Constant;
    /// Reads `LANES / stride` constants from `index`, each for `stride` neighbouring lanes.
    fn constants(self, table: &Table, index: usize, stride: usize) -> Self::Constant;

    /// Multiplies x < 2Lp by a constant; the result lies in [0, Lp).
    fn mul(self, x: Vector<Self>, by: Self::Constant) -> Vector<Self>;
    /// Brings x < 2Lp into [0, Lp).
    fn fold(self, x: Vector<Self>) -> Vector<Self>;
    /// Brings x < 2Lp into [0, p).
    fn canonical(self, x: Vector<Self>) -> Vector<Self>;
    /// Brings a multiple of a constant, as [`mul`](Self::mul) gives it, into [0, p).
    fn reduce_multiple(self, x: Vector<Self>) -> Vector<Self>;
    /// Brings x < 2p into [0, p).
    fn sub_modulus_once(self, x: Vector<Self>) -> Vector<Self>;
    /// Multiplies two reduced vectors; the result is reduced.
    fn product(self, x: Vector<Self>, y: Vector<Self>) -> Vector<Self>;

    /// How many planes a sum of products has.
    const PLANES: usize;
    /// How sums of products are held.
    fn sum_form(modulus: Modulus) -> SumForm;
    /// Makes room for as many products as the form's capacity, where that is cheap; else returns its argument.
    fn make_room(self, planes: Planes<Self>) -> Planes<Self>;
    /// Adds the product of two reduced vectors to a sum.
    fn add_product(self, planes: Planes<Self>, x: Vector<Self>, y: Vector<Self>) -> Planes<Self>;
}

/// A sum of products without modular reduction, spread over planes of 64-bit words.
pub(super) struct SumForm {
    /// What a one in each plane stands for, modulo the prime: the sum is the planes weighted by these.
    pub weights: Vec<u64>,
    /// How many products an empty sum can take in.
    pub capacity: usize,
    /// Whether `make_room` makes room for `capacity` products, whatever came before.
    pub makes_room: bool,
}

/// The planes of a sum in registers; a form with fewer leaves the rest zero.
pub(super) type Planes<R> = [Vector<R>; 3];

/// The register of an arithmetic.
pub(super) type Vector<R> = <<R as Residues>::Lanes as Lanes>::Vector;

/// Returns floor(w * 2^bits / p) for each residue w.
fn quotients(modulus: Modulus, constants: &[u64], bits: u32) -> Vec<u64> {
    constants.iter().map(|&w| ((u128::from(w) << bits) / u128::from(modulus.value())) as u64).collect()
}
