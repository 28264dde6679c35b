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

/// Fills `words` from bits that [`pack`] wrote, all of `bytes`; false when the padding is not zero.
pub fn unpack(bytes: &[u8], width: u32, words: &mut [u64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if vbmi::is_available(width) {
        let done = vbmi::unpack(bytes, width, words);
        return unpack_each(&bytes[done / 8 * width as usize..], width, &mut words[done..]);
    }
    unpack_each(bytes, width, words)
}

/// As [`unpack`], one by one.
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
            for unpack in [unpack, unpack_each] {
                let mut back = vec![0; words.len()];
                prop_assert!(unpack(&expected, width, &mut back));
                prop_assert_eq!(&back, &words);
            }
        }
    }
}
