//! How much work a stage is for either side, whatever the machine: the transforms, products and passes that it takes.
//!
//! An estimate, for choosing between packings and for comparing machines; what a stage costs in bytes and operations is
//! counted exactly in [`cost`](crate::cost).

use crate::cost::Cost;
use crate::packing::Packing;
use crate::params::KeyParameters;

/// What takes the time, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Butterflies of number-theoretic transforms: N/2 log2 N a transform.
    pub butterflies: f64,
    /// Products modulo a prime, each with a sum.
    pub products: f64,
    /// Numbers drawn, scaled, packed, unpacked or moved otherwise, each time that it happens.
    pub numbers: f64,
}

/// Passes over the numbers of one residue in an encryption: two draws, a sum and the packing.
const PASSES_OF_ENCRYPTION: f64 = 4.0;

/// Passes over the numbers of a reply: two polynomials unpacked, a sum and the scaling.
const PASSES_OF_DECRYPTION: f64 = 4.0;

impl Work {
    /// One of each: what machines are compared by.
    pub const ONE_EACH: Work = Work { butterflies: 1.0, products: 1.0, numbers: 1.0 };

    fn transforms(ring_degree: usize, count: f64) -> Work {
        let butterflies = (ring_degree / 2) as f64 * f64::from(ring_degree.ilog2());
        Work { butterflies: count * butterflies, ..Work::default() }
    }

    /// Estimates the client's encryption and decryption in one stage: of `cost`, only ciphertexts count.
    ///
    /// A fresh ciphertext takes a product with the secret and a transform for each residue, a reply one of either, and
    /// batch encoding one transform more.
    pub fn of_client(ring_degree: usize, residues: usize, packing: Packing, cost: &Cost) -> Work {
        let encoding = match packing {
            Packing::Slots(_) => 1.0,
            Packing::Coefficients(_) => 0.0,
        };
        let (up, down) = (cost.ciphertexts_up as f64, cost.ciphertexts_down as f64);
        let (n, residues) = (ring_degree as f64, residues as f64);
        Work {
            products: n * (up * residues + down),
            numbers: n * (up * (PASSES_OF_ENCRYPTION * residues + encoding) + down * (PASSES_OF_DECRYPTION + encoding)),
            ..Work::transforms(ring_degree, up * (residues + encoding) + down * (1.0 + encoding))
        }
    }

    /// Estimates what the server does in one stage.
    ///
    /// An input is transformed for each residue; a key switch transforms every digit under every prime, and two
    /// polynomials back and forth; a hoisted rotation shares the digits of its input; an output is transformed back.
    pub fn of_server(keys: &KeyParameters, cost: &Cost) -> Work {
        let n = keys.ring_degree as f64;
        let (residues, all) = (keys.ciphertext_primes.len() as f64, (keys.ciphertext_primes.len() + 1) as f64);
        let digits = keys.digits() as f64;
        let (inputs, outputs) = (cost.ciphertexts_up as f64, cost.ciphertexts_down as f64);
        let (hoisted, rotations) = (cost.hoisted_rotations as f64, cost.rotations as f64);
        let decomposed = rotations + hoisted.min(inputs);
        let transforms = 2.0 * residues * (inputs + outputs)
            + decomposed * (residues + digits * all)
            + (rotations + hoisted) * 2.0 * (1.0 + residues);
        Work {
            products: n
                * ((rotations + hoisted) * 2.0 * digits * all
                    + 2.0 * residues * (cost.products + cost.mask_products) as f64),
            numbers: n * (inputs + outputs) * residues,
            ..Work::transforms(keys.ring_degree, transforms)
        }
    }
}
