//! Everything about each stage: a row of numbers, and which packing won over which.

use chococ_plans::check::{CheckedPlan, CheckedStage};
use chococ_plans::params::KeyParameters;
use chococ_plans::plan::RunnerUp;

use crate::inspect::summary::computes;
use crate::inspect::table::{kilobytes, narrow_table};

/// log2 of each ciphertext prime, and of the special prime.
fn moduli(keys: &KeyParameters) -> String {
    let bits = |prime: &u64| format!("{:.1}", (*prime as f64).log2());
    let mut text = keys.ciphertext_primes.iter().map(bits).collect::<Vec<_>>().join("+");
    if let Some(special) = &keys.key_switching_prime {
        text += &format!(" (+{})", bits(special));
    }
    text
}

/// The rows, the best packing of either family below each, and the legend.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut rows =
        narrow_table(&["stage", "computes", "N", "log2 q", "t", "up", "down", "rotations", "products", "budget"]);
    let mut packings = Vec::new();
    for CheckedStage { stage, parameters, .. } in checked.server_stages() {
        let cost = &stage.cost;
        let masks = match cost.mask_products {
            0 => String::new(),
            masks => format!(" + {masks} masks"),
        };
        rows.add_row([
            stage.layer.name.clone(),
            computes(&stage.layer.operator),
            parameters.keys.ring_degree.to_string(),
            moduli(&parameters.keys),
            parameters.stage.plaintext_modulus.to_string(),
            format!("{}: {} kB", cost.ciphertexts_up, kilobytes(cost.bytes_up)),
            format!("{}: {} kB", cost.ciphertexts_down, kilobytes(cost.bytes_down)),
            format!("{} + {}", cost.hoisted_rotations, cost.rotations),
            format!("{}{masks}", cost.products),
            format!("{:.1}", stage.budget.reply_bits),
        ]);
        let won = format!("  won   {}: {} kB\n", stage.packing, kilobytes(cost.bytes()));
        packings.push(match &stage.runner_up {
            Some(RunnerUp { packing, ring_degree, bytes }) => {
                format!("{won}  over  {packing}, N = {ring_degree}: {} kB\n", kilobytes(*bytes))
            }
            None => won + "  over  nothing: no other was tried, or none fits\n",
        });
    }
    let text = rows.trim_fmt();
    let (header, lines) = text.split_once('\n').unwrap_or((&text, ""));
    let stages: String = lines.lines().zip(packings).map(|(line, packings)| format!("{line}\n{packings}")).collect();
    let cost = plan.cost();
    format!(
        "{header}\n{stages}\n\
         total        {} ciphertexts and {} kB up, {} ciphertexts and {} kB down; {} + {} rotations, {} products{}\n\
         Galois keys  {} kB: {} keys, in {} key sets, once a session\n\
         memory       {:.1} MB of weights, ready for products, on the server\n\n\
         log2 q: primes of a ciphertext (+ the special prime of key switching); up, down: ciphertexts and bytes\n\
         rotations: of inputs, hoisted, + of sums; budget: estimated, of the reply, in bits\n\
         won, over: the packing that was chosen, and the best one of the other family, if one fits\n",
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
        plan.key_sets.iter().filter(|set| !set.galois.is_empty()).count(),
        cost.server_bytes as f64 / 1e6,
    )
}
