//! Everything about each stage, a row each.

use chococ_plans::check::CheckedPlan;
use chococ_plans::params::Parameters;

use crate::inspect::summary::computes;
use crate::inspect::table::{kilobytes, table};

/// log2 of each ciphertext prime, and of the special prime.
fn moduli(parameters: &Parameters) -> String {
    let bits = |prime: &u64| format!("{:.1}", (*prime as f64).log2());
    let mut text = parameters.keys.ciphertext_primes.iter().map(bits).collect::<Vec<_>>().join("+");
    if let Some(special) = &parameters.keys.key_switching_prime {
        text += &format!(" (+{})", bits(special));
    }
    text
}

/// Bits of a coefficient, and the low ones that c0 does without.
fn less(bits: u32, dropped: u32) -> String {
    match dropped {
        0 => bits.to_string(),
        dropped => format!("{bits} - {dropped}"),
    }
}

/// The rows and their legend.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut rows = table(&[
        "stage",
        "computes",
        "packing",
        "N",
        "log2 q",
        "bits up",
        "bits down",
        "t",
        "up",
        "down",
        "rotations",
        "products",
        "budget",
        "won against",
    ]);
    for stage in checked.server_stages() {
        let cost = &stage.stage.cost;
        let masks = match cost.mask_products {
            0 => String::new(),
            masks => format!(" + {masks} masks"),
        };
        rows.add_row([
            stage.stage.layer.name.clone(),
            computes(&stage.stage.layer.operator),
            stage.stage.packing.to_string(),
            stage.parameters.keys.ring_degree.to_string(),
            moduli(stage.parameters),
            less(stage.parameters.keys.log2_q().ceil() as u32, stage.parameters.stage.request_dropped_bits),
            less(stage.parameters.stage.reply_bits, stage.parameters.stage.reply_dropped_bits),
            stage.parameters.stage.plaintext_modulus.to_string(),
            format!("{}: {} kB", cost.ciphertexts_up, kilobytes(cost.bytes_up)),
            format!("{}: {} kB", cost.ciphertexts_down, kilobytes(cost.bytes_down)),
            format!("{} + {}", cost.hoisted_rotations, cost.rotations),
            format!("{}{masks}", cost.products),
            format!("{:.1} bits", stage.stage.budget.reply_bits),
            stage.stage.runner_up.as_ref().map_or("others cost more or do not fit".to_owned(), |second| {
                format!("{}, N = {}\n{} kB", second.packing, second.ring_degree, kilobytes(second.bytes))
            }),
        ]);
    }
    let cost = plan.cost();
    format!(
        "{rows}\n\n\
         total        {} ciphertexts and {} kB up, {} ciphertexts and {} kB down; {} + {} rotations, {} products{}\n\
         Galois keys  {} kB: {} keys, once a session\n\n\
         log2 q: primes of a ciphertext (+ the special prime of key switching)\n\
         bits up, down: of a coefficient, less those that c0 does without\n\
         up, down: ciphertexts and bytes; rotations: of inputs, hoisted, + of sums; budget: estimated, of the reply\n",
        cost.ciphertexts_up,
        kilobytes(cost.bytes_up),
        cost.ciphertexts_down,
        kilobytes(cost.bytes_down),
        cost.hoisted_rotations,
        cost.rotations,
        cost.products,
        if cost.mask_products == 0 { String::new() } else { format!(", and {} with masks", cost.mask_products) },
        kilobytes(plan.galois_bytes()),
        plan.key_sets.iter().map(|set| set.galois.len()).sum::<usize>(),
    )
}
