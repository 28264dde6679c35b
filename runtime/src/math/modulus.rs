//! One odd prime modulus, and arithmetic on residues below it.
//!
//! Everything that may pass secret data is free of branches and of table lookups that depend on it; exponents, moduli
//! and prepared constants are public.

/// An odd prime below 2^61, with what Barrett reduction needs.
///
/// The bound leaves three bits in a word: lazy values reach 8p without overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    value: u64,
    bits: u32,
    /// floor(2^(bits + 63) / p), below 2^64 because p > 2^(bits - 1).
    product_ratio: u64,
    /// floor(2^64 / p): the Shoup quotient of 1.
    one_shoup: u64,
    /// 2^64 mod p, and its Shoup quotient.
    word: u64,
    word_shoup: u64,
}

impl Modulus {
    /// Prepares an odd prime for arithmetic.
    ///
    /// Primality is the caller's word: parameters are checked before they reach the arithmetic. Only
    /// [`inverse`](Self::inverse) and the transforms depend on it.
    ///
    /// # Panics
    /// When `value` is even, below 3 or not below 2^61.
    pub fn new(value: u64) -> Self {
        assert!(value % 2 == 1 && (3..1 << 61).contains(&value), "modulus {value} is not an odd prime below 2^61");
        let wide = u128::from(value);
        let bits = u64::BITS - value.leading_zeros();
        let word = ((1u128 << 64) % wide) as u64;
        let quotient = |w: u64| ((u128::from(w) << 64) / wide) as u64;
        Self {
            value,
            bits,
            product_ratio: ((1u128 << (bits + 63)) / wide) as u64,
            one_shoup: quotient(1),
            word,
            word_shoup: quotient(word),
        }
    }

    /// Returns the prime itself.
    pub fn value(self) -> u64 {
        self.value
    }

    /// Returns the length of the prime in bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns floor(2^(bits + 63) / p), the constant of the vector kernels' Barrett products.
    pub(super) fn product_ratio(self) -> u64 {
        self.product_ratio
    }

    /// Subtracts p once if `x` is at least p; needs x < 2^63.
    fn subtract_once(self, x: u64) -> u64 {
        let reduced = x.wrapping_sub(self.value);
        // The sign bit says whether the subtraction went below zero.
        reduced.wrapping_add(self.value & ((reduced as i64 >> 63) as u64))
    }

    /// Adds two residues.
    pub fn add(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        self.subtract_once(a + b)
    }

    /// Subtracts residue `b` from residue `a`.
    pub fn sub(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        self.subtract_once(a + self.value - b)
    }

    /// Negates a residue.
    pub fn neg(self, a: u64) -> u64 {
        debug_assert!(a < self.value);
        self.subtract_once(self.value - a)
    }

    /// Multiplies two residues, by Barrett's method.
    ///
    /// With b bits and z = ac < p^2: z1 = floor(z / 2^(b-1)) < 2^(b+1), q = floor(z1 * floor(2^(b+63)/p) / 2^64).
    /// The three floors take less than 1, z1 / 2^64 <= 1/4 and 1 from the real quotient z/p, so z - qp < 2.25 p.
    pub fn mul(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        let product = u128::from(a) * u128::from(b);
        let top = (product >> (self.bits - 1)) as u64;
        let quotient = high(top, self.product_ratio);
        let rest = (product as u64).wrapping_sub(quotient.wrapping_mul(self.value));
        self.subtract_once(self.subtract_once(rest))
    }

    /// Raises a residue to a public power.
    pub fn pow(self, base: u64, mut exponent: u64) -> u64 {
        let (mut square, mut result) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        result
    }

    /// Inverts a residue by Fermat's theorem; 0, which has no inverse, gives 0.
    pub fn inverse(self, a: u64) -> u64 {
        self.pow(a, self.value - 2)
    }

    /// Reduces any word.
    pub fn reduce(self, x: u64) -> u64 {
        self.mul_shoup(x, 1, self.one_shoup)
    }

    /// Reduces any double word, as high * 2^64 + low.
    pub fn reduce_u128(self, x: u128) -> u64 {
        let top = self.mul_shoup((x >> 64) as u64, self.word, self.word_shoup);
        self.add(top, self.reduce(x as u64))
    }

