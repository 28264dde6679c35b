//! What the server multiplies and adds: kernels and biases, laid out to match a layout.

use crate::op::Linear;
use crate::packing::coefficients::layout::Layout;

impl Layout {
    /// The kernel polynomial that makes base `base` of a group of outputs from a group of channels: N signed weights.
    ///
    /// None where nothing connects the two, as between groups of a convolution.
    pub fn kernel(&self, output_group: usize, base: usize, channel_group: usize, weights: &[i32]) -> Option<Vec<i32>> {
        let mut kernel = vec![0; self.ring_degree];
        let mut connected = false;
        for (to, stack) in self.stacked(output_group, base) {
            for (from, number) in self.channels(channel_group) {
                for offset in self.windows.offsets() {
                    let Some(index) = self.windows.weight_index(&self.operator, to, from, offset) else { continue };
                    let up = stack * self.packing.interleave;
                    let down = self.tiles.steps(offset) * self.packing.interleave + number;
                    // X^-k = -X^(N-k).
                    match up.checked_sub(down) {
                        Some(exponent) => kernel[exponent] += weights[index],
                        None => kernel[self.ring_degree + up - down] -= weights[index],
                    }
                    connected = true;
                }
            }
        }
        connected.then_some(kernel)
    }

    /// Says whether [`kernel`](Self::kernel) has anything to multiply with.
    pub fn connects(&self, output_group: usize, base: usize, channel_group: usize) -> bool {
        let Linear::Conv(conv) = &self.operator else { return true };
        if conv.groups == 1 {
            return true;
        }
        let phases = self.windows.phase_count();
        let group_of_input = |channel: usize| channel / phases / (conv.input[0] / conv.groups);
        let group_of_output = |channel: usize| channel / (conv.output[0] / conv.groups);
        let first = group_of_input(channel_group * self.packing.interleave);
        let last = group_of_input(self.channels_in.min((channel_group + 1) * self.packing.interleave) - 1);
        self.stacked(output_group, base).any(|(channel, _)| (first..=last).contains(&group_of_output(channel)))
    }

    /// The biases of an output ciphertext, modulo t: N coefficients.
    pub fn bias(&self, output: usize, bias: &[i64], plaintext_modulus: u64) -> Vec<u64> {
        let mut coefficients = vec![0; self.ring_degree];
        let pixels = self.windows.output[0] * self.windows.output[1];
        for row in self.output_rows(output) {
            let bias = bias[row.element / pixels].rem_euclid(plaintext_modulus as i64) as u64;
            row.positions().for_each(|position| coefficients[position] = bias);
        }
        coefficients
    }
}
