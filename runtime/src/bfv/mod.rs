//! The BFV encryption scheme over several primes: batched integers modulo t, added, multiplied with plaintexts, rotated.
//!
//! In reading order: [`context`] (parameters made ready), [`encode`] (slots to polynomials), [`keys`], [`ciphertext`],
//! [`encrypt`], [`decrypt`], then the server's side: [`evaluate`], [`multiplicand`] and [`inner_product`] (weights),
//! [`galois`] and [`rotate`] (keys and rotations), [`switch`] and [`reply`] (smaller moduli); and [`noise`], for tests.
//!
//! A ciphertext (c0, c1) satisfies c0 + c1 s = round(qm/t) + noise modulo q. All functions run on one thread, draw
//! randomness from their argument alone, and, [`noise`] aside, take the same time whatever a secret, a message or an error
//! is.
//!
//! Source: Fan and Vercauteren, "Somewhat Practical Fully Homomorphic Encryption", ePrint 2012/144; Kim, Polyakov and
//! Zucca, "Revisiting Homomorphic Encryption Schemes for Finite Fields", ASIACRYPT 2021, for round(qm/t).

pub mod ciphertext;
pub mod context;
pub mod decrypt;
mod digits;
pub mod encode;
pub mod encrypt;
pub mod evaluate;
mod factor;
pub mod galois;
pub mod inner_product;
pub mod keys;
mod lift;
pub mod multiplicand;
pub mod noise;
pub mod reply;
pub mod rotate;
mod scale;
pub mod switch;
mod vectorized;

pub use ciphertext::{Ciphertext, SeededCiphertext};
pub use context::{Context, ParameterError};
pub use encode::{Encoder, Plaintext};
pub use galois::{GaloisKey, GaloisKeyError, GaloisKeys, SeededGaloisKey};
pub use keys::{PublicKey, ReplyKey, SecretKey};
pub use multiplicand::Multiplicand;
pub use reply::Reply;

#[cfg(test)]
mod known_answers;
#[cfg(test)]
mod laws;
