//! Numbers that look random and are the same on every machine: no secrets, only weights and pictures.
//!
//! States are integers. What becomes of them as floats takes exact arithmetic and single roundings, never `ln`, `cos` or
//! `exp`, whose last bits differ between machines.

/// A linear congruential generator of 64 bits, of which the upper ones are used.
///
/// Multiplier and increment are those of Knuth's MMIX ("The Art of Computer Programming" 2, 3.3.4, table 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Starts a stream; the same one for the same seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random { state: seed.wrapping_add(0x9e37_79b9_7f4a_7c15) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state
    }

    /// Draws a number in [0, 1): a multiple of 2^-24, so exact.
    pub(crate) fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Draws a number in [`low`, `high`).
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.uniform()
    }

    /// Draws from a distribution close to the normal one of mean 0 and standard deviation 1; never beyond 6.
    ///
    /// The sum of 12 integers uniform in [0, 2^16) has mean 6 (2^16 - 1) and variance 2^32 - 1. Twice its distance from
    /// the mean is an integer below 2^20, which a float holds exactly, and dividing that by 2^17 is exact as well.
    pub(crate) fn normal(&mut self) -> f32 {
        let sum: i32 = (0..12).map(|_| (self.next() >> 48) as i32).sum();
        (2 * sum - 12 * 0xffff) as f32 / (1u32 << 17) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_draws_the_same_numbers() {
        let mut random = Random::new(1);
        let mut next = || random.next();
        let first = [next(), next(), next()];
        assert_eq!(first, [9_600_797_334_776_331_053, 1_360_102_408_078_375_736, 13_747_512_471_471_305_255]);
    }

    #[test]
    fn normal_numbers_have_the_moments_of_the_normal_distribution() {
        let mut random = Random::new(7);
        let numbers: Vec<f64> = (0..1_000_000).map(|_| f64::from(random.normal())).collect();
        let moment = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / numbers.len() as f64;
        // One standard error of the first three is below 0.004. The sum of 12 has a fourth moment of 2.9, not 3.
        for (power, expected) in [(1, 0.0), (2, 1.0), (3, 0.0), (4, 2.9)] {
            assert!((moment(power) - expected).abs() < 0.03, "moment {power} is {}", moment(power));
        }
        assert!(numbers.iter().all(|x| x.abs() < 6.0));
    }

    #[test]
    fn uniform_numbers_fill_their_range() {
        let mut random = Random::new(7);
        let numbers: Vec<f32> = (0..10_000).map(|_| random.between(-2.0, 3.0)).collect();
        assert!(numbers.iter().all(|x| (-2.0..3.0).contains(x)));
        for tenth in 0..10 {
            let low = -2.0 + tenth as f32 / 2.0;
            let inside = numbers.iter().filter(|&&x| (low..low + 0.5).contains(&x)).count();
            assert!((800..1200).contains(&inside), "{inside} of 10000 from {low}");
        }
    }
}
