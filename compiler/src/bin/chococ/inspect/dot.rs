//! The stages as a graph for Graphviz: the client's on the left, the server's on the right.

use std::fmt::Write;

use chococ_plans::check::CheckedPlan;
use chococ_plans::plan::Stage;

use crate::inspect::summary::computes;
use crate::inspect::table::kilobytes;

/// The graph.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut text = String::from("digraph plan {\n  rankdir = TB;\n  node [shape = box, fontname = \"sans-serif\"];\n");
    let mut line = |content: String| writeln!(text, "  {content}").expect("writing to a string never fails");
    line(format!("input [label = \"input {:?}\", style = rounded];", plan.input_shape));
    let mut last = "input".to_owned();
    // Bytes of the reply that the next stage starts from.
    let mut received: Option<usize> = None;
    for (index, stage) in plan.stages.iter().enumerate() {
        let node = format!("stage{index}");
        let edge = received.take().map_or(String::new(), |bytes| format!(" [label = \"{} kB\"]", kilobytes(bytes)));
        match stage {
            Stage::Client(steps) => {
                let kinds: Vec<String> =
                    steps.iter().map(|step| format!("{} {:?}", step.op.kind(), step.shape)).collect();
                line(format!("{node} [label = \"{}\", style = rounded];", kinds.join("\\n")));
                line(format!("{last} -> {node}{edge};"));
            }
            Stage::Server(server) => {
                let label = format!("{}\\n{}", escaped(&server.layer.name), computes(&server.layer.operator));
                line(format!("{node} [label = \"{label}\", style = filled, fillcolor = lightgrey];"));
                let up = kilobytes(server.cost.bytes_up);
                match edge.is_empty() {
                    true => line(format!("{last} -> {node} [label = \"{up} kB\"];")),
                    // Two server stages in a row: the client lies between them.
                    false => line(format!("{last} -> {node} [label = \"back, and {up} kB\"];")),
                }
                received = Some(server.cost.bytes_down);
            }
        }
        last = node;
    }
    let edge = received.map_or(String::new(), |bytes| format!(" [label = \"{} kB\"]", kilobytes(bytes)));
    line("output [label = \"answer\", style = rounded];".to_owned());
    line(format!("{last} -> output{edge};"));
    text + "}\n"
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}
