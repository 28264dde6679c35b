//! Where each number of a tensor sits in ciphertexts, and what the server does to make sums of products.
//!
//! A plan records only the *choice* of packing. Everything else follows from the choice, the operator and the ring
//! degree, and is computed here, once, for the compiler, the client and the server alike:
//!
//! - [`windows`]: what the windows of an operator read, whatever the packing;
//! - [`slots`]: one number a slot, windows aligned by rotations, after CHOCO;
//! - [`coefficients`]: one number a coefficient, convolutions as products of polynomials, after Cheetah;
//! - [`row`], [`rectangle`], [`modulo`]: how numbers move between tensors and ciphertexts;
//! - [`layout`]: what client and server need to know of either; [`moves`]: what a client moves, all listed.

pub mod coefficients;
pub mod layout;
pub mod misfit;
pub mod modulo;
pub mod moves;
pub mod rectangle;
pub mod row;
pub mod slots;
pub mod windows;

use serde::{Deserialize, Serialize};

/// How one server stage packs its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Packing {
    /// Batch encoding: one number a slot, after CHOCO.
    Slots(SlotPacking),
    /// No encoding: one number a coefficient, after Cheetah.
    Coefficients(CoefficientPacking),
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

/// A choice within the family of packings that use coefficients; [`coefficients`] says what its parts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CoefficientPacking {
    /// Rows and columns of output pixels in a tile.
    pub tile: [usize; 2],
    /// Tiles in a ciphertext.
    pub tiles_at_once: usize,
    /// Input channels in a ciphertext: a power of two.
    pub interleave: usize,
    /// Output channels that one product makes.
    pub stack: usize,
    /// Ciphertexts merged into one: a power of two, at most `interleave`.
    pub merge: usize,
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

/// The kinds of packing that one can ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PackingKind {
    /// Slots, windows aligned in some way.
    Slots(Alignment),
    /// Coefficients.
    Coefficients,
}

impl PackingKind {
    /// All of them.
    pub const ALL: [PackingKind; 4] = [
        PackingKind::Slots(Alignment::Rotational),
        PackingKind::Slots(Alignment::Punctured),
        PackingKind::Slots(Alignment::Masked),
        PackingKind::Coefficients,
    ];
}

impl Packing {
    /// Its kind.
    pub fn kind(&self) -> PackingKind {
        match self {
            Packing::Slots(packing) => PackingKind::Slots(packing.alignment),
            Packing::Coefficients(_) => PackingKind::Coefficients,
        }
    }
}

impl std::fmt::Display for PackingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PackingKind::Slots(alignment) => alignment.fmt(f),
            PackingKind::Coefficients => f.write_str("coefficients"),
        }
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
        match self {
            Packing::Slots(packing) => packing.fmt(f),
            Packing::Coefficients(packing) => packing.fmt(f),
        }
    }
}

impl std::fmt::Display for SlotPacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let taps = match self.taps {
            TapOrder::Inputs => "rotates inputs",
            TapOrder::Outputs => "rotates outputs",
            TapOrder::Mixed => "rotates both",
        };
        let plural = if self.baby_shifts == 1 { "" } else { "s" };
        write!(f, "{}, {taps}, {} baby shift{plural}", self.alignment, self.baby_shifts)
    }
}

impl std::fmt::Display for CoefficientPacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [rows, columns] = self.tile;
        write!(f, "coefficients, tiles of {rows}x{columns}")?;
        for (factor, what) in [
            (self.tiles_at_once, "at once"),
            (self.interleave, "interleaved"),
            (self.stack, "stacked"),
            (self.merge, "merged"),
        ] {
            if factor > 1 {
                write!(f, ", {factor} {what}")?;
            }
        }
        Ok(())
    }
}
