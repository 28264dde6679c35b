//! Rejection and counting of bits, in registers (AVX-512 with VBMI and VPOPCNTDQ).
#![expect(unsafe_code, reason = "vector instructions, in functions that are called once they were detected")]

use std::arch::x86_64::*;

/// Says whether the machine has what [`accept`] and [`count`] use.
pub(in crate::math) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// Writes the candidates below `bound` to the front of `out`, sixteen at a time, after cutting each to `mask`.
///
/// Returns how many candidates were read, a multiple of 16, and how many of them written. Whatever stands behind those
/// written may have been overwritten.
///
/// # Panics
/// When the machine lacks the instructions, or there are more candidates than places.
pub(in crate::math) fn accept(candidates: &[[u8; 4]], mask: u32, bound: u32, out: &mut [u64]) -> (usize, usize) {
    assert!(is_available(), "this machine lacks AVX-512 VBMI or VPOPCNTDQ");
    assert!(candidates.len() <= out.len(), "there is a place for each candidate");
    // SAFETY: checked above.
    unsafe { accept_sixteens(candidates, mask, bound, out) }
}

#[target_feature(enable = "avx512f")]
fn accept_sixteens(candidates: &[[u8; 4]], mask: u32, bound: u32, out: &mut [u64]) -> (usize, usize) {
    let (mask, bound) = (_mm512_set1_epi32(mask as i32), _mm512_set1_epi32(bound as i32));
    let mut written = 0;
    for sixteen in candidates.chunks_exact(16) {
        // As many places are left as candidates, at least.
        let places = &mut out[written..][..16];
        // SAFETY: sixteen candidates are 64 bytes; `places` are 128.
        unsafe {
            let words = _mm512_and_si512(_mm512_loadu_si512(sixteen.as_ptr().cast()), mask);
            let accepted = _mm512_cmplt_epu32_mask(words, bound);
            let together = _mm512_maskz_compress_epi32(accepted, words);
            let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(together));
            let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(together));
            _mm512_storeu_si512(places.as_mut_ptr().cast(), low);
            _mm512_storeu_si512(places[8..].as_mut_ptr().cast(), high);
            written += accepted.count_ones() as usize;
        }
    }
    (candidates.len() / 16 * 16, written)
}

/// As [`accept`], eight candidates of 64 bits at a time.
///
/// # Panics
/// As there.
pub(in crate::math) fn accept_wide(candidates: &[[u8; 8]], mask: u64, bound: u64, out: &mut [u64]) -> (usize, usize) {
    assert!(is_available(), "this machine lacks AVX-512 VBMI or VPOPCNTDQ");
    assert!(candidates.len() <= out.len(), "there is a place for each candidate");
    // SAFETY: checked above.
    unsafe { accept_eights(candidates, mask, bound, out) }
}

#[target_feature(enable = "avx512f")]
fn accept_eights(candidates: &[[u8; 8]], mask: u64, bound: u64, out: &mut [u64]) -> (usize, usize) {
    let (mask, bound) = (_mm512_set1_epi64(mask as i64), _mm512_set1_epi64(bound as i64));
    let mut written = 0;
    for eight in candidates.chunks_exact(8) {
        // As many places are left as candidates, at least.
        let places = &mut out[written..][..8];
        // SAFETY: eight candidates are 64 bytes, and so are `places`.
        unsafe {
            let words = _mm512_and_si512(_mm512_loadu_si512(eight.as_ptr().cast()), mask);
            let accepted = _mm512_cmplt_epu64_mask(words, bound);
            _mm512_storeu_si512(places.as_mut_ptr().cast(), _mm512_maskz_compress_epi64(accepted, words));
            written += accepted.count_ones() as usize;
        }
    }
    (candidates.len() / 8 * 8, written)
}

/// Turns pairs of words (u, v) into three values each: the ones among the low 42 bits of u, among those of v, and among
/// bits 42 to 62 of both, less 21. Four pairs at a time, while 16 places are left; returns how many pairs.
///
/// # Panics
/// When the machine lacks the instructions.
pub(in crate::math) fn count(pairs: &[[u8; 16]], out: &mut [i8]) -> usize {
    assert!(is_available(), "this machine lacks AVX-512 VBMI or VPOPCNTDQ");
    // SAFETY: checked above.
    unsafe { count_fours(pairs, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq")]
fn count_fours(pairs: &[[u8; 16]], out: &mut [i8]) -> usize {
    let (low, high) = (_mm512_set1_epi64((1 << 42) - 1), _mm512_set1_epi64((1 << 21) - 1));
    // Of each pair, the first byte of either low count, and the second of the sum.
    let mut indices = [0u8; 64];
    for (i, three) in indices[..12].chunks_exact_mut(3).enumerate() {
        let first = 16 * i as u8;
        three.copy_from_slice(&[first, first + 8, 64 + first + 1]);
    }
    // SAFETY: an array of 64 bytes.
    let indices = unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) };
    let centre = _mm_set1_epi8(21);
    let (mut rest, mut done) = (out, 0);
    for four in pairs.chunks_exact(4) {
        let Some(places) = rest.first_chunk_mut::<16>() else { break };
        // SAFETY: four pairs are 64 bytes; `places` are 16.
        unsafe {
            let words = _mm512_loadu_si512(four.as_ptr().cast());
            let lows = _mm512_popcnt_epi64(_mm512_and_si512(words, low));
            let highs = _mm512_popcnt_epi64(_mm512_and_si512(_mm512_srli_epi64::<42>(words), high));
            // In the second byte; of both words of a pair, at most 42.
            let sums = _mm512_slli_epi64::<8>(_mm512_add_epi64(highs, _mm512_shuffle_epi32::<0b01_00_11_10>(highs)));
            let values = _mm512_permutex2var_epi8(lows, indices, sums);
            let values = _mm_sub_epi8(_mm512_castsi512_si128(values), centre);
            _mm_storeu_si128(places.as_mut_ptr().cast(), values);
        }
        rest = &mut rest[12..];
        done += 4;
    }
    done
}
