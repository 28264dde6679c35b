//! Everything about each stage, a row each.

use chococ_plans::check::CheckedPlan;
use chococ_plans::params::Parameters;

use crate::inspect::summary::computes;
use crate::inspect::table::{kilobytes, table};

/// log2 of each ciphertext prime, those that a reply keeps in front of the slash, and the special prime.
fn moduli(parameters: &Parameters) -> String {
    let bits = |prime: &u64| format!("{:.1}", (*prime as f64).log2());
    let (kept, dropped) = parameters.ciphertext_primes.split_at(parameters.reply_primes);
    let list = |primes: &[u64]| primes.iter().map(bits).collect::<Vec<_>>().join("+");
    let mut text = list(kept);
    if !dropped.is_empty() {
        text += &format!(" / {}", list(dropped));
    }
    if let Some(special) = &parameters.key_switching_prime {
        text += &format!(" (+{})", bits(special));
    }
    text
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
        "t",
        "up",
        "down",
        "rotations",
        "products",
        "budget",
        "won against",
    ]);
    for stage in checked.server_stages() {
        let (cost, layout) = (&stage.stage.cost, stage.layout);
        let masks = match cost.mask_products {
            0 => String::new(),
            masks => format!(" + {masks} masks"),
        };
        rows.add_row([
            stage.stage.layer.name.clone(),
            computes(&stage.stage.layer.operator),
            format!("{}\nblocks of {}", stage.stage.packing, layout.grid.block),
            stage.parameters.ring_degree.to_string(),
            moduli(stage.parameters),
            stage.parameters.plaintext_modulus.to_string(),
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
         log2 q: primes that a reply keeps / primes that it drops (+ the special prime of key switching)\n\
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