    /// Reduces a signed number to its residue in [0, p).
    pub fn from_signed(self, x: i64) -> u64 {
        // As an unsigned word a negative number reads 2^64 too much.
        let excess = self.word & ((x >> 63) as u64);
        self.sub(self.reduce(x as u64), excess)
    }

    /// Returns the representative of a residue in [-(p-1)/2, (p-1)/2].
    pub fn centered(self, a: u64) -> i64 {
        debug_assert!(a < self.value);
        // Negative exactly when a exceeds (p-1)/2.
        let above = ((self.value / 2) as i64 - a as i64) >> 63;
        a as i64 - (self.value as i64 & above)
    }

    /// Returns the Shoup quotient floor(w * 2^64 / p) of a residue `w`, for [`mul_shoup`](Self::mul_shoup).
    pub fn shoup(self, w: u64) -> u64 {
        debug_assert!(w < self.value);
        ((u128::from(w) << 64) / u128::from(self.value)) as u64
    }

    /// Multiplies any word `x` by a residue `w` with its Shoup quotient; the result is reduced.
    ///
    /// q = floor(x w' / 2^64) is at most xw/p and more than xw/p - x/2^64 - 1, so xw - qp < 2p.
    pub fn mul_shoup(self, x: u64, w: u64, w_shoup: u64) -> u64 {
        let rest = x.wrapping_mul(w).wrapping_sub(high(x, w_shoup).wrapping_mul(self.value));
        self.subtract_once(rest)
    }
}

/// Returns the high word of a product.
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    /// Any prime the transforms may meet: 14 to 61 bits.
    fn modulus() -> impl Strategy<Value = Modulus> {
        (14u32..=61).prop_map(|bits| Modulus::new(ntt_primes_below(bits, 16).next().expect("16 is small")))
    }

    fn residues() -> impl Strategy<Value = (Modulus, u64, u64)> {
        (modulus(), any::<u64>(), any::<u64>()).prop_map(|(p, a, b)| (p, a % p.value(), b % p.value()))
    }

    proptest! {
        #[test]
        fn agrees_with_double_words((p, a, b) in residues(), x: u64, y: u128) {
            let wide = u128::from(p.value());
            prop_assert_eq!(u128::from(p.mul(a, b)), u128::from(a) * u128::from(b) % wide);
            prop_assert_eq!(u128::from(p.add(a, b)), (u128::from(a) + u128::from(b)) % wide);
            prop_assert_eq!(p.add(p.sub(a, b), b), a);
            prop_assert_eq!(p.add(a, p.neg(a)), 0);
            prop_assert_eq!(u128::from(p.mul_shoup(x, b, p.shoup(b))), u128::from(x) * u128::from(b) % wide);
            prop_assert_eq!(p.reduce(x), x % p.value());
            prop_assert_eq!(u128::from(p.reduce_u128(y)), y % wide);
        }

        #[test]
        fn signed_numbers_keep_their_residue(p in modulus(), x: i64) {
            let r = p.from_signed(x);
            prop_assert_eq!(i128::from(r), i128::from(x).rem_euclid(i128::from(p.value())));
            let c = p.centered(r);
            prop_assert!(c.unsigned_abs() <= p.value() / 2);
            prop_assert_eq!(p.from_signed(c), r);
        }

        #[test]
        fn inverts((p, a, _) in residues()) {
            prop_assert_eq!(p.mul(a, p.inverse(a)), u64::from(a != 0));
        }
    }

    #[test]
    fn extremes_of_the_largest_and_smallest_moduli() {
        for p in [Modulus::new(3), Modulus::new(17), Modulus::new((1 << 61) - 1)] {
            let top = p.value() - 1;
            assert_eq!(p.mul(top, top), 1, "(-1)^2");
            assert_eq!(p.from_signed(i64::MIN), p.neg(p.reduce(1 << 63)));
            assert_eq!(p.reduce_u128(u128::MAX), (u128::MAX % u128::from(p.value())) as u64);
            assert_eq!(p.centered(top), -1);
        }
    }

    #[test]
    #[should_panic(expected = "not an odd prime below 2^61")]
    fn refuses_a_modulus_out_of_range() {
        Modulus::new(1 << 61);
    }
}
