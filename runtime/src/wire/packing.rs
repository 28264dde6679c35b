//! Numbers as bits: each at its true width, lowest bits first, without gaps; a list of them ends on a byte.

use chococ_plans::cost::packed_bytes;
use chococ_plans::params::bits_of;

use super::header::MessageError;
use crate::math::poly::{Poly, Ring};

/// Appends a polynomial over the first primes of `ring`, residue by residue.
pub(super) fn append_poly<F>(bytes: &mut Vec<u8>, ring: &Ring, poly: &Poly<F>) {
    for (residue, modulus) in poly.residues().zip(ring.moduli()) {
        append(bytes, residue, bits_of(modulus.value()));
    }
}

/// Takes a polynomial with `residues` residues off the front of `bytes`, which has at least its length.
///
/// `item` names it in errors.
pub(super) fn take_poly<F>(
    bytes: &mut &[u8],
    ring: &Ring,
    residues: usize,
    item: usize,
) -> Result<Poly<F>, MessageError> {
    let mut words = Vec::with_capacity(ring.ring_degree() * residues);
    for modulus in &ring.moduli()[..residues] {
        let residue = take(bytes, ring.ring_degree(), bits_of(modulus.value()), item)?;
        below(&residue, modulus.value(), item)?;
        words.extend(residue);
    }
    Ok(Poly::from_words(ring.ring_degree(), words))
}

/// Takes `count` numbers of `width` bits off the front of `bytes`, which has at least their length.
pub(super) fn take(bytes: &mut &[u8], count: usize, width: u32, item: usize) -> Result<Vec<u64>, MessageError> {
    let packed =
        bytes.split_off(..packed_bytes(count, width)).expect("the message's length was compared with the plan");
    let mut words = vec![0; count];
    if !unpack(packed, &mut words, width) {
        return Err(MessageError::Padding { item });
    }
    Ok(words)
}

/// Checks that all numbers are below a bound.
pub(super) fn below(words: &[u64], bound: u64, item: usize) -> Result<(), MessageError> {
    // Without a branch in the loop, so that it is as fast as the loads.
    match words.iter().fold(0, |largest: u64, &word| largest.max(word)) >= bound {
        true => Err(MessageError::Coefficient { item, bound }),
        false => Ok(()),
    }
}

/// Appends words of `width` bits, 1 to 63 (higher bits are 0), and pads to a whole byte.
pub(super) fn append(bytes: &mut Vec<u8>, words: &[u64], width: u32) {
    // Bits that wait for their word to fill: `filled` of them, always fewer than 64.
    let (mut waiting, mut filled) = (0u64, 0u32);
    for &word in words {
        waiting |= word << filled;
        filled += width;
        if filled >= u64::BITS {
            bytes.extend(waiting.to_le_bytes());
            filled -= u64::BITS;
            // What of `word` did not fit: its upper `filled` bits; width - filled is 1 to 63.
            waiting = word >> (width - filled);
        }
    }
    bytes.extend(&waiting.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Fills `words` from bits that [`append`] wrote; false when the padding is not zero.
fn unpack(bytes: &[u8], words: &mut [u64], width: u32) -> bool {
    let mask = (1u64 << width) - 1;
    let mut rest = bytes;
    let (mut waiting, mut filled) = (0u64, 0u32);
    for word in words {
        if filled >= width {
            *word = waiting & mask;
            waiting >>= width;
            filled -= width;
            continue;
        }
        let next = next_word(&mut rest);
        *word = (waiting | next << filled) & mask;
        // Of `next`, width - filled bits are used: 1 to 63.
        waiting = next >> (width - filled);
        filled += u64::BITS - width;
    }
    // Zeros that `next_word` made up beyond the end do no harm here.
    waiting == 0 && rest.is_empty()
}

/// Takes eight bytes, or what is left, zeros behind.
fn next_word(rest: &mut &[u8]) -> u64 {
    match rest.split_first_chunk() {
        Some((word, behind)) => {
            *rest = behind;
            u64::from_le_bytes(*word)
        }
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            *rest = &[];
            u64::from_le_bytes(word)
        }
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    use super::*;
    use crate::math::poly::Coefficients;

    /// The same bits, one at a time.
    fn naive(words: &[u64], width: u32) -> Vec<u8> {
        let bits: Vec<u8> = words.iter().flat_map(|w| (0..width).map(move |bit| (w >> bit & 1) as u8)).collect();
        bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| 2 * sum + bit)).collect()
    }

    proptest! {
        #[test]
        fn bits_come_back(width in 1u32..64, words in prop::collection::vec(any::<u64>(), 0..70)) {
            let words: Vec<u64> = words.iter().map(|word| word & ((1 << width) - 1)).collect();
            let mut bytes = vec![0x55];
            append(&mut bytes, &words, width);
            prop_assert_eq!(&bytes[1..], naive(&words, width));
            let mut back = vec![0; words.len()];
            prop_assert!(unpack(&bytes[1..], &mut back, width));
            prop_assert_eq!(back, words);
        }
    }

    #[test]
    fn numbers_at_or_above_the_prime_and_dirty_padding_are_refused() {
        // 8 residues of 13 bits are exactly 13 bytes; 4 of them leave four bits of padding.
        let prime = ntt_primes_below(13, 8).next().expect("97 and others");
        for (degree, padded) in [(8, false), (4, true)] {
            let ring = Ring::new(degree, &[prime]).expect("1 modulo 16");
            let read =
                |bytes: &[u8]| take_poly::<Coefficients>(&mut &*bytes, &ring, 1, 5).map(|poly| poly.words().to_vec());
            let mut words = vec![prime - 1; degree];
            let mut bytes = Vec::new();
            append(&mut bytes, &words, 13);
            assert_eq!(read(&bytes), Ok(words.clone()));
            if padded {
                *bytes.last_mut().expect("seven bytes") |= 0x80;
                assert_eq!(read(&bytes), Err(MessageError::Padding { item: 5 }));
            }
            words[degree - 1] = prime;
            bytes.clear();
            append(&mut bytes, &words, 13);
            assert_eq!(read(&bytes), Err(MessageError::Coefficient { item: 5, bound: prime }));
        }
    }
}
