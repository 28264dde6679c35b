//! Laws of packing: carried out on slots in the clear, a program computes what its operator means.

use chococ_plans::op::{Conv, Dense, Linear};
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::program::{Instruction, Program};
use chococ_plans::packing::{Alignment, Rotation, SlotPacking, TapOrder};
use proptest::prelude::*;

const T: u64 = 1_000_003;

/// A window on small convolutions of every kind, and dense layers.
fn operators() -> impl Strategy<Value = Linear> {
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

fn packings() -> impl Strategy<Value = SlotPacking> {
    let alignments = prop_oneof![
        Just((Alignment::Masked, TapOrder::Inputs)),
        (
            prop_oneof![Just(Alignment::Rotational), Just(Alignment::Punctured)],
            prop_oneof![Just(TapOrder::Inputs), Just(TapOrder::Outputs), Just(TapOrder::Mixed)],
        )
    ];
    (alignments, 0u32..4).prop_map(|((alignment, taps), log)| SlotPacking { alignment, taps, baby_shifts: 1 << log })
}

/// The nested loops of the textbook.
fn naive(operator: &Linear, weights: &[i32], bias: &[i64], x: &[i32]) -> Vec<i64> {
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

fn rotate(slots: &[u64], by: Rotation) -> Vec<u64> {
    let row = slots.len() / 2;
    let from = |slot: usize| ((slot / row) ^ usize::from(by.swap)) * row + (slot % row + by.steps) % row;
    (0..slots.len()).map(|slot| slots[from(slot)]).collect()
}

fn multiply(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a * b % T).collect()
}

fn add(total: &mut [u64], b: &[u64]) {
    total.iter_mut().zip(b).for_each(|(total, b)| *total = (*total + b) % T);
}

/// What the server does, on slots in the clear.
fn evaluate(layout: &Layout, program: &Program, inputs: &[Vec<u64>], weights: &[i32], bias: &[i64]) -> Vec<Vec<u64>> {
    let output = |(index, instructions): (usize, &Vec<Instruction>)| {
        let mut total = vec![0; 2 * layout.row_length];
        for instruction in instructions {
            match instruction {
                Instruction::Rotate(rotation) => total = rotate(&total, *rotation),
                Instruction::Add(sum) => {
                    let mut partial = vec![0; total.len()];
                    for product in &sum.products {
                        let mut x = rotate(&inputs[product.input], product.baby.rotation);
                        if let Some(mask) = layout.mask(product.baby.offset) {
                            x = multiply(&x, &mask);
                        }
                        add(&mut partial, &multiply(&x, &layout.weights(sum, product, weights, T)));
                    }
                    add(&mut total, &rotate(&partial, sum.rotation));
                }
            }
        }
        add(&mut total, &layout.bias(index, bias, T));
        total
    };
    program.outputs.iter().enumerate().map(output).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn programs_compute_their_operator(
        operator in operators(), packing in packings(), log_degree in 2u32..9, seed in any::<u64>()
    ) {
        let Ok(layout) = Layout::new(&operator, packing, 1 << log_degree) else { return Ok(()) };
        let mut state = seed;
        let mut draw = |low: i64, high: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            low + (state >> 33) as i64 % (high - low + 1)
        };
        let weights: Vec<i32> = (0..operator.weight_shape().iter().product()).map(|_| draw(-7, 7) as i32).collect();
        let bias: Vec<i64> = (0..operator.output_channels()).map(|_| draw(-99, 99)).collect();
        let x: Vec<i32> = (0..operator.input_shape().iter().product()).map(|_| draw(-8, 15) as i32).collect();
        let program = layout.program();
        let sums = evaluate(&layout, &program, &layout.pack(&x, T), &weights, &bias);
        let ranges = vec![(-400_000, 400_000); operator.output_channels()];
        prop_assert_eq!(layout.unpack(&sums, T, &ranges), naive(&operator, &weights, &bias, &x));
    }

    /// Rotating a window with redundancy moves the padded image as a whole: every cell that becomes an output reads
    /// the pixel at its offset, or one of the zeros around the image.
    #[test]
    fn rotating_a_window_with_redundancy_moves_the_padded_image(
        operator in operators(), log_degree in 4u32..9
    ) {
        let packing = SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Inputs, baby_shifts: 1 };
        let Ok(layout) = Layout::new(&operator, packing, 1 << log_degree) else { return Ok(()) };
        let codes: Vec<i32> = (1..=operator.input_shape().iter().product::<usize>() as i32).collect();
        let grid = &layout.grid;
        let row = layout.row_length;
        for packed in layout.pack(&codes, T) {
            for offset in grid.offsets() {
                let moved = rotate(&packed, Rotation::left(grid.steps(offset), row));
                for slot in 0..packed.len() {
                    let Some(pixel) = grid.output_pixel(slot % grid.block) else { continue };
                    let block = slot - slot % grid.block;
                    let expected = if grid.reads_inside(pixel, offset) {
                        let [y, x] = [pixel[0] as i64 + offset.down, pixel[1] as i64 + offset.right];
                        packed[block + grid.cell(y as usize, x as usize)]
                    } else {
                        0
                    };
                    prop_assert_eq!(moved[slot], expected, "{:?} {:?} {:?}", &grid, offset, slot);
                }
            }
        }
    }
}
