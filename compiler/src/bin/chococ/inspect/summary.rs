//! The summary: a plan on one screen.

use chococ_plans::check::CheckedPlan;
use chococ_plans::op::Linear;

use crate::inspect::table::{kilobytes, table};

/// Says what a stage computes, in a few words.
pub fn computes(operator: &Linear) -> String {
    match operator {
        Linear::Conv(conv) => {
            let [channels, height, width] = conv.input;
            let [kernel_height, kernel_width] = conv.kernel;
            let mut text =
                format!("conv {kernel_height}x{kernel_width} {channels}->{} @{height}x{width}", conv.output[0]);
            if conv.strides != [1, 1] {
                text += &format!(" stride {}x{}", conv.strides[0], conv.strides[1]);
            }
            if conv.dilations != [1, 1] {
                text += &format!(" dilation {}x{}", conv.dilations[0], conv.dilations[1]);
            }
            if conv.groups > 1 {
                text += &format!(" {} groups", conv.groups);
            }
            text
        }
        Linear::Dense(dense) => format!("dense {}->{}", dense.inputs, dense.outputs),
    }
}

/// The summary.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut rows = table(&["stage", "computes", "packing", "N", "kB up", "kB down", "budget"]);
    for stage in checked.server_stages() {
        rows.add_row([
            stage.stage.layer.name.clone(),
            computes(&stage.stage.layer.operator),
            stage.layout.packing.alignment.to_string(),
            stage.parameters.ring_degree.to_string(),
            kilobytes(stage.stage.cost.bytes_up),
            kilobytes(stage.stage.cost.bytes_down),
            format!("{:.1} bits", stage.stage.budget.reply_bits),
        ]);
    }
    let (cost, keys) = (plan.cost(), plan.key_sets.iter().map(|set| set.galois.len()).sum::<usize>());
    format!(
        "model     {} (SHA-256 {}...)\n\
         input     {:?}\n\
         quantised {} activation bits, {} weight bits; ranges from {}\n\
         weights   {} (the server's alone)\n\n\
         {rows}\n\n\
         per inference  {} kB: {} up, {} down, in {} round trips\n\
         Galois keys    {} kB: {keys} keys, once a session\n\
         security       {}\n\
         threat model   {}\n",
        plan.model.file,
        plan.model.sha256.chars().take(12).collect::<String>(),
        plan.input_shape,
        plan.quantization.activation_bits,
        plan.quantization.weight_bits,
        plan.quantization.calibration,
        plan.weights.file,
        kilobytes(cost.bytes()),
        kilobytes(cost.bytes_up),
        kilobytes(cost.bytes_down),
        plan.server_stages().count(),
        kilobytes(plan.galois_bytes()),
        indented(&format!("{} bits, classical, by {}", plan.security.bits, plan.security.table)),
        indented(&plan.security.threat_model),
    )
}

/// Breaks a sentence into lines of at most 80 characters, below one another.
fn indented(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("it starts with one line");
        match line.len() + word.len() < 80 {
            true if line.is_empty() => line.push_str(word),
            true => *line += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(15)))
}
