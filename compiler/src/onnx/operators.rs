//! Which ONNX operators are supported, by name alone, and what to use in place of the others.

/// The operators, a line each: name, family, where it runs, and when. A file of its own, so that tests/onnx_nodes.py can
/// read it, too.
const OPERATORS: &str = include_str!("operators.txt");

/// Lists the operators that are supported, by name: each with where it runs, and when.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines().map(|[name, _, place]| (name, place))
}

/// Name, family, and where it runs.
fn lines() -> impl Iterator<Item = [&'static str; 3]> {
    OPERATORS.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        std::array::from_fn(|_| parts.next().expect("each line has three parts"))
    })
}

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
    match lines().find(|[name, ..]| *name == operator) {
        Some([_, "supported", _]) => Family::Supported,
        Some([_, "shapes", _]) => Family::OfShapes,
        Some([_, "joins", _]) => Family::Joins,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_an_operator_and_a_family_once() {
        for (name, _) in operators() {
            assert_ne!(family(name), Family::Unsupported, "{name}");
        }
        assert!(operators().is_sorted_by(|(a, _), (b, _)| a < b), "in order, and none twice");
        assert_eq!(family("Shape"), Family::OfShapes);
        assert_eq!(family("Add"), Family::Joins);
        assert_eq!(family("LSTM"), Family::Unsupported);
    }
}
