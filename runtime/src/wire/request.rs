//! Requests: a seed, and c0 of each ciphertext.
//!
//! A request is written one ciphertext at a time, so that a small client never holds more than one beside the message.

use chococ_plans::check::CheckedStage;
use chococ_plans::cost::{SEED_BYTES, upload_bytes};

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::ciphertext::{Seed, SeededCiphertext};
use crate::bfv::context::Context;

/// Returns where the request of server stage `index` belongs; `plan` is the plan's fingerprint.
pub fn address(stage: CheckedStage<'_>, index: usize, plan: [u8; 4]) -> Address {
    Address::of_stage(Kind::Request, index, stage.layout.placement.inputs, plan)
}

/// Begins a request; as many [`append`]s as the address counts must follow.
pub fn begin(address: Address, context: &Context, seed: Seed) -> Vec<u8> {
    let mut bytes = address.begin(upload_bytes(context.parameters(), address.count as usize));
    bytes.extend(seed);
    bytes
}

/// Appends the next ciphertext, encrypted under the request's seed, its place in the request as the stream.
pub fn append(bytes: &mut Vec<u8>, context: &Context, ciphertext: &SeededCiphertext) {
    packing::append(bytes, context.ring(), &ciphertext.c0);
}

/// Reads a request.
///
/// # Errors
/// [`MessageError`]: it is not the message at `address`, or a number in it is no residue.
pub fn read(address: Address, context: &Context, bytes: &[u8]) -> Result<Vec<SeededCiphertext>, MessageError> {
    let payload = address.open(bytes, upload_bytes(context.parameters(), address.count as usize))?;
    let (&seed, mut rest) =
        payload.split_first_chunk::<SEED_BYTES>().expect("the length was compared with the plan, seed included");
    let ciphertext = |item: u32| {
        let c0 = packing::take(&mut rest, context.ring(), context.top_level(), item as usize)?;
        Ok(SeededCiphertext { c0, seed, stream: u64::from(item) })
    };
    (0..address.count).map(ciphertext).collect()
}
