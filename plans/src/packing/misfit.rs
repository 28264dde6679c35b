//! Why a packing does not fit.

/// Why a packing does not fit an operator at some ring degree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// One channel is larger than a row of slots.
    #[error("a channel takes a block of {block} slots, a row has {row_length}")]
    BlockTooLarge {
        /// Slots of a block.
        block: usize,
        /// Slots of a row.
        row_length: usize,
    },
    /// The number of baby shifts is none that the layout can be cut into.
    #[error("{baby_shifts} baby shifts do not divide {shifts} shifts")]
    BabyShifts {
        /// What the packing asks for.
        baby_shifts: usize,
        /// What the layout has.
        shifts: usize,
    },
    /// Masks can only follow rotations of inputs.
    #[error("the masked baseline rotates inputs")]
    MasksFollowInputs,
    /// Tiles of no pixels, or larger than the output.
    #[error("tiles of {tile:?} pixels do not divide an output of {output:?}")]
    Tile {
        /// Rows and columns asked for.
        tile: [usize; 2],
        /// Rows and columns of the output.
        output: [usize; 2],
    },
    /// Interleaving or merging by what is no power of two, or by too much.
    #[error("{interleave} channels cannot be interleaved with {merge} outputs merged")]
    Interleave {
        /// Channels a ciphertext.
        interleave: usize,
        /// Outputs merged.
        merge: usize,
    },
    /// More cells than coefficients.
    #[error("the cells take {cells} coefficients, a ciphertext has {ring_degree}")]
    TooManyCells {
        /// Coefficients needed.
        cells: usize,
        /// N.
        ring_degree: usize,
    },
    /// More products than can be gone through.
    #[error("{pairs} products are more than a plan can hold ({most})")]
    ProgramTooLarge {
        /// Products, times slots or coefficients.
        pairs: usize,
        /// What a plan can hold.
        most: usize,
    },
}
