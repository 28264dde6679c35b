//! Numbers as bits: each at its true width, lowest bits first, without gaps; a list of them ends on a byte.

#[cfg(target_arch = "x86_64")]
use super::lanes::vbmi;

/// Packs words of `width` bits, 1 to 63 (higher bits are 0), into as many bytes as they fill, the last padded with
/// zeros. Up to [`SLACK`] bytes behind them may be overwritten.
///
/// # Panics
/// When there are fewer bytes.
pub fn pack(words: &[u64], width: u32, bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if vbmi::is_available(width) {
        let done = vbmi::pack(words, width, bytes);
        return pack_each(&words[done..], width, &mut bytes[done / 8 * width as usize..]);
    }
    pack_each(words, width, bytes);
}

/// How many bytes behind its own [`pack`] can make use of.
pub const SLACK: usize = 64;

/// As [`pack`], one by one.
fn pack_each(words: &[u64], width: u32, bytes: &mut [u8]) {
    let mut rest = bytes;
    // Bits that wait for their word to fill: `filled` of them, always fewer than 64.
    let (mut waiting, mut filled) = (0u64, 0u32);
    for &word in words {
        waiting |= word << filled;
        filled += width;
        if filled >= u64::BITS {
            let (full, behind) = rest.split_first_chunk_mut().expect("there are bytes for all words");
            *full = waiting.to_le_bytes();
            rest = behind;
            filled -= u64::BITS;
            // What of `word` did not fit: its upper `filled` bits; width - filled is 1 to 63.
            waiting = word >> (width - filled);
        }
    }
    let last = filled.div_ceil(8) as usize;
    rest[..last].copy_from_slice(&waiting.to_le_bytes()[..last]);
}

/// Why bits are not those of a list of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// There are ones behind the last number.
    Padding,
    /// A number is not below the bound.
    Bound,
}

/// Fills `words` from bits that [`pack`] wrote, all of `bytes`; each number must be below `bound`.
///
/// Whatever numbers there are, it takes the same time.
///
/// # Errors
/// [`Misread`]; `words` are of no use then.
pub fn unpack(bytes: &[u8], width: u32, bound: u64, words: &mut [u64]) -> Result<(), Misread> {
    let (mut done, mut largest) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if vbmi::is_available(width) {
        (done, largest) = vbmi::unpack(bytes, width, words);
    }
    let rest = &mut words[done..];
    if !unpack_each(&bytes[done / 8 * width as usize..], width, rest) {
        return Err(Misread::Padding);
    }
    let largest = rest.iter().fold(largest, |largest, &word| largest.max(word));
    if largest < bound { Ok(()) } else { Err(Misread::Bound) }
}

/// Unpacks one by one; false when the padding is not zero.
fn unpack_each(bytes: &[u8], width: u32, words: &mut [u64]) -> bool {
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
    use proptest::prelude::*;

    use super::*;

    /// The same bits, one at a time.
    fn naive(words: &[u64], width: u32) -> Vec<u8> {
        let bits: Vec<u8> = words.iter().flat_map(|w| (0..width).map(move |bit| (w >> bit & 1) as u8)).collect();
        bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| 2 * sum + bit)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn bits_come_back(width in 1u32..64, words in prop::collection::vec(any::<u64>(), 0..150), slack in 0usize..100) {
            let words: Vec<u64> = words.iter().map(|word| word & ((1 << width) - 1)).collect();
            let expected = naive(&words, width);
            for pack in [pack, pack_each] {
                let mut bytes = vec![0x55; expected.len() + slack];
                pack(&words, width, &mut bytes);
                prop_assert_eq!(&bytes[..expected.len()], &expected);
            }
            let mut back = vec![0; words.len()];
            prop_assert!(unpack_each(&expected, width, &mut back));
            prop_assert_eq!(&back, &words);
            back.fill(0);
            let largest = words.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(unpack(&expected, width, largest + 1, &mut back), Ok(()));
            prop_assert_eq!(&back, &words);
            if !words.is_empty() {
                prop_assert_eq!(unpack(&expected, width, largest, &mut back), Err(Misread::Bound));
            }
        }
    }
}
