//! Stages in slots: rotations and products.

pub mod evaluate;
pub mod prepare;
