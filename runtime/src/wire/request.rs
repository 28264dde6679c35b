//! Requests: a seed, and of each ciphertext the coefficients of c0 that some result is summed from.
//!
//! A request is written one ciphertext at a time, so that a small client never holds more than one beside the message.

use chococ_plans::check::CheckedStage;
use chococ_plans::cost::SEED_BYTES;
use chococ_plans::packing::row::{Run, gather};
use chococ_plans::params::bits_of;

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::ciphertext::{Seed, SeededCiphertext};
use crate::bfv::context::Context;
use crate::math::poly::Poly;

/// Returns where the request of server stage `index` belongs; `plan` is the plan's fingerprint.
fn address(stage: CheckedStage<'_>, index: usize, plan: [u8; 4]) -> Address {
    Address::of_stage(Kind::Request, index, stage.layout.inputs(), plan)
}

/// Begins the request of server stage `index`; as many [`append`]s as it has inputs must follow.
pub fn begin(stage: CheckedStage<'_>, index: usize, plan: [u8; 4], seed: Seed) -> Vec<u8> {
    let mut bytes = address(stage, index, plan).begin(stage.stage.cost.bytes_up);
    bytes.extend(seed);
    bytes
}

/// Appends the next ciphertext, encrypted under the request's seed, its place in the request as the stream.
///
/// `sent` lists the coefficients that travel; of each, the low bits that a request leaves out are cut off.
pub fn append(bytes: &mut Vec<u8>, context: &Context, ciphertext: &SeededCiphertext, sent: &[Run]) {
    let dropped = context.parameters().stage.request_dropped_bits;
    let mut words = vec![0; sent.iter().map(|run| run.length).sum()];
    for (residue, modulus) in ciphertext.c0.residues().zip(context.ring().moduli()) {
        let width = bits_of(modulus.value()) - dropped;
        if dropped == 0 && matches!(sent, [all] if all.length == residue.len()) {
            packing::append(bytes, residue, width);
            continue;
        }
        gather(residue, sent, &mut words);
        words.iter_mut().for_each(|word| *word >>= dropped);
        packing::append(bytes, &words, width);
    }
}

/// Reads the request of server stage `index`. What was left out comes back as the middle of what it may have been, and
/// coefficients that did not travel as zeros: no result depends on them.
///
/// # Errors
/// [`MessageError`]: it is not that message, or a number in it is no residue.
pub fn read(
    stage: CheckedStage<'_>,
    index: usize,
    plan: [u8; 4],
    context: &Context,
    bytes: &[u8],
) -> Result<Vec<SeededCiphertext>, MessageError> {
    let payload = address(stage, index, plan).open(bytes, stage.stage.cost.bytes_up)?;
    let (&seed, mut rest) =
        payload.split_first_chunk::<SEED_BYTES>().expect("the length was compared with the plan, seed included");
    let dropped = context.parameters().stage.request_dropped_bits;
    let middle = (1 << dropped) / 2;
    let ciphertext = |item: usize| {
        let sent = stage.layout.sent(item);
        let mut c0 = Poly::zero(context.ring_degree(), context.top_level());
        for (residue, modulus) in c0.residues_mut().zip(context.ring().moduli()) {
            let prime = modulus.value();
            let bound = ((prime - 1) >> dropped) + 1;
            let words = packing::take(&mut rest, sent.len(), bits_of(prime) - dropped, bound, item)?;
            for (&position, word) in sent.iter().zip(words) {
                residue[position] = modulus.reduce((word << dropped) + middle);
            }
        }
        Ok(SeededCiphertext { c0, seed, stream: item as u64 })
    };
    (0..stage.layout.inputs()).map(ciphertext).collect()
}
