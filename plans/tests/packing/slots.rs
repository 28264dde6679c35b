//! Carried out on slots in the clear, a program computes what its operator means.

use chococ_plans::packing::slots::layout::Layout;
use chococ_plans::packing::slots::program::{Instruction, Program};
use chococ_plans::packing::{Alignment, Rotation, SlotPacking, TapOrder};
use proptest::prelude::*;

use crate::operators::{naive, numbers, operators};

const T: u64 = 1_000_003;

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
        let (weights, bias, x) = numbers(&operator, seed);
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
