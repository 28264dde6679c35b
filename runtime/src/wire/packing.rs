//! Lists of numbers in messages, as [bits] and nothing else.

use chococ_plans::cost::packed_bytes;
use chococ_plans::params::bits_of;

use super::header::MessageError;
use crate::math::bits::{self, Misread};
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
        words.extend(take(bytes, ring.ring_degree(), bits_of(modulus.value()), modulus.value(), item)?);
    }
    Ok(Poly::from_words(ring.ring_degree(), words))
}

/// Takes `count` numbers of `width` bits, each below `bound`, off the front of `bytes`, which has at least their length.
pub(super) fn take(
    bytes: &mut &[u8],
    count: usize,
    width: u32,
    bound: u64,
    item: usize,
) -> Result<Vec<u64>, MessageError> {
    let mut words = vec![0; count];
    take_into(bytes, width, bound, item, &mut words)?;
    Ok(words)
}

/// As [`take`], as many as there are `words`, into their places.
pub(super) fn take_into(
    bytes: &mut &[u8],
    width: u32,
    bound: u64,
    item: usize,
    words: &mut [u64],
) -> Result<(), MessageError> {
    let packed =
        bytes.split_off(..packed_bytes(words.len(), width)).expect("the message's length was compared with the plan");
    bits::unpack(packed, width, bound, words).map_err(|misread| match misread {
        Misread::Padding => MessageError::Padding { item },
        Misread::Bound => MessageError::Coefficient { item, bound },
    })
}

/// Appends words of `width` bits, 1 to 63 (higher bits are 0), and pads to a whole byte.
pub(super) fn append(bytes: &mut Vec<u8>, words: &[u64], width: u32) {
    let (begin, length) = (bytes.len(), packed_bytes(words.len(), width));
    bytes.resize(begin + length + bits::SLACK, 0);
    bits::pack(words, width, &mut bytes[begin..]);
    bytes.truncate(begin + length);
}

#[cfg(test)]
mod tests {
    use chococ_plans::primes::ntt_primes_below;

    use super::*;
    use crate::math::poly::Coefficients;

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
