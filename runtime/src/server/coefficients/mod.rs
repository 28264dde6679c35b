//! Stages in coefficients: products of polynomials, merged.

pub mod evaluate;
pub mod prepare;
