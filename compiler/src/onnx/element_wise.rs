//! What tract makes of operators that it takes apart, normalisations for one: functions of one number, and powers.

use chococ_plans::op::{Arithmetic, ClientOp, Function};
use tract_onnx::prelude::TypedNode;

use super::lower::{Lowering, Value};
use super::reason::Reason;
use crate::graph::Op;

impl Lowering<'_> {
    /// Translates a function that tract makes of another operator, a normalisation for one.
    pub(super) fn element_wise(&mut self, node: &TypedNode, name: &str, view: Vec<usize>) -> Result<Value, Reason> {
        let functions: &[Function] = match name {
            "Abs" => &[Function::Abs],
            "Exp" => &[Function::Exp],
            "Ln" => &[Function::Log],
            "Neg" => &[Function::Neg],
            "Recip" => &[Function::Reciprocal],
            "Rsqrt" => &[Function::Sqrt, Function::Reciprocal],
            "Sigmoid" => &[Function::Sigmoid],
            "Sqrt" => &[Function::Sqrt],
            "Square" => return self.square(node, view),
            "Tanh" => &[Function::Tanh],
            _ => return Err(Reason::Operator),
        };
        self.in_turn(node, functions, &view)
    }

    /// Translates a power with a constant exponent, of those that need no logarithm.
    pub(super) fn power(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let exponent = self.constant(node.inputs[1])?.ok_or(Reason::Operator)?;
        let functions: &[Function] = match exponent.values[..] {
            [2.0] => return self.square(node, view),
            [0.5] => &[Function::Sqrt],
            [-0.5] => &[Function::Sqrt, Function::Reciprocal],
            [-1.0] => &[Function::Reciprocal],
            [1.0] => &[],
            _ => {
                let found = format!("{:?}", exponent.values.first());
                let needed = "only -1, -0.5, 0.5, 1 and 2 are".into();
                return Err(Reason::Attribute { attribute: "exponent".into(), found, needed });
            }
        };
        self.in_turn(node, functions, &view)
    }

    /// Adds functions, one of the other, of the numbers where they are.
    fn in_turn(&mut self, node: &TypedNode, functions: &[Function], view: &[usize]) -> Result<Value, Reason> {
        let value = self.value(node.inputs[0])?;
        if value.view != view {
            return Err(Reason::Operator);
        }
        let shape = self.shape(value.node).to_vec();
        let add = |value, &function: &Function| self.after(node, value, ClientOp::Function(function), shape.clone());
        Ok(functions.iter().fold(value, add))
    }

    fn square(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let reads = node.inputs[0];
        let shape = self.shape(self.value(reads)?.node).to_vec();
        self.add_node(node, &[reads, reads], Op::Client(ClientOp::Combine(Arithmetic::Mul)), shape, view)
    }
}
