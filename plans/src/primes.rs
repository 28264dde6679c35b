//! Primes that have a number theoretic transform: 1 modulo 2N.

/// Says whether `n` is prime, for every 64-bit `n`.
///
/// Miller-Rabin with the first twelve primes as bases, which decides all n below 3.3 * 10^24.
///
/// Source: Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", Math. Comp. 86 (2017).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(p) = BASES.iter().find(|&&p| n.is_multiple_of(p)) {
        return n == *p;
    }
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    BASES.iter().all(|&base| {
        let mut x = power(base, odd, n);
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = product(x, x, n);
            x == n - 1
        })
    })
}

/// Lists the primes of exactly `bits` bits that are 1 modulo 2N, largest first.
///
/// Primes just below a power of two waste the fewest draws of a sampler that masks random words to `bits` bits.
pub fn ntt_primes_below(bits: u32, ring_degree: usize) -> impl Iterator<Item = u64> {
    let step = 2 * ring_degree as u64;
    let (low, high) = (1u64 << (bits - 1), (1u64 << bits) - 1);
    let top = if high > step { high - (high - 1) % step } else { 0 };
    (0..)
        .map(move |i| top.wrapping_sub(i * step))
        .take_while(move |&p| p >= low && p <= top && p > 1)
        .filter(|&p| is_prime(p))
}

/// Lists the primes from `least` on that are 1 modulo 2N, smallest first.
pub fn ntt_primes_from(least: u64, ring_degree: usize) -> impl Iterator<Item = u64> {
    let step = 2 * ring_degree as u64;
    let first = least.saturating_sub(1).div_ceil(step).max(1) * step + 1;
    (0..).map(move |i| first + i * step).filter(|&p| is_prime(p))
}

fn product(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut base, mut result) = (base % modulus, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base, modulus);
        }
        base = product(base, base, modulus);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_trial_division() {
        let naive = |n: u64| n > 1 && (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
        assert!((0..3000).all(|n| is_prime(n) == naive(n)));
    }

    #[test]
    fn knows_large_primes_and_strong_pseudoprimes() {
        assert!(is_prime((1 << 61) - 1));
        assert!(is_prime(18_446_744_073_709_551_557), "the largest prime below 2^64");
        assert!(!is_prime(3_215_031_751), "a strong pseudoprime to bases 2, 3, 5 and 7");
        assert!(!is_prime(3_825_123_056_546_413_051), "one to the first nine primes");
    }

    #[test]
    fn lists_primes_with_a_transform() {
        assert_eq!(ntt_primes_from(0, 4096).take(4).collect::<Vec<_>>(), [40961, 65537, 114_689, 147_457]);
        let below: Vec<u64> = ntt_primes_below(30, 4096).take(3).collect();
        assert!(below.iter().all(|&p| is_prime(p) && p % 8192 == 1 && p >> 29 == 1));
        assert!(below.is_sorted_by(|a, b| a > b));
        assert_eq!(ntt_primes_below(13, 4096).count(), 0, "none of 13 bits is 1 modulo 8192");
    }
}
