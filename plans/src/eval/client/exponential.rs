//! The exponential function and its kin in `f64`, with additions and products only: the same bits on every machine.
//!
//! Errors are far below the rounding of results to `f32`.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E};

/// Computes e^x: relative error below 2^-45.
///
/// e^x = 2^k * e^r with k the integer nearest to x / ln 2 and |r| <= ln(2)/2; the Taylor series up to r^11/11! errs by
/// less than 2^-46. Below -700 it is 0, beyond 700 infinite; a NaN goes on and stays one.
pub(super) fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    if x > 700.0 {
        return f64::INFINITY;
    }
    let k = (x * LOG2_E).round_ties_even();
    let r = x - k * LN_2;
    let series = (1..=11).rev().fold(1.0, |series, n| 1.0 + r / f64::from(n) * series);
    // 2^k is a normal f64, since |k| <= 1010; its exponent field is k + 1023.
    series * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

/// Computes e^x - 1 to a relative error below 2^-30: near 0 from its series.
pub(super) fn exp_less_1(x: f64) -> f64 {
    if x.abs() < 1e-3 { x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0))) } else { exp(x) - 1.0 }
}

/// Computes the natural logarithm of a number that was an `f32`; -infinity at 0, NaN below.
///
/// With x = 2^k m and m between the roots of 1/2 and 2, ln m = 2 artanh(s) for s = (m - 1)/(m + 1), |s| < 0.172: the
/// series up to s^21 errs by less than 2^-54.
pub(super) fn log(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 || !x.is_finite() {
        return if x < 0.0 { f64::NAN } else { x };
    }
    let bits = x.to_bits();
    let (mut k, mut m) = ((bits >> 52) as i64 - 1023, f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        (k, m) = (k + 1, m / 2.0);
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = (0..=10).rev().fold(0.0, |series, n| series * square + 1.0 / f64::from(2 * n + 1));
    k as f64 * LN_2 + 2.0 * s * series
}

/// Computes ln(1 + x) for x in [0, 1].
pub(super) fn log_1_plus(x: f64) -> f64 {
    if x < 1e-5 { x - x * x / 2.0 + x * x * x / 3.0 } else { log(1.0 + x) }
}

/// Computes the hyperbolic tangent.
pub(super) fn tanh(x: f64) -> f64 {
    if x.abs() < 0.01 {
        let square = x * x;
        return x * (1.0 - square / 3.0 * (1.0 - square * 2.0 / 5.0));
    }
    let small = exp(-2.0 * x.abs());
    ((1.0 - small) / (1.0 + small)).copysign(x)
}

/// Computes the error function's complement 1 - erf(x).
///
/// Below 3 from the Taylor series of erf, whose terms reach e^9; from there on from the continued fraction of erfc.
pub(super) fn erf_complement(x: f64) -> f64 {
    let size = x.abs();
    let of_size = if size < 3.0 {
        // (-1)^n x^(2n+1) / (n! (2n+1))
        let (mut power, mut sum) = (size, 0.0);
        for n in 0..60 {
            sum += power / f64::from(2 * n + 1);
            power *= -size * size / f64::from(n + 1);
        }
        1.0 - FRAC_2_SQRT_PI * sum
    } else {
        let fraction = (1..=60).rev().fold(size, |below, n| size + f64::from(n) / 2.0 / below);
        exp(-size * size) * FRAC_2_SQRT_PI / 2.0 / fraction
    };
    if x < 0.0 { 2.0 - of_size } else { of_size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_logarithms_are_near_those_of_the_library() {
        for step in -150_000..150_000 {
            let x = f64::from(step) * 0.0046;
            for (ours, exact) in [(exp(x), x.exp()), (tanh(x), x.tanh()), (exp_less_1(x), x.exp_m1())] {
                assert!(ours == exact || ((ours - exact) / exact).abs() < 1e-9, "{x}: {ours:e}, not {exact:e}");
            }
            let positive = f64::from(f32::from_bits((step + 150_000) as u32 * 7000));
            let (ours, exact) = (log(positive), positive.ln());
            assert!(ours == exact || (ours - exact).abs() < 1e-14 * exact.abs().max(1.0), "ln {positive:e}");
        }
        assert_eq!([exp(0.0), exp(-0.0), exp(f64::NEG_INFINITY)], [1.0, 1.0, 0.0]);
        assert_eq!([exp(f64::INFINITY), log(f64::INFINITY)], [f64::INFINITY; 2]);
        assert!(exp(f64::NAN).is_nan() && log(f64::NAN).is_nan() && log(-1.0).is_nan() && tanh(f64::NAN).is_nan());
    }

    /// From tables of the error function (Abramowitz and Stegun, table 7.1 and 7.3).
    #[test]
    fn the_error_function_has_its_values() {
        for (x, erf) in [(0.1, 0.112_462_916_0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)]
        {
            assert!((1.0 - erf_complement(x) - erf).abs() < 1e-10, "erf {x}");
            assert!((erf_complement(-x) - 1.0 - erf).abs() < 1e-10, "erf -{x}");
        }
        // Both ways agree where they meet.
        let (below, above) = (erf_complement(3.0 - 1e-9), erf_complement(3.0 + 1e-9));
        assert!((below / above - 1.0).abs() < 1e-6, "{below:e} {above:e}");
        assert_eq!(erf_complement(30.0), 0.0);
    }
}
