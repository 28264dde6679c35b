//! Replies: c0 and c1 of each ciphertext, over the primes that a reply keeps.
//!
//! c0 travels as coefficients, c1 as evaluations: the forms in which the client needs them.

use chococ_plans::check::CheckedStage;
use chococ_plans::cost::reply_bytes;

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::ciphertext::Reply;
use crate::bfv::context::Context;

/// Returns where the reply of server stage `index` belongs; `plan` is the plan's fingerprint.
pub fn address(stage: CheckedStage<'_>, index: usize, plan: [u8; 4]) -> Address {
    Address::of_stage(Kind::Reply, index, stage.layout.placement.outputs, plan)
}

/// Writes a reply.
pub fn write(address: Address, context: &Context, replies: &[Reply]) -> Vec<u8> {
    let mut bytes = address.begin(reply_bytes(context.parameters(), replies.len()));
    for reply in replies {
        packing::append(&mut bytes, context.ring(), &reply.c0);
        packing::append(&mut bytes, context.ring(), &reply.c1);
    }
    bytes
}

/// Opens a reply: its ciphertexts are then read one at a time, so that a small client never holds more than one.
///
/// # Errors
/// [`MessageError`]: it is not the message at `address`; and, as they are reached, numbers that are no residues.
pub fn read<'a>(
    address: Address,
    context: &'a Context,
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = Result<Reply, MessageError>> + use<'a>, MessageError> {
    let mut rest = address.open(bytes, reply_bytes(context.parameters(), address.count as usize))?;
    let residues = context.parameters().reply_primes;
    Ok((0..address.count as usize).map(move |item| {
        let c0 = packing::take(&mut rest, context.ring(), residues, item)?;
        let c1 = packing::take(&mut rest, context.ring(), residues, item)?;
        Ok(Reply { c0, c1 })
    }))
}
