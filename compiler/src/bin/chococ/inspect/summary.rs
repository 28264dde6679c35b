//! The summary: a plan on one screen.

use chococ_plans::check::CheckedPlan;
use chococ_plans::op::Linear;

use crate::inspect::table::{kilobytes, narrow_table};

/// Says what a stage computes, in a few words.
pub fn computes(operator: &Linear) -> String {
    match operator {
        Linear::Conv(conv) => {
            let [channels, height, width] = conv.input;
            let [kernel_height, kernel_width] = conv.kernel;
            let [depthwise, grouped] = [conv.groups == channels && channels > 1, conv.groups > 1];
            let kind = if depthwise { "depthwise" } else { "conv" };
            let mut text =
                format!("{kind} {kernel_height}x{kernel_width} {channels}->{} @{height}x{width}", conv.output[0]);
            for (word, pair) in [("stride", conv.strides), ("dilation", conv.dilations)] {
                match pair {
                    [1, 1] => {}
                    [vertical, horizontal] if vertical == horizontal => text += &format!(" {word} {vertical}"),
                    [vertical, horizontal] => text += &format!(" {word} {vertical}x{horizontal}"),
                }
            }
            if grouped && !depthwise {
                text += &format!(" {} groups", conv.groups);
            }
            text
        }
        Linear::Dense(dense) => format!("dense {}->{}", dense.inputs, dense.outputs),
    }
}

/// Columns of a screen.
const WIDTH: usize = 80;

/// Characters of a stage's name that are shown; `--stages` shows all of it.
const NAME: usize = 18;

/// The summary.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut rows = narrow_table(&["stage", "computes", "packing", "N", "kB up", "kB down", "budget"]);
    for stage in checked.server_stages() {
        rows.add_row([
            shortened(&stage.stage.layer.name),
            computes(&stage.stage.layer.operator),
            stage.stage.packing.kind().to_string(),
            stage.parameters.keys.ring_degree.to_string(),
            kilobytes(stage.stage.cost.bytes_up),
            kilobytes(stage.stage.cost.bytes_down),
            format!("{:.1}", stage.stage.budget.reply_bits),
        ]);
    }
    let (cost, keys) = (plan.cost(), plan.key_sets.iter().map(|set| set.galois.len()).sum::<usize>());
    let (bytes, up, down) = (kilobytes(cost.bytes()), kilobytes(cost.bytes_up), kilobytes(cost.bytes_down));
    let (trips, quantization, security) = (plan.server_stages().count(), &plan.quantization, &plan.security);
    let bits = format!("{} activation bits, {} weight bits", quantization.activation_bits, quantization.weight_bits);
    let hash: String = plan.model.sha256.chars().take(12).collect();
    [
        entry("model", 10, &format!("{} (SHA-256 {hash}...)", plan.model.file)),
        entry("input", 10, &format!("{:?}", plan.input_shape)),
        entry("quantised", 10, &format!("{bits}; ranges from {}", quantization.calibration)),
        entry("weights", 10, &format!("{} (the server's alone)", plan.weights.file)),
        format!("\n{}\n\n", rows.trim_fmt()),
        entry("per inference", 15, &format!("{bytes} kB: {up} up, {down} down, in {trips} round trips")),
        entry("Galois keys", 15, &format!("{} kB: {keys} keys, once a session", kilobytes(plan.galois_bytes()))),
        entry("noise budgets", 15, "in bits, of the replies, estimated: not below 0"),
        entry("security", 15, &format!("{} bits, classical, by {}", security.bits, security.table)),
        entry("threat model", 15, &security.threat_model),
    ]
    .concat()
}

/// A name, or the end of it, which is where the names that exporters make up differ.
fn shortened(name: &str) -> String {
    match name.chars().count() {
        length if length > NAME => format!("...{}", name.chars().skip(length - (NAME - 3)).collect::<String>()),
        _ => name.to_owned(),
    }
}

/// A label, and a text beside it that is broken into lines where the screen ends.
fn entry(label: &str, indent: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("it starts with one line");
        match indent + line.chars().count() + 1 + word.chars().count() <= WIDTH {
            _ if line.is_empty() => line.push_str(word),
            true => *line += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    format!("{label:indent$}{}\n", lines.join(&format!("\n{:indent$}", "")))
}
