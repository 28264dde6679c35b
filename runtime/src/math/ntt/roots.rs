//! Roots of unity and the order the transform uses them in.

use super::Modulus;

/// Finds the smallest primitive 2N-th root of unity modulo the prime.
///
/// `None` unless N is a power of two, at least 4, and 2N divides p - 1.
pub fn smallest_primitive_root(ring_degree: usize, modulus: Modulus) -> Option<u64> {
    let order = 2 * ring_degree as u64;
    if ring_degree < 4 || !ring_degree.is_power_of_two() || !(modulus.value() - 1).is_multiple_of(order) {
        return None;
    }
    let minus_one = modulus.value() - 1;
    let cofactor = (modulus.value() - 1) / order;
    // Half of all bases give a root of exact order 2N; a prime without one among the first 1000 does not exist here,
    // and a composite "prime" ends the search instead of looping.
    let root = (2..1000.min(modulus.value()))
        .map(|base| modulus.pow(base, cofactor))
        .find(|&root| modulus.pow(root, ring_degree as u64) == minus_one)?;
    // The others are its odd powers.
    let square = modulus.mul(root, root);
    std::iter::successors(Some(root), |&power| Some(modulus.mul(power, square))).take(ring_degree).min()
}

/// Lists the powers root^bitrev(k) for k in 0..N, bitrev on log2(N) bits.
pub fn bit_reversed_powers(ring_degree: usize, modulus: Modulus, root: u64) -> Vec<u64> {
    let bits = ring_degree.trailing_zeros();
    let mut powers = vec![0; ring_degree];
    let mut power = 1;
    for exponent in 0..ring_degree {
        powers[exponent.reverse_bits() >> (usize::BITS - bits)] = power;
        power = modulus.mul(power, root);
    }
    powers
}
