//! Noise budgets, step by step.

use chococ_plans::check::CheckedPlan;
use chococ_plans::params::bits_of;

use crate::inspect::table::table;

/// The rows and their legend.
pub fn show(checked: &CheckedPlan) -> String {
    let mut rows =
        table(&["stage", "log2 q", "request", "reply", "log2 t", "log2 results", "fresh", "evaluated", "in reply"]);
    for stage in checked.server_stages() {
        let budget = &stage.stage.budget;
        rows.add_row([
            stage.stage.layer.name.clone(),
            format!("{:.1}", stage.parameters.keys.log2_q()),
            less(stage.parameters.keys.log2_q().ceil() as u32, stage.parameters.stage.request_dropped_bits),
            less(bits_of(stage.parameters.stage.reply_modulus), stage.parameters.stage.reply_dropped_bits),
            format!("{:.1}", (stage.parameters.stage.plaintext_modulus as f64).log2()),
            format!("{:.1}", (stage.stage.layer.width() as f64).log2()),
            format!("{:.2}", budget.fresh_bits),
            format!("{:.2}", budget.evaluated_bits),
            format!("{:.2}", budget.reply_bits),
        ]);
    }
    format!(
        "{rows}\n\n\
         Budgets in bits, estimated for the worst ciphertext: after encryption with the secret key, after the last\n\
         product, rotation or merge, and after the modulus was switched from q to that of the reply. An inference\n\
         fails with probability below 2^-40 while the last one is not negative. `choco-run` measures beside it.\n\
         request, reply: bits of a coefficient that travels, less the low ones that c0 does without\n"
    )
}

/// Bits of a coefficient, and the low ones that c0 does without.
fn less(bits: u32, dropped: u32) -> String {
    match dropped {
        0 => bits.to_string(),
        dropped => format!("{bits} - {dropped}"),
    }
}
