//! Numbers of fewer than 64 bits as bytes without gaps, by permutations of bytes (AVX-512 VBMI).
//!
//! Eight numbers of w bits fill w bytes exactly, so that every eight lie alike: number i begins at bit i w, in byte
//! floor(i w / 8), and seven bits later at most its last bits follow.
#![expect(unsafe_code, reason = "vector instructions, in functions that are called once they were detected")]

use std::arch::x86_64::*;

/// Widths that eight bytes hold from any bit of the first one on; from 8 bits on, one number in two shares no byte.
const WIDTHS: std::ops::RangeInclusive<u32> = 8..=57;

/// Says whether numbers of `width` bits can be moved by [`pack`] and [`unpack`].
pub(in crate::math) fn is_available(width: u32) -> bool {
    WIDTHS.contains(&width)
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
}

/// Packs numbers eight at a time, as many as fit together with the bytes that a store touches; returns how many.
///
/// # Panics
/// When [`is_available`] says no.
pub(in crate::math) fn pack(words: &[u64], width: u32, bytes: &mut [u8]) -> usize {
    assert!(is_available(width), "this machine lacks AVX-512 VBMI, or the width is out of range");
    // SAFETY: checked above.
    unsafe { pack_eights(words, width, bytes) }
}

/// Unpacks numbers eight at a time; returns how many, and the largest.
///
/// # Panics
/// When [`is_available`] says no, or `bytes` are fewer than the whole eights of `words` fill.
pub(in crate::math) fn unpack(bytes: &[u8], width: u32, words: &mut [u64]) -> (usize, u64) {
    assert!(is_available(width), "this machine lacks AVX-512 VBMI, or the width is out of range");
    // SAFETY: checked above.
    unsafe { unpack_eights(bytes, width, words) }
}

/// The bit of its first byte at which each of eight numbers begins.
#[target_feature(enable = "avx512f")]
fn first_bits(width: u32) -> __m512i {
    let bit = |i: u32| i64::from(i * width % 8);
    _mm512_setr_epi64(bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7))
}

#[target_feature(enable = "avx512f,avx512vbmi")]
fn pack_eights(words: &[u64], width: u32, bytes: &mut [u8]) -> usize {
    // Byte b of the result, from number i: the byte of the lane that holds it, shifted to its first bit.
    let (mut indices, mut masks) = ([[0u8; 64]; 2], [0u64; 2]);
    for i in 0..8 {
        let first = i * width as usize / 8;
        let last = ((i + 1) * width as usize - 1) / 8;
        for byte in first..=last {
            indices[i % 2][byte] = (8 * i + byte - first) as u8;
            masks[i % 2] |= 1 << byte;
        }
    }
    let shifts = first_bits(width);
    let (step, mut done) = (width as usize, 0);
    // SAFETY: arrays of 64 bytes.
    let [evens, odds] = indices.map(|indices| unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) });
    let mut rest = bytes;
    for eight in words.chunks_exact(8) {
        let Some(whole) = rest.first_chunk_mut::<64>() else { break };
        // SAFETY: eight words are 64 bytes, as many as `whole` has.
        unsafe {
            let lanes = _mm512_sllv_epi64(_mm512_loadu_si512(eight.as_ptr().cast()), shifts);
            let even = _mm512_maskz_permutexvar_epi8(masks[0], evens, lanes);
            let odd = _mm512_maskz_permutexvar_epi8(masks[1], odds, lanes);
            _mm512_storeu_si512(whole.as_mut_ptr().cast(), _mm512_or_si512(even, odd));
        }
        rest = &mut rest[step..];
        done += 8;
    }
    done
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack_eights(bytes: &[u8], width: u32, words: &mut [u64]) -> (usize, u64) {
    let step = width as usize;
    let mut indices = [0u8; 64];
    for (i, lane) in indices.chunks_exact_mut(8).enumerate() {
        // Past the last byte of eight numbers stands nothing that the mask lets through.
        lane.iter_mut().zip(i * step / 8..).for_each(|(index, byte)| *index = byte.min(63) as u8);
    }
    let (shifts, mask) = (first_bits(width), _mm512_set1_epi64((1 << width) - 1));
    // SAFETY: an array of 64 bytes.
    let indices = unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) };
    let mut largest = _mm512_setzero_si512();
    let (groups, loaded) = (words.len() / 8, u64::MAX >> (64 - step));
    assert!(bytes.len() >= groups * step, "eight numbers of w bits fill w bytes");
    for (eight, from) in words.chunks_exact_mut(8).zip(bytes.chunks_exact(step)) {
        // SAFETY: no byte is loaded but those of `from`; eight words are 64 bytes.
        unsafe {
            let packed = _mm512_maskz_loadu_epi8(loaded, from.as_ptr().cast());
            let lanes = _mm512_srlv_epi64(_mm512_permutexvar_epi8(indices, packed), shifts);
            let numbers = _mm512_and_si512(lanes, mask);
            largest = _mm512_max_epu64(largest, numbers);
            _mm512_storeu_si512(eight.as_mut_ptr().cast(), numbers);
        }
    }
    (8 * groups, _mm512_reduce_max_epu64(largest))
}
