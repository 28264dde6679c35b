//! Draws where every number of a small tensor sits in each packing, and what one rotation or one merge does to it.
//!
//! Look at: the letters, each the name of a pixel. In slots, a rotation moves all of them, and something must keep out
//! those that come from beyond the image; in coefficients, nothing moves, and the sums appear among junk. Every picture
//! is drawn from the layouts that client and server use, and none appears unless its numbers make the convolution.
//!
//! The ring degrees are toys: at 64 or 128 nothing is secure, but a ciphertext fits a line.
//!
//! Run: cargo run --release --example packings

use std::error::Error;

mod coefficients;
mod drawing;
mod products;
mod slots;
mod tensor;

fn main() -> Result<(), Box<dyn Error>> {
    tensor::draw();
    slots::rotational()?;
    slots::punctured()?;
    slots::masked()?;
    coefficients::interleaved()?;
    coefficients::merged()?;
    coefficients::stacked()?;
    coefficients::tiled()
}
