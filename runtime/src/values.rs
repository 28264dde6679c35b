//! The tensors that the client holds in the clear while a plan is carried out.

use std::collections::BTreeMap;

use chococ_plans::eval::{self, Operand};
use chococ_plans::network::{ClientStep, ValueId};
use chococ_plans::plan::{Plan, Stage};

use crate::error::Error;

/// Tensors by value, each with its shape, kept until nothing more reads them.
pub struct Values {
    tensors: BTreeMap<ValueId, (Vec<usize>, Vec<f32>)>,
    /// How many more times each value is read; the answer counts as read once more at the end.
    reads: BTreeMap<ValueId, usize>,
}

impl Values {
    /// Starts from an input.
    ///
    /// # Errors
    /// [`Error::InputLength`] and [`Error::InputNotFinite`].
    pub fn new(plan: &Plan, input: &[f32]) -> Result<Values, Error> {
        let shape = plan.input_shape.clone();
        if input.len() != shape.iter().product::<usize>() {
            return Err(Error::InputLength { found: input.len(), shape });
        }
        if let Some(index) = input.iter().position(|value| !value.is_finite()) {
            return Err(Error::InputNotFinite { index, value: input[index] });
        }
        let mut reads = BTreeMap::from([(plan.output, 1)]);
        for stage in &plan.stages {
            let read: Vec<ValueId> = match stage {
                Stage::Client(steps) => steps.iter().flat_map(|step| step.inputs.iter().copied()).collect(),
                Stage::Server(server) => vec![server.layer.input],
            };
            read.into_iter().for_each(|value| *reads.entry(value).or_default() += 1);
        }
        let mut values = Values { tensors: BTreeMap::new(), reads };
        values.define(ValueId(0), shape, input.to_vec());
        Ok(values)
    }

    /// Defines a value; it is dropped at once if nothing reads it.
    pub fn define(&mut self, value: ValueId, shape: Vec<usize>, tensor: Vec<f32>) {
        if self.reads.contains_key(&value) {
            self.tensors.insert(value, (shape, tensor));
        }
    }

    /// Reads a value, with its shape; the last reader takes it away.
    pub fn read(&mut self, value: ValueId) -> (Vec<usize>, Vec<f32>) {
        let left = self.reads.get_mut(&value).expect("every reader was counted");
        *left -= 1;
        let tensor = if *left == 0 { self.tensors.remove(&value) } else { self.tensors.get(&value).cloned() };
        tensor.expect("a checked plan defines a value before it reads it")
    }

    /// Carries out one step of a client stage.
    pub fn take_step(&mut self, step: &ClientStep) {
        let read: Vec<(Vec<usize>, Vec<f32>)> = step.inputs.iter().map(|&input| self.read(input)).collect();
        let operands = read.iter().map(|(shape, numbers)| Operand { shape, numbers });
        let result = eval::client(&step.op, &operands.collect::<Vec<_>>(), &step.shape);
        self.define(step.output, step.shape.clone(), result);
    }
}
