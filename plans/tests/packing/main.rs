//! Laws of packing, in the clear.

mod coefficients;
mod operators;
mod slots;
