//! The stages as a graph for Graphviz: the client's rounded, the server's grey, shapes and bytes on the edges.

use std::fmt::Write;

use chococ_plans::check::CheckedPlan;
use chococ_plans::plan::Stage;

use crate::inspect::summary::computes;
use crate::inspect::table::kilobytes;

/// The graph.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let mut text = String::from("digraph plan {\n  node [shape = box, fontname = \"sans-serif\"];\n");
    let mut line = |content: String| writeln!(text, "  {content}").expect("writing to a string never fails");
    line("input [label = \"input\", style = rounded];".to_owned());
    // The node drawn last, the shape that leaves it, and the bytes that carry it if the server sends them.
    let mut last = ("input".to_owned(), plan.input_shape.clone(), None);
    for (index, stage) in plan.stages.iter().enumerate() {
        let node = format!("stage{index}");
        match stage {
            Stage::Client(steps) => {
                let kinds: Vec<String> =
                    steps.iter().map(|step| format!("{} {:?}", step.op.kind(), step.shape)).collect();
                line(format!("{node} [label = \"{}\", style = rounded];", kinds.join("\\n")));
                line(edge(&last.0, &node, &last.1, last.2));
                let shape = steps.last().map_or(last.1, |step| step.shape.clone());
                last = (node, shape, None);
            }
            Stage::Server(server) => {
                if last.2.is_some() {
                    // Two server stages in a row: the client decrypts, quantises and encrypts in between.
                    let client = format!("client{index}");
                    line(format!("{client} [label = \"quantise\", style = rounded];"));
                    line(edge(&last.0, &client, &last.1, last.2));
                    last.0 = client;
                }
                let (operator, cost) = (&server.layer.operator, &server.cost);
                let label = format!("{}\\n{}", escaped(&server.layer.name), computes(operator));
                line(format!("{node} [label = \"{label}\", style = filled, fillcolor = lightgrey];"));
                line(edge(&last.0, &node, &operator.input_shape(), Some(cost.bytes_up)));
                last = (node, operator.output_shape(), Some(cost.bytes_down));
            }
        }
    }
    line("output [label = \"answer\", style = rounded];".to_owned());
    line(edge(&last.0, "output", &last.1, last.2));
    text + "}\n"
}

/// An edge with the shape that passes along it, and the bytes where it crosses the wire.
fn edge(from: &str, to: &str, shape: &[usize], bytes: Option<usize>) -> String {
    let bytes = bytes.map_or(String::new(), |bytes| format!("\\n{} kB", kilobytes(bytes)));
    format!("{from} -> {to} [label = \"{shape:?}{bytes}\"];")
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_a_label() {
        assert_eq!(escaped(r#"a"b\"#), r#"a\"b\\"#);
    }
}
