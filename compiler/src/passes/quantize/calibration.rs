//! The inputs that a network is quantised for.

use crate::error::Error;

/// Example inputs; the ranges of activations are measured on them.
///
/// A few hundred inputs that the network will meet, such as training images, are enough. Their order does not matter
/// to the quality of the result, but is part of what makes it reproducible.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// One flattened input each, in the order of the network's input shape.
    pub inputs: Vec<Vec<f32>>,
    /// Whether they were made up by [`Calibration::uniform`] for want of real ones.
    pub generated: bool,
}

impl Calibration {
    /// Takes real inputs, one flattened tensor each.
    pub fn new(inputs: Vec<Vec<f32>>) -> Calibration {
        Calibration { inputs, generated: false }
    }

    /// Makes up `count` inputs of the given shape, uniform in [0, 1), the same ones for the same seed everywhere.
    ///
    /// No real input looks like this, so ranges come out wrong and accuracy suffers; the quantiser's report says so.
    /// The generator is splitmix64, seeded with `seed`: one 64-bit output a number, its upper 24 bits times 2^-24,
    /// so that every number is exact in `f32`.
    pub fn uniform(shape: &[usize], count: usize, seed: u64) -> Calibration {
        let length = shape.iter().product();
        let mut generator = SplitMix64 { state: seed };
        let inputs = (0..count).map(|_| (0..length).map(|_| generator.next_unit()).collect()).collect();
        Calibration { inputs, generated: true }
    }

    /// Checks that there is an input, and that each has `shape` and only finite numbers.
    pub(super) fn check(&self, shape: &[usize]) -> Result<(), Error> {
        if self.inputs.is_empty() {
            return Err(Error::NoCalibrationInputs);
        }
        let expected: usize = shape.iter().product();
        for (index, input) in self.inputs.iter().enumerate() {
            if input.len() != expected {
                return Err(Error::CalibrationShape { index, found: input.len(), shape: shape.to_vec() });
            }
            if let Some(position) = input.iter().position(|x| !x.is_finite()) {
                return Err(Error::CalibrationNotFinite { index, position, value: input[position] });
            }
        }
        Ok(())
    }
}

/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Not for secrets.
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn next_unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 1234567, as listed for splitmix64 on rosettacode.org ("Pseudo-random numbers").
        let mut generator = SplitMix64 { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| generator.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn uniform_inputs_fill_the_unit_interval_and_repeat_for_a_seed() {
        let calibration = Calibration::uniform(&[1, 8, 8], 50, 7);
        assert_eq!(calibration, Calibration::uniform(&[1, 8, 8], 50, 7));
        assert_ne!(calibration, Calibration::uniform(&[1, 8, 8], 50, 8));
        let numbers = calibration.inputs.concat();
        assert_eq!(numbers.len(), 50 * 64);
        assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        // The mean of 3200 numbers has a standard deviation of 0.0051.
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn unusable_inputs_are_named() {
        let check = |inputs| Calibration::new(inputs).check(&[1, 2]).unwrap_err();
        assert!(matches!(check(vec![]), Error::NoCalibrationInputs));
        let wrong_length = check(vec![vec![0.0; 2], vec![0.0; 3]]);
        assert!(matches!(wrong_length, Error::CalibrationShape { index: 1, found: 3, .. }));
        let infinite = check(vec![vec![0.0, f32::INFINITY]]);
        assert!(matches!(infinite, Error::CalibrationNotFinite { index: 0, position: 1, .. }));
    }
}
