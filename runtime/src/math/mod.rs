//! Arithmetic on residues: it knows nothing of encryption.
//!
//! In reading order: [`modulus`] (one prime), [`ntt`] (the negacyclic transform), [`vector`] (pointwise work on whole
//! residues), [`accumulate`] (long sums of products, reduced once), [`poly`] (polynomials over several primes),
//! [`sample`] (uniform, ternary and error polynomials), [`chacha`] (the generator for seeds and all else that is
//! random), [`bits`] (numbers at their true width). The vector instructions behind them are chosen at run time in
//! [`kernel`]; every kernel gives the same residues.

pub mod accumulate;
mod automorphism;
pub mod bits;
pub mod chacha;
pub mod kernel;
mod lanes;
pub mod modulus;
pub mod ntt;
pub mod poly;
mod ring;
pub mod sample;
pub mod vector;
