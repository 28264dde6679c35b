//! What is imported computes what tract computes, for every operator and attribute that is supported; the trained
//! networks compute the logits that onnxruntime computes; and what cannot be compiled is refused in clear words.

mod branches;
mod networks;
mod operators;
mod refusals;

use chococ_compiler::graph::Graph;
use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_models::builder::numbers;
use tract_onnx::prelude::*;

/// Runs a model with one input by tract alone, decluttered and optimised.
fn oracle(model: &[u8], input: &[usize], x: &[f32]) -> Vec<f32> {
    // What files declare of inner tensors may name the batch axis, which is 1 here.
    let framework = onnx().with_ignore_value_info(true).with_ignore_output_shapes(true);
    let model = framework.model_for_read(&mut &model[..]).expect("the model parses");
    let model = model.with_input_fact(0, f32::fact(input).into()).expect("the shape fits").into_optimized();
    let runnable = model.expect("tract runs the model").into_runnable().expect("tract runs the model");
    let x = Tensor::from_shape(input, x).expect("numbers for the shape");
    let outputs = runnable.run(tvec!(x.into_tvalue())).expect("tract runs the model");
    outputs[0].try_as_plain_ram().expect("floats").as_slice::<f32>().expect("floats").to_vec()
}

fn assert_close(ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len(), "as many outputs");
    for (place, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "output {place}: {a}, and should be {b}");
    }
}

fn import(model: &[u8]) -> Graph {
    match chococ_compiler::onnx::import(model, &mut Vec::new()) {
        Ok(graph) => graph,
        Err(error) => panic!("{error}"),
    }
}

/// Imports a model of this input shape, and compares its answer with tract's, before and after folding.
fn same_as_tract(model: &[u8], input: &[usize]) -> Graph {
    let graph = import(model);
    let folded = fold_batch_norm(graph.clone());
    for seed in 0..2 {
        let x = numbers(input.iter().product(), seed);
        let expected = oracle(model, input, &x);
        assert_close(&graph.answer(&x), &expected, 1e-4);
        assert_close(&folded.answer(&x), &expected, 1e-4);
    }
    graph
}

fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.order().into_iter().map(|node| graph.nodes[node].op.kind()).collect()
}
