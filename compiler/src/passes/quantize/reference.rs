//! What the float network computes on the calibration inputs: the target of every decision.

use std::borrow::Cow;

use rayon::prelude::*;

use super::calibration::Calibration;
use super::walk::Walk;
use crate::error::Error;
use crate::graph::Op;

/// Outputs of the float network, and means of its linear layers.
pub(super) struct Reference {
    /// The network's output, one a calibration input.
    pub(super) outputs: Vec<Vec<f32>>,
    /// By calibration input, then by node: the mean of each output channel; empty for nodes that are not linear.
    channel_means: Vec<Vec<Vec<f64>>>,
}

impl Reference {
    /// # Errors
    /// [`Error::NotFinite`] if a linear layer overflows, or holds a weight that is no number.
    pub(super) fn compute(walk: &Walk, calibration: &Calibration) -> Result<Reference, Error> {
        let runs: Vec<(Vec<f32>, Vec<Vec<f64>>)> = calibration.inputs.par_iter().map(|x| run(walk, x)).collect();
        let (outputs, channel_means): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        for (index, node) in walk.nodes.iter().enumerate() {
            let Op::Linear { operator, weights, bias } = &node.op else { continue };
            let means = channel_means.iter().flat_map(|by_node: &Vec<Vec<f64>>| &by_node[index]);
            if !means.into_iter().all(|mean| mean.is_finite()) || !weights.iter().chain(bias).all(|w| w.is_finite()) {
                return Err(Error::NotFinite { node: node.name.clone(), kind: operator.kind().into() });
            }
        }
        Ok(Reference { outputs, channel_means })
    }

    /// Mean of each output channel of node `index` over the given inputs.
    pub(super) fn means(&self, index: usize, images: &[usize]) -> Vec<f64> {
        mean_rows(images.iter().map(|&image| &self.channel_means[image][index]))
    }
}

fn run(walk: &Walk, x: &[f32]) -> (Vec<f32>, Vec<Vec<f64>>) {
    let mut means = vec![Vec::new(); walk.nodes.len()];
    let output = walk.finish(0, walk.start(Cow::Borrowed(x)), |index, value| {
        if let Op::Linear { operator, .. } = &walk.nodes[index].op {
            means[index] = channel_means(value.iter().map(|&y| f64::from(y)), value.len() / operator.output_channels());
        }
    });
    (output, means)
}

/// Mean of each channel of one tensor with `cells` numbers a channel, added up in order.
pub(super) fn channel_means(values: impl Iterator<Item = f64>, cells: usize) -> Vec<f64> {
    let mut means = Vec::new();
    for (position, value) in values.enumerate() {
        if position % cells == 0 {
            means.push(0.0);
        }
        *means.last_mut().expect("the first cell of a channel pushes") += value;
    }
    means.iter_mut().for_each(|sum| *sum /= cells as f64);
    means
}

/// Mean of rows of equal length, added up in the order given, so that no thread has a say in the rounding.
pub(super) fn mean_rows<'a>(rows: impl ExactSizeIterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    let count = rows.len() as f64;
    let mut sums = Vec::new();
    for row in rows {
        sums.resize(row.len(), 0.0);
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sums.iter_mut().for_each(|sum| *sum /= count);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_taken_per_channel_then_over_inputs() {
        let first = channel_means([1.0, 2.0, 3.0, 10.0, 20.0, 30.0].into_iter(), 3);
        assert_eq!(first, [2.0, 20.0]);
        let second = channel_means([0.0, 0.0, 0.0, 1.0, 1.0, 1.0].into_iter(), 3);
        assert_eq!(mean_rows([first, second].iter()), [1.0, 10.5]);
    }
}
