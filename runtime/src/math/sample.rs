//! Random residues and small secret polynomials, all drawn from the generator given.
//!
//! Each function consumes whole 32-bit words of the generator's stream, read as little-endian bytes, in order and
//! without gaps, and stops at the last word it needs: so a seed fixes the result, whatever the buffers inside. For a
//! generator such as ChaCha, whose `fill_bytes` also reads whole words in order, the words are those that `next_u32`
//! would give.

use rand::CryptoRng;
use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
use super::lanes::sampling;
use super::modulus::Modulus;

/// Bytes drawn at a time; results do not depend on it.
const BUFFER: usize = 4096;

/// Fills `out` with independent uniform residues, by rejection.
///
/// Client and server expand one seed to the same residues, so the rule is part of the wire format. With b =
/// `modulus.bits()`, candidates are read in stream order: for b <= 32 one little-endian `u32` each, else one
/// little-endian `u64`. The low b bits of a candidate are kept; it is accepted if they are below p. The i-th accepted
/// candidate is `out[i]`, and nothing is read after the last one.
///
/// Time depends on the candidates rejected, which say nothing about those accepted.
pub fn uniform(modulus: Modulus, rng: &mut impl CryptoRng, out: &mut [u64]) {
    if modulus.bits() <= 32 {
        let read = |word: [u8; 4]| u64::from(u32::from_le_bytes(word));
        reject(modulus, rng, out, read, |candidates, out| accept(modulus, candidates, out));
    } else {
        reject(modulus, rng, out, u64::from_le_bytes, |candidates, out| accept_wide(modulus, candidates, out));
    }
}

/// Rejection from words of `WIDTH` bytes.
///
/// `many` may take any number of words off the front by itself: it says how many it read, and accepted.
fn reject<const WIDTH: usize>(
    modulus: Modulus,
    rng: &mut impl CryptoRng,
    out: &mut [u64],
    read: impl Fn([u8; WIDTH]) -> u64,
    many: impl Fn(&[[u8; WIDTH]], &mut [u64]) -> (usize, usize),
) {
    let mask = (1 << modulus.bits()) - 1;
    let mut buffer = [0; BUFFER];
    let mut filled = 0;
    while filled < out.len() {
        // Never more words than residues missing: each is either rejected or used.
        let words = (out.len() - filled).min(BUFFER / WIDTH);
        let bytes = &mut buffer[..words * WIDTH];
        rng.fill_bytes(bytes);
        let candidates = bytes.as_chunks().0;
        let (seen, accepted) = many(candidates, &mut out[filled..]);
        filled += accepted;
        for word in &candidates[seen..] {
            let candidate = read(*word) & mask;
            // Written in any case, so that acceptance costs no branch; a rejected one is overwritten by the next.
            out[filled] = candidate;
            filled += usize::from(candidate < modulus.value());
            if filled == out.len() {
                break;
            }
        }
    }
    buffer.as_mut_slice().zeroize();
}

/// Accepts and rejects from the front of 32-bit candidates, in registers where the machine can; returns how many were
/// seen, and accepted.
fn accept(modulus: Modulus, candidates: &[[u8; 4]], out: &mut [u64]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if sampling::is_available() {
        let mask = u32::MAX >> (u32::BITS - modulus.bits());
        return sampling::accept(candidates, mask, modulus.value() as u32, out);
    }
    (0, 0)
}

/// As [`accept`], from 64-bit candidates.
fn accept_wide(modulus: Modulus, candidates: &[[u8; 8]], out: &mut [u64]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if sampling::is_available() {
        let mask = u64::MAX >> (u64::BITS - modulus.bits());
        return sampling::accept_wide(candidates, mask, modulus.value(), out);
    }
    (0, 0)
}

