//! Messages as bytes: what crosses between client and server, and nothing else does.
//!
//! Every message is a [`header`] of 16 bytes and a payload whose length follows from the plan, byte for byte as
//! [`chococ_plans::cost`] counts it. A polynomial is its residues one after the other, each [`packed`](packing) at the
//! width of its prime and padded to whole bytes; of a c0, only the coefficients that matter travel, and not all their bits.
//!
//! | message | module | payload |
//! |---|---|---|
//! | Galois keys | [`galois`] | for each key set with any: a seed (32 bytes), then the polynomials b of each key, ascending by automorphism |
//! | request | [`request`] | a seed (32 bytes), then c0 of each ciphertext; ciphertext i expands c1 from stream i of the seed |
//! | reply | [`reply`] | c0, then c1, of each ciphertext, modulo a prime of its own |
//!
//! Readers trust nothing: they compare kind, stage, count and length with the plan before they set memory aside, and
//! every number that has a bound with it. `docs/wire.md` has the format byte by byte.

pub mod galois;
pub mod header;
pub mod packing;
pub mod reply;
pub mod request;

pub use header::{Address, Kind, MessageError};
