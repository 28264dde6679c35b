//! ChaCha20, sixteen blocks at a time (AVX-512): word i of the state of every block in one register.
#![expect(unsafe_code, reason = "vector instructions, in functions that are called once they were detected")]

use std::arch::x86_64::*;

/// Bytes of sixteen blocks.
pub(in crate::math) const BYTES: usize = 64 * BLOCKS as usize;

/// Blocks at a time.
pub(in crate::math) const BLOCKS: u64 = 16;

/// Says whether the machine has AVX-512 F.
pub(in crate::math) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Writes sixteen blocks from block `first` on; the state is the constants, the key, the block's number as 64 bits and
/// the stream's as 64 bits.
///
/// # Panics
/// When the machine lacks AVX-512.
pub(in crate::math) fn blocks(key: &[u32; 8], stream: u64, first: u64, out: &mut [u8; BYTES]) {
    assert!(is_available(), "this machine lacks AVX-512");
    // SAFETY: checked above.
    unsafe { sixteen_blocks(key, stream, first, out) }
}

#[target_feature(enable = "avx512f")]
fn sixteen_blocks(key: &[u32; 8], stream: u64, first: u64, out: &mut [u8; BYTES]) {
    let mut counters = [[0u32; 16]; 2];
    for lane in 0..16 {
        let block = first.wrapping_add(lane as u64);
        (counters[0][lane], counters[1][lane]) = (block as u32, (block >> 32) as u32);
    }
    let constants = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let mut initial = [_mm512_setzero_si512(); 16];
    for i in 0..4 {
        initial[i] = _mm512_set1_epi32(constants[i]);
    }
    for i in 0..8 {
        initial[4 + i] = _mm512_set1_epi32(key[i] as i32);
    }
    for i in 0..2 {
        // SAFETY: sixteen words are 64 bytes.
        initial[12 + i] = unsafe { _mm512_loadu_si512(counters[i].as_ptr().cast()) };
        initial[14 + i] = _mm512_set1_epi32((stream >> (32 * i)) as i32);
    }
    let mut state = initial;
    for _ in 0..10 {
        for column in 0..4 {
            quarter_round(&mut state, [column, 4 + column, 8 + column, 12 + column]);
        }
        for i in 0..4 {
            quarter_round(&mut state, [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4]);
        }
    }
    for i in 0..16 {
        state[i] = _mm512_add_epi32(state[i], initial[i]);
    }
    for (block, out) in transpose(state).into_iter().zip(out.as_chunks_mut::<64>().0) {
        // SAFETY: `out` has 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), block) };
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn quarter_round(state: &mut [__m512i; 16], [a, b, c, d]: [usize; 4]) {
    state[a] = _mm512_add_epi32(state[a], state[b]);
    state[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(state[d], state[a]));
    state[c] = _mm512_add_epi32(state[c], state[d]);
    state[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(state[b], state[c]));
    state[a] = _mm512_add_epi32(state[a], state[b]);
    state[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(state[d], state[a]));
    state[c] = _mm512_add_epi32(state[c], state[d]);
    state[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(state[b], state[c]));
}

/// Turns rows into columns: words of 32 bits, then pairs, then fours of them, then eights change places.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for i in (0..16).step_by(2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    // fours[4 g + c]: of each 128 bits k, rows 4 g to 4 g + 3 of column 4 k + c.
    let mut fours = pairs;
    for g in (0..16).step_by(4) {
        fours[g] = _mm512_unpacklo_epi64(pairs[g], pairs[g + 2]);
        fours[g + 1] = _mm512_unpackhi_epi64(pairs[g], pairs[g + 2]);
        fours[g + 2] = _mm512_unpacklo_epi64(pairs[g + 1], pairs[g + 3]);
        fours[g + 3] = _mm512_unpackhi_epi64(pairs[g + 1], pairs[g + 3]);
    }
    let mut columns = fours;
    for c in 0..4 {
        let [a, b, c_, d] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
        // Columns c and 4 + c of rows 0 to 7, then 8 + c and 12 + c; and so for rows 8 to 15.
        let (low, high) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
        let (low_, high_) = (_mm512_shuffle_i64x2::<0x44>(c_, d), _mm512_shuffle_i64x2::<0xee>(c_, d));
        columns[c] = _mm512_shuffle_i64x2::<0x88>(low, low_);
        columns[4 + c] = _mm512_shuffle_i64x2::<0xdd>(low, low_);
        columns[8 + c] = _mm512_shuffle_i64x2::<0x88>(high, high_);
        columns[12 + c] = _mm512_shuffle_i64x2::<0xdd>(high, high_);
    }
    columns
}
