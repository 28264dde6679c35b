//! Which ONNX operators are supported, by name alone, and what to use in place of the others.

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
    match operator {
        "Conv"
        | "Gemm"
        | "MatMul"
        | "BatchNormalization"
        | "Relu"
        | "Clip"
        | "MaxPool"
        | "AveragePool"
        | "GlobalAveragePool"
        | "GlobalMaxPool"
        | "ReduceMean"
        | "ReduceMax"
        | "ReduceMin"
        | "ReduceProd"
        | "ReduceSum"
        | "ReduceL1"
        | "ReduceLogSum"
        | "Flatten"
        | "Reshape"
        | "Squeeze"
        | "Unsqueeze"
        | "Transpose"
        | "Dropout"
        | "Identity"
        | "Cast"
        | "Softmax"
        | "LogSoftmax"
        | "Slice"
        | "Split"
        | "Pad"
        | "Resize"
        | "LRN"
        | "DepthToSpace"
        | "SpaceToDepth"
        | "PRelu"
        | "Abs"
        | "Ceil"
        | "Celu"
        | "Elu"
        | "Erf"
        | "Exp"
        | "Floor"
        | "Gelu"
        | "HardSigmoid"
        | "HardSwish"
        | "LeakyRelu"
        | "Log"
        | "Mish"
        | "Neg"
        | "Reciprocal"
        | "Round"
        | "Selu"
        | "Sigmoid"
        | "Sign"
        | "Softplus"
        | "Softsign"
        | "Sqrt"
        | "Swish"
        | "Tanh"
        | "ThresholdedRelu"
        | "Pow"
        | "LayerNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "LpNormalization"
        | "MeanVarianceNormalization"
        | "RMSNormalization"
        | "ReduceL2"
        | "ReduceSumSquare"
        | "ReduceLogSumExp" => Family::Supported,
        "Shape" | "Size" => Family::OfShapes,
        "Add" | "Sub" | "Mul" | "Div" | "Max" | "Min" | "Sum" | "Mean" | "Concat" => Family::Joins,
        _ => Family::Unsupported,
    }
}

/// Says what to use in place of an unsupported operator.
pub(super) fn cure(operator: &str) -> &'static str {
    match operator {
        "Sin" | "Cos" | "Tan" | "Sinh" | "Cosh" | "Asin" | "Acos" | "Atan" | "Asinh" | "Acosh" | "Atanh" => {
            "use an activation that is supported: Relu, Clip, Sigmoid, Tanh, Gelu, HardSwish and others"
        }
        "ArgMax" | "ArgMin" | "TopK" | "Hardmax" => {
            "leave it out of the model; the client can compute it from the answer"
        }
        "LSTM" | "GRU" | "RNN" => "recurrent networks are not supported; use a convolution over the whole sequence",
        "If" | "Loop" | "Scan" | "SequenceMap" => "export without control flow (tracing in place of scripting)",
        "ConvTranspose" | "Upsample" => "use a network that only shrinks its image (a classifier)",
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
        "Gather" | "Where" => "use Slice, or Mul and Add with constants",
        "LinearClassifier" | "TreeEnsembleClassifier" | "Scaler" => "write it with Gemm and Add",
        _ => "replace it by supported operators; `chococ ops` lists them",
    }
}