/// Fills `out` with independent uniform values in {-1, 0, 1}.
///
/// Bytes are read in stream order. A byte below 243 = 3^5 gives five values, its base-3 digits from the lowest, each
/// less 1; others are rejected. Digits of the last byte that find no place are dropped, and the rest of its 32-bit
/// word is skipped.
///
/// Whether a byte is rejected is independent of the digits of the bytes accepted, so time may depend on it; the
/// digits themselves are found without branches or table lookups.
pub fn ternary(rng: &mut impl CryptoRng, out: &mut [i8]) {
    let mut buffer = [0; BUFFER];
    let mut missing = out;
    while !missing.is_empty() {
        let bytes = &mut buffer[..missing.len().div_ceil(5).next_multiple_of(4).min(BUFFER)];
        rng.fill_bytes(bytes);
        for &byte in bytes.iter().filter(|&&byte| byte < 243) {
            let (now, later) = missing.split_at_mut(missing.len().min(5));
            let mut rest = u16::from(byte);
            for value in now {
                // floor(x / 3) for x < 256, without a division.
                let third = (rest * 171) >> 9;
                *value = (rest - 3 * third) as i8 - 1;
                rest = third;
            }
            missing = later;
        }
    }
    buffer.as_mut_slice().zeroize();
}

/// Fills `out` with independent values of the centred binomial distribution of 21 + 21 bits.
///
/// Values lie in [-21, 21], mean 0, variance 10.5 (standard deviation 3.24): the number of ones among 42 bits, less
/// 21, which is distributed as the difference of two counts among 21. Little-endian 64-bit words are read in pairs
/// (u, v), three values a pair: from the low 42 bits of u, from the low 42 bits of v, and from bits 42 to 62 of both. A
/// last pair that is not used up is dropped.
///
/// Time does not depend on the values.
pub fn error(rng: &mut impl CryptoRng, out: &mut [i8]) {
    let mut buffer = [0; BUFFER];
    for values in out.chunks_mut(3 * (BUFFER / 16)) {
        let bytes = &mut buffer[..16 * values.len().div_ceil(3)];
        rng.fill_bytes(bytes);
        let pairs = bytes.as_chunks::<16>().0;
        let done = count_many(pairs, values);
        count_each(&pairs[done..], &mut values[3 * done..]);
    }
    buffer.as_mut_slice().zeroize();
}

