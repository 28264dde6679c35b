//! Slots: every order of rotations, and every split of the channel shifts.

use chococ_plans::cost::Cost;
use chococ_plans::packing::slots::layout::Layout;
use chococ_plans::packing::{Alignment, Packing, SlotPacking, TapOrder};

use super::{Choice, Outcome, Search};

/// Tries everything that aligns windows in one way, at one ring degree.
pub(super) fn attempt(search: Search<'_>, alignment: Alignment, ring_degree: usize, to_beat: f64) -> Outcome {
    let layer = search.layer;
    let plain = SlotPacking { alignment, taps: TapOrder::Inputs, baby_shifts: 1 };
    let layout = match Layout::new(&layer.operator, plain, ring_degree) {
        Ok(layout) => layout,
        Err(misfit) => return Outcome::Misfit(misfit),
    };
    // A plaintext modulus is no narrower than the results, and no prime with a transform than 2N. One product takes
    // about as many bits again, and half of log2 N; the rounding of c1 takes half of log2 N as well.
    let t = layer.width().ilog2().max(ring_degree.ilog2() + 1) as usize;
    let (sent, c1, c0) = (2 * t + ring_degree.ilog2() as usize / 2, t + 3 + ring_degree.ilog2() as usize / 2, t + 1);
    let (inputs, outputs) = (layout.placement.inputs, layout.placement.outputs);
    let [bytes_up, bytes_down] = [inputs * sent, outputs * (c1 + c0)].map(|bits| (ring_degree * bits).div_ceil(8));
    let cost = Cost { ciphertexts_up: inputs, ciphertexts_down: outputs, bytes_up, bytes_down, ..Cost::default() };
    if search.prices.at_least(ring_degree, 1, Packing::Slots(plain), &cost) > to_beat {
        return Outcome::CannotBeat { bytes_at_least: cost.bytes() };
    }
    let taps: &[TapOrder] = match (alignment, layout.grid.offsets().count()) {
        (Alignment::Masked, _) | (_, 1) => &[TapOrder::Inputs],
        _ => &[TapOrder::Inputs, TapOrder::Outputs, TapOrder::Mixed],
    };
    let splits = layout.placement.shifts.trailing_zeros();
    let mut closest = f64::NEG_INFINITY;
    let mut found: Option<Choice> = None;
    for (&taps, log_split) in taps.iter().flat_map(|taps| (0..=splits).map(move |log| (taps, log))) {
        let packing = Packing::Slots(SlotPacking { alignment, taps, baby_shifts: 1 << log_split });
        match search.variant(packing, ring_degree) {
            Ok(choice) => search.keep(&mut found, choice),
            Err(budget_bits) => closest = closest.max(budget_bits),
        }
    }
    found.map_or(Outcome::NoBudget(closest), |choice| Outcome::Fits(Box::new(choice)))
}
