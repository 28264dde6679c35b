//! Numbers as coefficients: a convolution over many channels is one product of polynomials.
//!
//! X^a X^b = X^(a+b), so a polynomial with a pixel at each exponent, times one with the kernel at negative exponents,
//! has the convolution's sums among its coefficients. Nothing is rotated, the plaintext modulus can be any integer,
//! and small weights stay small, so that a product costs few bits of noise.
//!
//! - **Interleaving.** Cell p of channel c sits at coefficient C p + c, for C channels a ciphertext, a power of two.
//!   Products sum over the channels: the results lie at multiples of C, and all other coefficients are junk.
//! - **Tiles.** An image is cut into tiles, each with the halo that its windows read; several lie side by side.
//! - **Stacking.** Where the inputs leave room, one product makes several output channels: their kernels stand so far
//!   apart that the junk of one never meets the results of another.
//! - **Merging.** With (E + X^h O) + sigma(E - X^h O), for sigma: X -> X^(N/h + 1), the junk of two ciphertexts at odd
//!   multiples of h cancels, and the results of O take its place. log2 M levels put M ciphertexts into one, by M - 1
//!   automorphisms with log2 M Galois keys. Everything doubles at each level, which a division by M modulo q undoes in
//!   advance.
//!
//! A result depends on no coefficient of c0 but those it is summed from: the others never travel, in either direction.
//!
//! Source: Huang et al., "Cheetah", USENIX Security 2022, for convolutions as products; Chen, Dai, Kim and Song,
//! "Efficient homomorphic conversion between (ring) LWE ciphertexts", ACNS 2021, for the automorphisms.

mod factors;
pub mod layout;
pub mod merging;
pub mod tiles;
