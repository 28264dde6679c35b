//! tract's part: from the protobuf to a graph with every shape known and every constant computed.
//!
//! The typed graph is taken as it is, with constants propagated. Decluttering would turn convolutions into matrix
//! products, drop batch axes and reshape weights: all to be undone before packing.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, TensorProto};
use tract_onnx::prelude::{
    Framework, InferenceModelExt, IntoArcTensor, IntoTValue, TractResult, TypedFact, TypedModel,
};

use super::flow::{self, Flow};

/// Node `i` of the protobuf is called `onnx_i_` before tract sees it, so that what tract makes of it can be traced
/// back, whatever the model calls its nodes.
const PREFIX: &str = "onnx_";

/// Finds the protobuf node that a name, or a message, of tract is about.
pub(super) fn source_node(text: &str) -> Option<usize> {
    let digits = text[text.find(PREFIX)? + PREFIX.len()..].split('_').next()?;
    digits.parse().ok()
}

/// Why tract could not work out the shapes.
pub(super) struct Failure {
    /// The protobuf node it is about, where tract says so.
    pub(super) node: Option<usize>,
    /// What tract says.
    pub(super) message: String,
}

/// Strips a model to what matters to its output, and gives its nodes traceable names.
///
/// Left out: dead nodes, unused initialisers, unused second outputs, declared shapes of inner tensors (they may name
/// the batch axis, which is bound by now), trailing empty inputs (which tract counts as inputs).
pub(super) fn prepare(model: &mut ModelProto, flow: &Flow) {
    let Some(graph) = model.graph.as_mut() else { return };
    let nodes = std::mem::take(&mut graph.node);
    for (index, mut node) in nodes.into_iter().enumerate().filter(|(index, _)| flow.live[*index]) {
        node.name = format!("{PREFIX}{index}_");
        while node.input.last().is_some_and(String::is_empty) {
            node.input.pop();
        }
        // ONNX's zeros are float32, tract's would be float64.
        if node.op_type == "ConstantOfShape" && node.attribute.is_empty() {
            let zero = TensorProto {
                dims: vec![1],
                data_type: DataType::Float as i32,
                float_data: vec![0.0],
                ..TensorProto::default()
            };
            node.attribute.push(AttributeProto {
                name: "value".into(),
                r#type: AttributeType::Tensor as i32,
                t: Some(zero),
                ..AttributeProto::default()
            });
        }
        // How many parts a Split makes follows from how many outputs it has.
        if flow.variable_nodes[index]
            && node.op_type != "Split"
            && node.output.iter().skip(1).all(|output| !flow.used.contains(output))
        {
            node.output.truncate(1);
        }
        graph.node.push(node);
    }
    graph.initializer.retain(|tensor| flow.used.contains(&tensor.name));
    graph.value_info.clear();
}

/// Cuts a prepared model off before the given nodes, so that the shapes of all that comes before can be worked out.
///
/// Returns false if nothing is left.
pub(super) fn cut_before(model: &mut ModelProto, refused: impl Fn(usize) -> bool) -> bool {
    let Some(graph) = model.graph.as_mut() else { return false };
    let mut lost: std::collections::HashSet<String> = Default::default();
    let mut ends: Vec<String> = Vec::new();
    let nodes = std::mem::take(&mut graph.node);
    for node in nodes {
        if source_node(&node.name).is_some_and(&refused) || flow::read(&node).any(|tensor| lost.contains(tensor)) {
            ends.extend(flow::read(&node).map(str::to_string));
            lost.extend(flow::made(&node).map(str::to_string));
        } else {
            graph.node.push(node);
        }
    }
    keep_outputs(graph, ends)
}

/// Makes the tensors among `ends` that the remaining nodes compute the graph's outputs.
fn keep_outputs(graph: &mut GraphProto, mut ends: Vec<String>) -> bool {
    ends.sort_unstable();
    ends.dedup();
    let computed: std::collections::HashSet<&str> = graph.node.iter().flat_map(flow::made).collect();
    let ends = ends.into_iter().filter(|end| computed.contains(end.as_str()));
    let Some(pattern) = graph.output.first().cloned() else { return false };
    let outputs = ends.map(|name| tract_onnx::pb::ValueInfoProto { name, ..pattern.clone() }).collect::<Vec<_>>();
    graph.output = outputs;
    !graph.output.is_empty()
}

/// Works out all shapes and constants of a prepared model.
///
/// tract panics on some malformed models; a panic comes back as a failure, and prints nothing.
pub(super) fn translate(model: &ModelProto) -> Result<TypedModel, Failure> {
    match without_panic(|| typed(model)) {
        Ok(Ok(typed)) => Ok(typed),
        Ok(Err(error)) => {
            let message = error.root_cause().to_string();
            Err(Failure { node: source_node(&format!("{error:#}")), message: plain(&message) })
        }
        Err(message) => Err(Failure { node: None, message: plain(&message) }),
    }
}

fn typed(model: &ModelProto) -> TractResult<TypedModel> {
    let mut typed = tract_onnx::onnx().with_ignore_value_info(true).model_for_proto_model(model)?.into_typed()?;
    typed.prop_consts()?;
    let mut typed = typed.into_compact()?;
    compute_constants(&mut typed)?;
    Ok(typed)
}

/// Computes the constants that tract leaves for later: large ones with several readers.
fn compute_constants(model: &mut TypedModel) -> TractResult<()> {
    for id in model.eval_order()? {
        let node = model.node(id);
        if node.inputs.is_empty() || node.outputs.iter().any(|outlet| outlet.fact.konst.is_some()) {
            continue;
        }
        let constant = |fact: &&TypedFact| fact.konst.clone().map(IntoTValue::into_tvalue);
        let inputs: Option<_> = model.node_input_facts(id)?.iter().map(constant).collect();
        let Some(inputs) = inputs else { continue };
        let Some(results) = node.op().eval_out_of_plan(inputs)? else { continue };
        for (outlet, result) in model.node_mut(id).outputs.iter_mut().zip(results) {
            outlet.fact.konst = Some(result.into_arc_tensor());
        }
    }
    Ok(())
}

/// Shortens a message of tract to its first line, and puts its commonest one in words.
fn plain(message: &str) -> String {
    const LONGEST: usize = 200;
    let line: String = message.lines().next().unwrap_or_default().chars().take(LONGEST).collect();
    let unlike = line.strip_prefix("Impossible to unify ").and_then(|rest| rest.split_once(" with "));
    let bare = |term: &str| {
        let term = term.trim_end_matches('.');
        let inner = ["Val(", "Sym("].iter().find_map(|wrap| term.strip_prefix(wrap)?.strip_suffix(')'));
        inner.unwrap_or(term).to_lowercase()
    };
    unlike.map_or(line.clone(), |(left, right)| format!("{} does not match {}", bare(left), bare(right)))
}

/// Calls `work`; a panic on this thread becomes its message and is not printed.
fn without_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // The hook is the process's. The lock keeps two of these from restoring each other's.
    static HOOK: Mutex<()> = Mutex::new(());
    let guard = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    let this_thread = thread::current().id();
    let previous = Arc::new(panic::take_hook());
    let outer = Arc::clone(&previous);
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() != this_thread {
            outer(info);
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    drop(panic::take_hook());
    if let Some(previous) = Arc::into_inner(previous) {
        panic::set_hook(previous);
    }
    drop(guard);
    result.map_err(|payload| match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast::<&str>().map_or("unknown failure".into(), |message| message.to_string()),
    })
}
