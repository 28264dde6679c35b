//! One number a slot, after CHOCO: windows are aligned by rotations.
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
