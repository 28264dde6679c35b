//! Replies: of each ciphertext the coefficients of c0 that are results, without their low bits, then all of c1.
//!
//! c1 travels in evaluation form, as an expanded seed does.

use chococ_plans::check::CheckedStage;
use chococ_plans::params::{StageParameters, bits_of};

use super::header::{Address, Kind, MessageError};
use super::packing;
use crate::bfv::reply::Reply;

/// Returns where the reply of server stage `index` belongs; `plan` is the plan's fingerprint.
fn address(stage: CheckedStage<'_>, index: usize, plan: [u8; 4]) -> Address {
    Address::of_stage(Kind::Reply, index, stage.layout.outputs(), plan)
}

/// Writes the reply of server stage `index`.
pub fn write(stage: CheckedStage<'_>, index: usize, plan: [u8; 4], replies: &[Reply]) -> Vec<u8> {
    let StageParameters { reply_modulus, reply_dropped_bits: dropped, .. } = stage.parameters.stage;
    let bits = bits_of(reply_modulus);
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
    let StageParameters { reply_modulus, reply_dropped_bits: dropped, .. } = stage.parameters.stage;
    let bits = bits_of(reply_modulus);
    Ok((0..stage.layout.outputs()).map(move |item| {
        let returned = stage.layout.returned(item);
        let c0 = packing::take(&mut rest, returned.len(), bits - dropped, item)?;
        packing::below(&c0, ((reply_modulus - 1) >> dropped) + 1, item)?;
        let c1 = packing::take(&mut rest, stage.parameters.keys.ring_degree, bits, item)?;
        packing::below(&c1, reply_modulus, item)?;
        Ok((Reply { c0, c1 }, returned))
    }))
}
