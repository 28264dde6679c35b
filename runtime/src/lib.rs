//! placeholder
pub mod math;
