//! Operators to pack, and what they mean.

use chococ_plans::op::{Conv, Dense, Linear};
use proptest::prelude::*;

/// A window on small convolutions of every kind, and dense layers.
pub fn operators() -> impl Strategy<Value = Linear> {
    let conv = (1usize..4, 1usize..4, 1usize..4)
        .prop_flat_map(|(groups, inputs, outputs)| {
            let pair = |range: std::ops::Range<usize>| [range.clone(), range];
            let shape = (Just([groups * inputs, groups * outputs]), Just(groups), pair(1..7), pair(1..4));
            (shape, pair(1..4), pair(0..3), pair(1..3), pair(0..3))
        })
        .prop_filter_map(
            "the kernel must fit",
            |((channels, groups, image, kernel), strides, pads, dilations, after)| {
                let output = [0, 1].map(|axis| {
                    let padded = image[axis] + pads[axis] + after[axis];
                    let reach = dilations[axis] * (kernel[axis] - 1) + 1;
                    padded.checked_sub(reach).map_or(0, |room| room / strides[axis] + 1)
                });
                (output[0] > 0 && output[1] > 0).then_some(Linear::Conv(Conv {
                    input: [channels[0], image[0], image[1]],
                    output: [channels[1], output[0], output[1]],
                    kernel,
                    strides,
                    pads_before: pads,
                    dilations,
                    groups,
                }))
            },
        );
    let dense = (1usize..40, 1usize..40).prop_map(|(inputs, outputs)| Linear::Dense(Dense { inputs, outputs }));
    prop_oneof![3 => conv, 1 => dense]
}

/// The nested loops of the textbook.
pub fn naive(operator: &Linear, weights: &[i32], bias: &[i64], x: &[i32]) -> Vec<i64> {
    let conv = match operator {
        Linear::Dense(dense) => {
            let row =
                |m: usize| (0..dense.inputs).map(move |i| i64::from(weights[m * dense.inputs + i]) * i64::from(x[i]));
            return (0..dense.outputs).map(|m| bias[m] + row(m).sum::<i64>()).collect();
        }
        Linear::Conv(conv) => conv,
    };
    let [_, height, width] = conv.input;
    let [outputs, out_height, out_width] = conv.output;
    let per_group = conv.input[0] / conv.groups;
    let mut y = Vec::new();
    for m in 0..outputs {
        for (oy, ox) in (0..out_height).flat_map(|oy| (0..out_width).map(move |ox| (oy, ox))) {
            let mut sum = bias[m];
            for c in 0..per_group {
                for (ky, kx) in (0..conv.kernel[0]).flat_map(|ky| (0..conv.kernel[1]).map(move |kx| (ky, kx))) {
                    let iy = (oy * conv.strides[0] + ky * conv.dilations[0]).checked_sub(conv.pads_before[0]);
                    let ix = (ox * conv.strides[1] + kx * conv.dilations[1]).checked_sub(conv.pads_before[1]);
                    if let (Some(iy), Some(ix)) = (iy.filter(|&iy| iy < height), ix.filter(|&ix| ix < width)) {
                        let channel = m / (outputs / conv.groups) * per_group + c;
                        let weight = weights[((m * per_group + c) * conv.kernel[0] + ky) * conv.kernel[1] + kx];
                        sum += i64::from(weight) * i64::from(x[(channel * height + iy) * width + ix]);
                    }
                }
            }
            y.push(sum);
        }
    }
    y
}

/// Random weights, biases and codes of four bits for an operator, from a seed.
pub fn numbers(operator: &Linear, seed: u64) -> (Vec<i32>, Vec<i64>, Vec<i32>) {
    let mut state = seed;
    let mut draw = |low: i64, high: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (state >> 33) as i64 % (high - low + 1)
    };
    let weights = (0..operator.weight_shape().iter().product()).map(|_| draw(-7, 7) as i32).collect();
    let bias = (0..operator.output_channels()).map(|_| draw(-99, 99)).collect();
    let codes = (0..operator.input_shape().iter().product()).map(|_| draw(-8, 15) as i32).collect();
    (weights, bias, codes)
}
