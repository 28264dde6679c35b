//! Galois keys: for each key set that has any, a seed, and the polynomials b of every key, digit by digit.
//!
//! The keys stand in the order in which the plan lists their automorphisms; key i of a key set expands its a parts from
//! stream i of the set's seed.

use chococ_plans::check::CheckedPlan;
use chococ_plans::cost::SEED_BYTES;

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::ciphertext::Seed;
use crate::bfv::context::Context;
use crate::bfv::galois::SeededGaloisKey;

/// Returns where the message with the Galois keys of a plan belongs; `plan` is its fingerprint.
pub fn address(checked: &CheckedPlan, plan: [u8; 4]) -> Address {
    let keys: usize = checked.plan().key_sets.iter().map(|set| set.galois.len()).sum();
    let count = u32::try_from(keys).expect("a plan fits in memory, and its rotations are fewer than 2^32");
    Address { kind: Kind::GaloisKeys, stage: 0, count, plan }
}

/// Begins a message: for each key set with keys, [`append_seed`] and [`append`] must follow.
pub fn begin(address: Address, checked: &CheckedPlan) -> Vec<u8> {
    address.begin(checked.plan().galois_bytes())
}

/// Appends the seed of a key set.
pub fn append_seed(bytes: &mut Vec<u8>, seed: Seed) {
    bytes.extend(seed);
}

/// Appends the next key of a key set.
pub fn append(bytes: &mut Vec<u8>, context: &Context, key: &SeededGaloisKey) {
    key.b.iter().for_each(|b| packing::append_poly(bytes, context.ring(), b));
}

/// Reads the Galois keys of a plan: one list a key set, in the plan's order. `contexts` are those of its key sets.
///
/// # Errors
/// [`MessageError`]: it is not the message at `address`, or a number in it is no residue.
pub fn read(
    address: Address,
    checked: &CheckedPlan,
    contexts: &[&Context],
    bytes: &[u8],
) -> Result<Vec<Vec<SeededGaloisKey>>, MessageError> {
    let mut rest = address.open(bytes, checked.plan().galois_bytes())?;
    let mut sets = Vec::new();
    let mut item = 0;
    for (set, context) in checked.plan().key_sets.iter().zip(contexts) {
        if set.galois.is_empty() {
            sets.push(Vec::new());
            continue;
        }
        let (&seed, behind) =
            rest.split_first_chunk::<SEED_BYTES>().expect("the length was compared with the plan, seeds included");
        rest = behind;
        let mut keys = Vec::new();
        for (stream, &element) in (0..).zip(&set.galois) {
            let residues = context.ring().moduli().len();
            let digits = 0..set.parameters.digits();
            let b = digits
                .map(|_| packing::take_poly(&mut rest, context.ring(), residues, item))
                .collect::<Result<_, _>>()?;
            keys.push(SeededGaloisKey { element, seed, stream, b });
            item += 1;
        }
        sets.push(keys);
    }
    Ok(sets)
}
