//! Sums of products of ciphertexts and plaintexts: where a server spends its time.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::evaluate::{add_assign, mul_plain_assign};
use super::multiplicand::Multiplicand;

/// Multiplies each ciphertext with its plaintext and sums: all terms are read once, and reduced once.
///
/// # Panics
/// When there are no terms, or levels differ.
pub fn inner_product(context: &Context, terms: &[(&Ciphertext, &Multiplicand)]) -> Ciphertext {
    let level = terms.first().expect("a sum has terms").0.level();
    let mut sum = Ciphertext::zero(context, level);
    for (ciphertext, multiplicand) in terms {
        let mut product = (*ciphertext).clone();
        mul_plain_assign(context, &mut product, multiplicand);
        add_assign(context, &mut sum, &product);
    }
    sum
}
