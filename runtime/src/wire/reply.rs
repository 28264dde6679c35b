//! Replies: of each ciphertext the coefficients of c0 that are results, without their low bits, then all of c1.
//!
//! The modulus is 2^w, so that every number of the right width is one.

use chococ_plans::check::CheckedStage;

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::reply::Reply;

/// Returns where the reply of server stage `index` belongs; `plan` is the plan's fingerprint.
fn address(stage: CheckedStage<'_>, index: usize, plan: [u8; 4]) -> Address {
    Address::of_stage(Kind::Reply, index, stage.layout.outputs(), plan)
}

/// Writes the reply of server stage `index`.
pub fn write(stage: CheckedStage<'_>, index: usize, plan: [u8; 4], replies: &[Reply]) -> Vec<u8> {
    let (bits, dropped) = (stage.parameters.stage.reply_bits, stage.parameters.stage.reply_dropped_bits);
    let mut bytes = address(stage, index, plan).begin(stage.stage.cost.bytes_down);
    for reply in replies {
        packing::append(&mut bytes, &reply.c0, bits - dropped);
        packing::append(&mut bytes, &reply.c1, bits);
    }
    bytes
}

/// Opens the reply of server stage `index`: its ciphertexts are then read one at a time, so that a small client never
/// holds more than one. Each comes with the coefficients that its c0 holds.
///
/// # Errors
/// [`MessageError`]: it is not that message; and, as they are reached, ciphertexts with bits set between their parts.
pub fn read<'a>(
    stage: CheckedStage<'a>,
    index: usize,
    plan: [u8; 4],
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = Result<(Reply, Vec<usize>), MessageError>> + use<'a>, MessageError> {
    let mut rest = address(stage, index, plan).open(bytes, stage.stage.cost.bytes_down)?;
    let (bits, dropped) = (stage.parameters.stage.reply_bits, stage.parameters.stage.reply_dropped_bits);
    Ok((0..stage.layout.outputs()).map(move |item| {
        let returned = stage.layout.returned(item);
        let c0 = packing::take(&mut rest, returned.len(), bits - dropped, item)?;
        let c1 = packing::take(&mut rest, stage.parameters.keys.ring_degree, bits, item)?;
        Ok((Reply { c0, c1 }, returned))
    }))
}