/// Counts the ones of pairs of words from the front, in registers where the machine can; returns of how many.
fn count_many(pairs: &[[u8; 16]], values: &mut [i8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if sampling::is_available() {
        return sampling::count(pairs, values);
    }
    0
}

/// Counts the ones of pairs of words, three values each.
fn count_each(pairs: &[[u8; 16]], values: &mut [i8]) {
    const LOW: u64 = (1 << 42) - 1;
    const HIGH: u64 = (1 << 21) - 1;
    for (three, pair) in values.chunks_mut(3).zip(pairs) {
        let pair = u128::from_le_bytes(*pair);
        let (u, v) = (pair as u64, (pair >> 64) as u64);
        let bits = [u & LOW, v & LOW, (u >> 42 & HIGH) << 21 | (v >> 42 & HIGH)];
        for (value, bits) in three.iter_mut().zip(bits) {
            *value = bits.count_ones() as i8 - 21;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use chococ_plans::primes::ntt_primes_below;
    use rand::{Rng, SeedableRng};

    fn rng(seed: u8) -> ChaCha20Rng {
        ChaCha20Rng::from_seed([seed; 32])
    }

    fn prime(bits: u32) -> Modulus {
        Modulus::new(ntt_primes_below(bits, 16).next().expect("16 is small"))
    }

    /// Checks that Pearson's statistic of `counts` against `expected` is within 6 deviations of its mean.
    fn assert_fits(counts: &[u64], expected: &[f64]) {
        let statistic: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e).powi(2) / e).sum();
        let freedom = (counts.len() - 1) as f64;
        assert!((statistic - freedom).abs() < 6.0 * (2.0 * freedom).sqrt(), "{statistic} for {freedom} degrees");
    }

    #[test]
    fn uniform_reads_word_by_word_and_no_further() {
        for bits in [14, 30, 32, 33, 50, 61] {
            let p = Modulus::new(ntt_primes_below(bits, 16).nth(5).expect("16 is small"));
            for length in [0, 1, 511, 1024, 1025, 5000] {
                let (mut bulk, mut single) = (rng(1), rng(1));
                let mut out = vec![0; length];
                uniform(p, &mut bulk, &mut out);
                let mask = (1u64 << bits) - 1;
                let mut word = || if bits <= 32 { u64::from(single.next_u32()) } else { single.next_u64() } & mask;
                let mut accepted = || std::iter::repeat_with(&mut word).find(|&x| x < p.value()).expect("endless");
                assert!(out.iter().all(|&x| x == accepted()), "{bits} bits, {length} residues");
                assert_eq!(bulk.next_u32(), single.next_u32(), "both stand at the same word");
            }
        }
    }

    #[test]
    fn errors_are_counts_of_single_pairs() {
        for length in [0, 1, 11, 12, 13, 16, 17, 100, 768, 769, 5000] {
            let mut out = vec![0; length];
            error(&mut rng(6), &mut out);
            let mut pairs = vec![[0; 16]; length.div_ceil(3)];
            rng(6).fill_bytes(pairs.as_flattened_mut());
            let mut expected = vec![0; length];
            count_each(&pairs, &mut expected);
            assert_eq!(out, expected, "{length} values");
        }
    }

    #[test]
    fn seeds_expand_as_another_tool_says() {
        let known = include_str!("../../../tests/kat/sample.json");
        let known: serde_json::Value = serde_json::from_str(known).expect("the file is JSON");
        let list = |values: &serde_json::Value| values.as_array().expect("a list").clone();
        for case in list(&known["uniform"]) {
            let p = Modulus::new(case["p"].as_u64().expect("a prime"));
            let mut out = vec![0; list(&case["values"]).len()];
            uniform(p, &mut rng(7), &mut out);
            assert_eq!(serde_json::json!(out), case["values"], "p {}", p.value());
        }
        let mut out = vec![0; list(&known["ternary"]).len()];
        ternary(&mut rng(7), &mut out);
        assert_eq!(serde_json::json!(out), known["ternary"]);
        error(&mut rng(7), &mut out);
        assert_eq!(serde_json::json!(out), known["error"]);
    }

    #[test]
    fn uniform_fills_its_range_evenly() {
        for bits in [14, 30, 58] {
            let p = prime(bits);
            let mut out = vec![0; 1 << 16];
            uniform(p, &mut rng(2), &mut out);
            let mut counts = [0; 64];
            out.iter().for_each(|&x| counts[(u128::from(x) * 64 / u128::from(p.value())) as usize] += 1);
            assert_fits(&counts, &[1024.0; 64]);
        }
    }

    #[test]
    fn ternary_values_and_neighbours_are_even() {
        let mut out = vec![0; 45 << 12];
        ternary(&mut rng(3), &mut out);
        let mut counts = [0; 9];
        out.chunks_exact(2).for_each(|pair| counts[(4 + 3 * pair[0] + pair[1]) as usize] += 1);
        assert_fits(&counts, &[(out.len() / 18) as f64; 9]);
    }

    #[test]
    fn errors_are_centred_binomial() {
        let count = 1 << 18;
        let mut out = vec![0; count];
        error(&mut rng(4), &mut out);
        let mean = out.iter().map(|&x| f64::from(x)).sum::<f64>() / count as f64;
        let variance = out.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.03, "five deviations of the mean: {mean}");
        assert!((variance - 10.5).abs() < 0.15, "five deviations of the variance: {variance}");
        // The middle of the distribution, bin by bin: C(42, 21 + x) / 2^42.
        let binomial = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(42 - i) / f64::from(i + 1)) / 42f64.exp2();
        let expected: Vec<f64> = (11..=31).map(|k| binomial(k) * count as f64).collect();
        let mut counts = [0; 21];
        out.iter().filter(|x| x.abs() <= 10).for_each(|&x| counts[(x + 10) as usize] += 1);
        assert_fits(&counts, &expected);
    }

    #[test]
    fn small_samples_do_not_depend_on_length() {
        let (mut long, mut short) = (vec![0; 3000], vec![0; 1537]);
        error(&mut rng(5), &mut long);
        error(&mut rng(5), &mut short);
        assert_eq!(long[..1537], short);
        ternary(&mut rng(5), &mut long);
        ternary(&mut rng(5), &mut short);
        assert_eq!(long[..1537], short);
    }
}
