//! A constant to multiply by, prepared for its modulus: the plaintext modulus or one of the primes.

/// A constant modulo `modulus`, with its Shoup quotient.
///
/// Unlike [`Modulus`](crate::math::modulus::Modulus) it takes even moduli, since a plaintext modulus may be a power of
/// two where nothing is batch-encoded.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    value: u64,
    /// floor(value * 2^64 / modulus)
    quotient: u64,
    modulus: u64,
}

impl Factor {
    /// Prepares `value`, which is below `modulus`, which is below 2^62.
    pub fn new(value: u64, modulus: u64) -> Self {
        debug_assert!(value < modulus && modulus < 1 << 62);
        Self { value, quotient: ((u128::from(value) << 64) / u128::from(modulus)) as u64, modulus }
    }

    /// Returns the constant itself.
    pub fn value(self) -> u64 {
        self.value
    }

    /// Returns the constant times 2^32.
    pub fn shifted_by_32(self) -> Self {
        Self::new(self.mul(1 << 32), self.modulus)
    }

    /// Multiplies any word by the constant; the result is reduced, without a branch.
    ///
    /// The quotient is at most 1 + x/2^64 < 2 short, so the rest is below twice the modulus before the last step.
    #[inline(always)]
    pub fn mul(self, x: u64) -> u64 {
        let multiple = ((u128::from(x) * u128::from(self.quotient)) >> 64) as u64;
        subtract_once(x.wrapping_mul(self.value).wrapping_sub(multiple.wrapping_mul(self.modulus)), self.modulus)
    }

    /// As [`mul`](Self::mul) for x < 2^32, from 32-bit products, which vectorise; the bits above are ignored.
    ///
    /// The high word of the product with the quotient is exact: x(2^32 h + l) / 2^64 = (xh + xl/2^32) / 2^32, and the
    /// sum is below 2^64.
    #[inline(always)]
    pub fn mul_short(self, x: u64) -> u64 {
        let x = x & LOW;
        let multiple = (x * (self.quotient >> 32) + ((x * (self.quotient & LOW)) >> 32)) >> 32;
        let product = (x * (self.value & LOW)).wrapping_add((x * (self.value >> 32)) << 32);
        // Below 2^32, as it is at most x.
        let multiple = multiple & LOW;
        let whole = (multiple * (self.modulus & LOW)).wrapping_add((multiple * (self.modulus >> 32)) << 32);
        subtract_once(product.wrapping_sub(whole), self.modulus)
    }
}

impl Factor {
    /// As [`mul`](Self::mul) for x < 2^32 and a modulus below 2^32, from three 32-bit products.
    ///
    /// The upper half of the quotient is that for 32 bits: it is less than 1 + x/2^32 < 2 short.
    #[inline(always)]
    pub fn mul_narrow(self, x: u64) -> u64 {
        let x = x & LOW;
        let multiple = (x * (self.quotient >> 32)) >> 32;
        subtract_once(x * (self.value & LOW) - multiple * (self.modulus & LOW), self.modulus)
    }
}

/// The low half of a word.
const LOW: u64 = 0xffff_ffff;

/// Subtracts `modulus` if `x` is at least that, without a branch; needs x < 2^63.
#[inline(always)]
pub(super) fn subtract_once(x: u64, modulus: u64) -> u64 {
    // Below the modulus the difference wraps, above every x allowed.
    x.min(x.wrapping_sub(modulus))
}

/// Inverts `a` modulo any `modulus` below 2^62; `None` when they share a factor.
pub(super) fn inverse(a: u64, modulus: u64) -> Option<u64> {
    // Extended Euclid: old = a * x and now = a * y modulo the modulus.
    let (mut old, mut now) = (i128::from(a % modulus), i128::from(modulus));
    let (mut x, mut y) = (1i128, 0i128);
    while now != 0 {
        let quotient = old / now;
        (old, now) = (now, old - quotient * now);
        (x, y) = (y, x - quotient * y);
    }
    (old == 1).then(|| x.rem_euclid(i128::from(modulus)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn multiplies_as_double_words_do(modulus in 2u64..1 << 62, value: u64, x: u64) {
            let value = value % modulus;
            let expected = u128::from(x) * u128::from(value) % u128::from(modulus);
            let factor = Factor::new(value, modulus);
            prop_assert_eq!(u128::from(factor.mul(x)), expected);
            prop_assert_eq!(factor.mul_short(x >> 32), factor.mul(x >> 32));
            let modulus = modulus % (1 << 32);
            if modulus > 1 {
                let factor = Factor::new(value % modulus, modulus);
                prop_assert_eq!(factor.mul_narrow(x >> 32), factor.mul(x >> 32));
            }
        }

        #[test]
        fn inverts_what_is_coprime(modulus in 2u64..1 << 62, a: u64) {
            match inverse(a, modulus) {
                Some(b) => prop_assert_eq!(u128::from(a) * u128::from(b) % u128::from(modulus), 1),
                None => prop_assert!((2..1000).any(|d| a % d == 0 && modulus % d == 0) || modulus > 1_000_000),
            }
        }
    }

    #[test]
    fn powers_of_two_have_no_even_inverses() {
        assert_eq!(inverse(6, 1 << 17), None);
        assert_eq!(inverse(3, 1 << 17).map(|b| 3 * b % (1 << 17)), Some(1));
    }
}
