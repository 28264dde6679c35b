//! Functions of one number, computed in `f64` and rounded once.

use super::exponential::{erf_complement, exp, exp_less_1, log, log_1_plus, tanh};
use crate::op::Function;

/// Computes a function of each number.
pub(super) fn map(function: Function, x: &[f32]) -> Vec<f32> {
    x.iter().map(|&x| apply(function, f64::from(x)) as f32).collect()
}

fn apply(function: Function, x: f64) -> f64 {
    match function {
        Function::Abs => x.abs(),
        Function::Ceil => x.ceil(),
        Function::Celu { alpha } => {
            let alpha = f64::from(alpha);
            if x < 0.0 { alpha * exp_less_1(x / alpha) } else { x }
        }
        Function::Elu { alpha } => elu(f64::from(alpha), x),
        Function::Erf => {
            // Near 0 the difference to 1 would lose what matters.
            if x.abs() < 1e-4 {
                std::f64::consts::FRAC_2_SQRT_PI * x * (1.0 - x * x / 3.0)
            } else {
                1.0 - erf_complement(x)
            }
        }
        Function::Exp => exp(x),
        Function::Floor => x.floor(),
        Function::Gelu { approximate: false } => x / 2.0 * erf_complement(-x * std::f64::consts::FRAC_1_SQRT_2),
        Function::Gelu { approximate: true } => {
            // sqrt(2/pi) = FRAC_2_SQRT_PI * FRAC_1_SQRT_2
            let factor = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
            // (1 + tanh y)/2 = sigmoid(2y)
            x * sigmoid(2.0 * factor * (x + 0.044715 * x * x * x))
        }
        Function::HardSigmoid { alpha, beta } => hard_sigmoid(f64::from(alpha) * x + f64::from(beta)),
        Function::HardSwish => x * hard_sigmoid(x / 6.0 + 0.5),
        Function::LeakyRelu { alpha } => {
            if x < 0.0 {
                f64::from(alpha) * x
            } else {
                x
            }
        }
        Function::Log => log(x),
        Function::Mish => x * tanh(softplus(x)),
        Function::Neg => -x,
        Function::Reciprocal => 1.0 / x,
        Function::Round => x.round_ties_even(),
        Function::Selu { alpha, gamma } => f64::from(gamma) * elu(f64::from(alpha), x),
        Function::Sigmoid => sigmoid(x),
        Function::Sign => {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }
        Function::Softplus => softplus(x),
        Function::Softsign => x / (1.0 + x.abs()),
        Function::Sqrt => x.sqrt(),
        Function::Swish { alpha } => x * sigmoid(f64::from(alpha) * x),
        Function::Tanh => tanh(x),
        Function::ThresholdedRelu { alpha } => {
            if x > f64::from(alpha) {
                x
            } else {
                0.0
            }
        }
    }
}

fn elu(alpha: f64, x: f64) -> f64 {
    if x < 0.0 { alpha * exp_less_1(x) } else { x }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// Clamps to [0, 1]; a NaN passes.
fn hard_sigmoid(x: f64) -> f64 {
    x.clamp(0.0, 1.0)
}

/// ln(1 + e^x), without an overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + log_1_plus(exp(-x.abs()))
}

/// Whether a function's values are never negative, for whatever number.
pub fn is_never_negative(function: Function) -> bool {
    match function {
        Function::Abs
        | Function::Exp
        | Function::HardSigmoid { .. }
        | Function::Sigmoid
        | Function::Softplus
        | Function::Sqrt => true,
        Function::ThresholdedRelu { alpha } => alpha >= 0.0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(function: Function, x: f32) -> f32 {
        map(function, &[x])[0]
    }

    /// Values that the functions' definitions give on paper, or to ten digits by another program (Python's `math`).
    #[test]
    fn functions_have_their_values() {
        let known = [
            (Function::LeakyRelu { alpha: 0.1 }, -2.0, -0.2),
            (Function::Elu { alpha: 2.0 }, -1.0, -1.264_241_1),
            (Function::Celu { alpha: 2.0 }, -1.0, -0.786_938_67),
            (Function::Selu { alpha: 1.5, gamma: 2.0 }, -1.0, -1.896_361_7),
            (Function::Erf, 0.5, 0.520_499_9),
            (Function::Gelu { approximate: false }, 1.0, 0.841_344_8),
            (Function::Gelu { approximate: false }, -5.0, -1.433_257_6e-6),
            (Function::Gelu { approximate: true }, 1.0, 0.841_192),
            (Function::HardSigmoid { alpha: 0.2, beta: 0.5 }, 1.0, 0.7),
            (Function::HardSwish, 1.0, 0.666_666_7),
            (Function::HardSwish, -3.0, 0.0),
            (Function::Mish, 1.0, 0.865_098_4),
            (Function::Sigmoid, 2.0, 0.880_797_1),
            (Function::Softplus, -30.0, 9.357_623e-14),
            (Function::Softplus, 100.0, 100.0),
            (Function::Softsign, -1.0, -0.5),
            (Function::Swish { alpha: 1.0 }, 1.0, 0.731_058_6),
            (Function::Tanh, 0.5, 0.462_117_16),
            (Function::ThresholdedRelu { alpha: 1.0 }, 1.0, 0.0),
            (Function::Round, 2.5, 2.0),
            (Function::Log, 3.0, 1.098_612_3),
            (Function::Sign, -7.0, -1.0),
        ];
        for (function, x, expected) in known {
            let found = at(function, x);
            assert!(
                (found - expected).abs() <= 2e-7 * expected.abs(),
                "{function:?} of {x} is {found}, not {expected}"
            );
        }
    }

    #[test]
    fn large_numbers_do_not_overflow_on_the_way() {
        assert_eq!([at(Function::Sigmoid, -1e30), at(Function::Sigmoid, 1e30)], [0.0, 1.0]);
        assert_eq!([at(Function::Tanh, -1e30), at(Function::Tanh, 1e30)], [-1.0, 1.0]);
        assert_eq!(at(Function::Gelu { approximate: true }, -1e9), -0.0);
        assert_eq!(at(Function::Mish, -1e9), -0.0);
        assert!(at(Function::HardSwish, f32::NAN).is_nan() && at(Function::Softplus, f32::NAN).is_nan());
    }

    #[test]
    fn what_is_called_never_negative_is_not() {
        let functions = [
            Function::Abs,
            Function::Exp,
            Function::Sigmoid,
            Function::Softplus,
            Function::ThresholdedRelu { alpha: 0.0 },
        ];
        for function in functions {
            assert!(is_never_negative(function));
            assert!((-200..200).all(|x| at(function, x as f32 / 3.0) >= 0.0), "{function:?}");
        }
        assert!(!is_never_negative(Function::Tanh));
    }
}
