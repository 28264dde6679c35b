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
/// [`MessageError`]: it is not that message; and, as they are reached, ciphertexts that are none.
pub fn read<'a>(
    stage: CheckedStage<'a>,
    index: usize,
    plan: [u8; 4],
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = Result<(Reply, Vec<usize>), MessageError>> + use<'a>, MessageError> {
    let mut reader = Reader::open(stage, index, plan, bytes)?;
    Ok((0..stage.layout.outputs()).map(move |item| {
        let mut reply = Reply::empty();
        let returned = stage.layout.returned(item);
        reader.next(returned.len(), &mut reply)?;
        Ok((reply, returned))
    }))
}

/// The ciphertexts of a reply, read one after the other into the same memory.
pub(crate) struct Reader<'a> {
    stage: CheckedStage<'a>,
    rest: &'a [u8],
    /// The ciphertext that is next.
    item: usize,
}

impl<'a> Reader<'a> {
    /// Opens the reply of server stage `index`.
    ///
    /// # Errors
    /// [`MessageError`]: it is not that message.
    pub fn open(
        stage: CheckedStage<'a>,
        index: usize,
        plan: [u8; 4],
        bytes: &'a [u8],
    ) -> Result<Reader<'a>, MessageError> {
        let rest = address(stage, index, plan).open(bytes, stage.stage.cost.bytes_down)?;
        Ok(Reader { stage, rest, item: 0 })
    }

    /// Reads the next ciphertext, of as many as the stage has outputs, given how many coefficients its c0 holds.
    ///
    /// # Errors
    /// [`MessageError`]: there are bits set between its parts, or a number is no residue.
    pub fn next(&mut self, returned: usize, reply: &mut Reply) -> Result<(), MessageError> {
        let parameters = self.stage.parameters;
        let StageParameters { reply_modulus, reply_dropped_bits: dropped, .. } = parameters.stage;
        let bits = bits_of(reply_modulus);
        let (item, upper_bound) = (self.item, ((reply_modulus - 1) >> dropped) + 1);
        reply.c0.resize(returned, 0);
        packing::take_into(&mut self.rest, bits - dropped, upper_bound, item, &mut reply.c0)?;
        reply.c1.resize(parameters.keys.ring_degree, 0);
        packing::take_into(&mut self.rest, bits, reply_modulus, item, &mut reply.c1)?;
        self.item += 1;
        Ok(())
    }
}
