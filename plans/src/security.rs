//! The largest modulus that each ring degree may have.

/// Where the table comes from, as plans and reports cite it.
pub const SOURCE: &str = "Bossuat et al., Security Guidelines for Implementing Homomorphic Encryption, ePrint 2024/463";

/// Bits of classical security that the table stands for.
pub const SECURITY_BITS: u32 = 128;

/// Ring degree and largest log2 of the whole modulus, special prime included, for 128-bit classical security with a
/// uniform ternary secret and an error of standard deviation 3.19 or more.
const TABLE: [(usize, u32); 6] = [(1024, 26), (2048, 53), (4096, 106), (8192, 214), (16384, 430), (32768, 868)];

/// The ring degrees that the table covers, smallest first.
pub fn ring_degrees() -> impl Iterator<Item = usize> {
    TABLE.iter().map(|&(ring_degree, _)| ring_degree)
}

/// The largest log2 of the whole modulus at `ring_degree`; None where the table has no entry.
pub fn largest_log2_modulus(ring_degree: usize) -> Option<u32> {
    TABLE.iter().find(|&&(degree, _)| degree == ring_degree).map(|&(_, bits)| bits)
}
