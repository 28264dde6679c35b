//! placeholder
pub mod bfv;
pub mod math;
