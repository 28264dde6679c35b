//! Where each number of a tensor sits: ciphertext, slot, copies; and what the server does to make sums of products.
//!
//! A plan records only the *choice* of packing. Everything else follows from the choice, the operator and the ring
//! degree, and is computed here, once, for the compiler, the client and the server alike:
//!
//! - [`grid`]: the cells of one channel, with the padding that lets a plain rotation move a window;
//! - [`placement`]: which channel sits in which block, and the copies of it;
//! - [`layout`]: both together: packs codes, unpacks accumulators;
//! - [`program`]: the rotations and products that turn packed inputs into packed outputs;
//! - `factors`: weights, masks and biases, laid out to match.

mod factors;
pub mod grid;
pub mod layout;
pub mod placement;
pub mod program;

use serde::{Deserialize, Serialize};

/// How one server stage packs its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Packing {
    /// Batch encoding: one number a slot, after CHOCO.
    Slots(SlotPacking),
}

/// A choice within the family of packings that use slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlotPacking {
    /// How a rotated window is kept from reading what lies outside the image.
    pub alignment: Alignment,
    /// What is rotated to bring the taps of a kernel into place.
    pub taps: TapOrder,
    /// How many of the channel shifts are rotations of the inputs; the others are rotations of sums. A power of two.
    pub baby_shifts: usize,
}

/// How a rotated window is kept from reading what lies outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Alignment {
    /// Rotational redundancy: each channel carries the (zero) cells that would wrap around its window, so that one
    /// rotation aligns a tap; weights are constant within a block, and the client drops what fell outside.
    Rotational,
    /// Punctured weights: no redundant cells; the weight vector is zero wherever a window would wrap.
    Punctured,
    /// The baseline: no redundant cells, weights constant within a block, and a product with a mask of zeros and ones
    /// after each rotation, before the product with the weights.
    Masked,
}

/// What is rotated to bring the taps of a kernel into place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TapOrder {
    /// Inputs: each is decomposed once and rotated once per tap; the noise of a rotation grows with the products.
    Inputs,
    /// Sums: one rotation per tap and output; its noise stays as it is.
    Outputs,
    /// Inputs by the columns of the kernel, sums by its rows: fewest rotations and keys.
    Mixed,
}

/// An automorphism of the slots: both rows rotated left, then swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rotation {
    /// Slots to the left, from 0 to N/2 - 1.
    pub steps: usize,
    /// Whether the rows change places.
    pub swap: bool,
}

impl Rotation {
    /// Leaves everything where it is; needs no key.
    pub const IDENTITY: Rotation = Rotation { steps: 0, swap: false };

    /// Rotates left by `steps`, which may be negative or beyond the row.
    pub fn left(steps: i64, row_length: usize) -> Rotation {
        Rotation { steps: steps.rem_euclid(row_length as i64) as usize, swap: false }
    }

    /// Says whether nothing moves.
    pub fn is_identity(self) -> bool {
        self == Rotation::IDENTITY
    }
}

impl std::fmt::Display for Alignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Alignment::Rotational => "rotational",
            Alignment::Punctured => "punctured",
            Alignment::Masked => "masked",
        })
    }
}

impl std::fmt::Display for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Packing::Slots(slots) = self;
        let taps = match slots.taps {
            TapOrder::Inputs => "rotates inputs",
            TapOrder::Outputs => "rotates outputs",
            TapOrder::Mixed => "rotates both",
        };
        let plural = if slots.baby_shifts == 1 { "" } else { "s" };
        write!(f, "{}, {taps}, {} baby shift{plural}", slots.alignment, slots.baby_shifts)
    }
}
