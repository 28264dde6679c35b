//! Writes ONNX models, node by node: those of [`crate::built`], and the small ones that tests of the compiler need.
//!
//! The input is called `x`. Attributes belong to the node added last. Nothing is checked: what makes no sense is
//! written as it is, for tests of how it is refused.
//!
//! ```
//! use chococ_models::builder::{Builder, numbers};
//!
//! let model = Builder::new(&[1, 2, 8, 8])
//!     .weights("w", &[4, 2, 3, 3], &numbers(4 * 2 * 3 * 3, 1))
//!     .node("conv", "Conv", &["x", "w"], "y")
//!     .ints("pads", &[1, 1, 1, 1])
//!     .bytes("y");
//! assert!(model.len() > 4 * 2 * 3 * 3 * 4);
//! ```

use prost::Message;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

use crate::random::Random;

/// A model under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Builder {
    /// The protobuf so far, for what the methods do not offer.
    pub model: ModelProto,
}

impl Builder {
    /// Starts a model, of operator set 13, with one float32 input of this shape.
    pub fn new(input: &[i64]) -> Builder {
        let dims = input.iter().map(|&length| dimension::Value::DimValue(length)).collect();
        Builder::with_dims(dims)
    }

    /// The same with an input whose axes may be symbols.
    pub fn with_dims(dims: Vec<dimension::Value>) -> Builder {
        let opset = OperatorSetIdProto { domain: String::new(), version: 13 };
        let graph = GraphProto { input: vec![value("x", DataType::Float, dims)], ..GraphProto::default() };
        let model =
            ModelProto { ir_version: 8, opset_import: vec![opset], graph: Some(graph), ..ModelProto::default() };
        Builder { model }
    }

    /// Changes the operator set.
    pub fn opset(mut self, version: i64) -> Builder {
        self.model.opset_import[0].version = version;
        self
    }

    /// The graph so far.
    pub fn graph(&mut self) -> &mut GraphProto {
        self.model.graph.as_mut().expect("a builder starts with a graph")
    }

    /// Adds a float32 initialiser.
    pub fn weights(mut self, name: &str, dims: &[i64], values: &[f32]) -> Builder {
        self.graph().initializer.push(TensorProto {
            name: name.into(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            raw_data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ..TensorProto::default()
        });
        self
    }

    /// Adds an int64 initialiser with one axis.
    pub fn integers(mut self, name: &str, values: &[i64]) -> Builder {
        self.graph().initializer.push(TensorProto {
            name: name.into(),
            dims: vec![values.len() as i64],
            data_type: DataType::Int64 as i32,
            int64_data: values.to_vec(),
            ..TensorProto::default()
        });
        self
    }

    /// Adds a node with one output.
    pub fn node(mut self, name: &str, operator: &str, inputs: &[&str], output: &str) -> Builder {
        self.graph().node.push(NodeProto {
            name: name.into(),
            op_type: operator.into(),
            input: inputs.iter().map(|input| input.to_string()).collect(),
            output: vec![output.into()],
            ..NodeProto::default()
        });
        self
    }

    /// Gives the last node an attribute: a list of integers.
    pub fn ints(self, name: &str, ints: &[i64]) -> Builder {
        let ints = ints.to_vec();
        self.attribute(name, AttributeType::Ints, AttributeProto { ints, ..AttributeProto::default() })
    }

    /// Gives the last node an attribute: an integer.
    pub fn int(self, name: &str, i: i64) -> Builder {
        self.attribute(name, AttributeType::Int, AttributeProto { i, ..AttributeProto::default() })
    }

    /// Gives the last node an attribute: a float.
    pub fn float(self, name: &str, f: f32) -> Builder {
        self.attribute(name, AttributeType::Float, AttributeProto { f, ..AttributeProto::default() })
    }

    /// Gives the last node an attribute: a string.
    pub fn string(self, name: &str, text: &str) -> Builder {
        let s = text.as_bytes().to_vec();
        self.attribute(name, AttributeType::String, AttributeProto { s, ..AttributeProto::default() })
    }

    fn attribute(mut self, name: &str, kind: AttributeType, attribute: AttributeProto) -> Builder {
        let attribute = AttributeProto { name: name.into(), r#type: kind as i32, ..attribute };
        self.graph().node.last_mut().expect("an attribute follows its node").attribute.push(attribute);
        self
    }

    /// Declares another output.
    pub fn output(mut self, name: &str) -> Builder {
        self.graph().output.push(ValueInfoProto { name: name.into(), ..ValueInfoProto::default() });
        self
    }

    /// Ends the model: `output` is its answer, beside those declared before.
    pub fn bytes(self, output: &str) -> Vec<u8> {
        self.output(output).model.encode_to_vec()
    }
}

/// Describes a tensor.
pub fn value(name: &str, data_type: DataType, dims: Vec<dimension::Value>) -> ValueInfoProto {
    let dim = dims.into_iter().map(|dim| Dimension { value: Some(dim), ..Dimension::default() }).collect();
    let tensor = type_proto::Tensor { elem_type: data_type as i32, shape: Some(TensorShapeProto { dim }) };
    let kind = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: name.into(), r#type: Some(kind), ..ValueInfoProto::default() }
}

/// Makes numbers that look random, between -1 and 1: the same ones for the same seed.
pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.uniform() * 2.0 - 1.0).collect()
}
