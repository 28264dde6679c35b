//! Which ONNX operators are supported, by name alone, and what to use in place of the others.

/// The operators, a line each with its family; a file of its own, so that tests/onnx_nodes.py can read it, too.
const FAMILIES: &str = include_str!("operators.txt");

/// What kind of operator a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Computed, by the server or by the client, if its attributes and shapes allow.
    Supported,
    /// Gives the shape of a tensor: a constant, since all shapes are fixed.
    OfShapes,
    /// Computed by the client from any number of tensors, constant or not.
    Joins,
    /// Anything else.
    Unsupported,
}

/// Tells the family of an operator of ONNX's own domain.
pub(super) fn family(operator: &str) -> Family {
    let mut families = FAMILIES.lines().filter_map(|line| line.split_once(' '));
    match families.find(|(name, _)| *name == operator) {
        Some((_, "supported")) => Family::Supported,
        Some((_, "shapes")) => Family::OfShapes,
        Some((_, "joins")) => Family::Joins,
        _ => Family::Unsupported,
    }
}

/// Says what to use in place of an unsupported operator.
pub(super) fn cure(operator: &str) -> &'static str {
    match operator {
        "Sigmoid" | "Tanh" | "LeakyRelu" | "PRelu" | "Elu" | "Celu" | "Selu" | "Gelu" | "Erf" | "Mish" | "Swish"
        | "HardSwish" | "HardSigmoid" | "Softplus" | "Softsign" | "ThresholdedRelu" | "Exp" | "Abs" | "Pow"
        | "Sqrt" => {
            "train with Relu or Clip in its place; an activation after the last layer can be left out of the model"
        }
        "LogSoftmax" | "ArgMax" | "ArgMin" | "TopK" | "Hardmax" => {
            "leave it out of the model; the client can compute it from the answer"
        }
        "LSTM" | "GRU" | "RNN" => "recurrent networks are not supported; use a convolution over the whole sequence",
        "If" | "Loop" | "Scan" | "SequenceMap" => "export without control flow (tracing in place of scripting)",
        "LayerNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "LRN"
        | "LpNormalization"
        | "RMSNormalization"
        | "MeanVarianceNormalization" => "train with BatchNormalization, which folds into the layer before",
        "Pad" => "let the convolution pad: put the zeros into its `pads`",
        "ConvTranspose" | "Resize" | "Upsample" | "DepthToSpace" | "SpaceToDepth" => {
            "use a network that only shrinks its image (a classifier)"
        }
        "QuantizeLinear"
        | "DequantizeLinear"
        | "QLinearConv"
        | "QLinearMatMul"
        | "ConvInteger"
        | "MatMulInteger"
        | "DynamicQuantizeLinear" => "give the float network; quantisation is the compiler's work",
        "Attention" | "MultiHeadAttention" | "Einsum" => {
            "attention is not supported; use convolutions and dense layers"
        }
        "LpPool" | "GlobalLpPool" => "use AveragePool or MaxPool",
        "Slice" | "Split" | "Gather" | "Concat" | "Sum" | "Mean" | "Where" => {
            "use a network without parallel branches, or merge them before export"
        }
        "ReduceSum" => "use ReduceMean or GlobalAveragePool, and scale the next layer's weights",
        "LinearClassifier" | "TreeEnsembleClassifier" | "Scaler" => "write it with Gemm and Add",
        _ => "replace it by supported operators (Conv, Gemm, MatMul, BatchNormalization, Relu, Clip, pooling, Softmax)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_an_operator_and_a_family_once() {
        let names: Vec<&str> = FAMILIES.lines().filter_map(|line| Some(line.split_once(' ')?.0)).collect();
        assert_eq!(names.len(), FAMILIES.lines().count());
        for (place, name) in names.iter().enumerate() {
            assert_ne!(family(name), Family::Unsupported, "{name}");
            assert!(!names[..place].contains(name), "{name} is there twice");
        }
        assert_eq!(family("Shape"), Family::OfShapes);
        assert_eq!(family("Add"), Family::Joins);
        assert_eq!(family("LSTM"), Family::Unsupported);
    }
}
