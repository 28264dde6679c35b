//! The rotations and products of one stage: what the server evaluates, what noise and cost are counted from.
//!
//! An output is one running total: sums of products are rotated and added to it, and now and then it is rotated
//! itself (Horner's rule in the channel shifts), so that many shifts need the Galois key of one. Shifts and taps that
//! connect nothing (groups, phases) leave no trace.

use std::collections::BTreeSet;

use crate::packing::slots::layout::Layout;
use crate::packing::windows::Offset;
use crate::packing::{Rotation, TapOrder};

/// All outputs of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// One list of instructions an output ciphertext.
    pub outputs: Vec<Vec<Instruction>>,
}

/// One step towards an output ciphertext, which starts from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Adds a sum of products, rotated.
    Add(Sum),
    /// Rotates the total.
    Rotate(Rotation),
}

/// A sum of products of rotated inputs with weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The output ciphertext it is for.
    pub output: usize,
    /// Whether it ends up in the other row.
    pub swap: bool,
    /// The channel shift it ends up at, products' own shifts not counted.
    pub shift: usize,
    /// The offset of the kernel it ends up at, products' own offsets not counted.
    pub offset: Offset,
    /// How it is rotated before it is added to the total.
    pub rotation: Rotation,
    /// What is summed.
    pub products: Vec<Product>,
}

/// An input ciphertext, rotated, times weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// The input ciphertext.
    pub input: usize,
    /// How it is rotated first.
    pub baby: Baby,
}

/// A rotation of an input: a channel shift and an offset of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Baby {
    /// Its channel shift.
    pub shift: usize,
    /// Its offset.
    pub offset: Offset,
    /// Both, in slots.
    pub rotation: Rotation,
}

impl Layout {
    /// The rotations and products of the stage.
    pub fn program(&self) -> Program {
        let reach = Reach::new(self);
        Program { outputs: (0..self.placement.outputs).map(|output| instructions(self, &reach, output)).collect() }
    }
}

impl Program {
    /// All sums, output by output.
    pub fn sums(&self) -> impl Iterator<Item = &Sum> {
        self.outputs.iter().flatten().filter_map(|instruction| match instruction {
            Instruction::Add(sum) => Some(sum),
            Instruction::Rotate(_) => None,
        })
    }

    /// The rotated inputs that products use, each once: (input ciphertext, rotation).
    pub fn rotated_inputs(&self) -> BTreeSet<(usize, Baby)> {
        self.sums().flat_map(|sum| &sum.products).map(|product| (product.input, product.baby)).collect()
    }

    /// Products of ciphertexts with weights.
    pub fn products(&self) -> usize {
        self.sums().map(|sum| sum.products.len()).sum()
    }

    /// Rotations of sums and totals, those included that move nothing.
    pub(crate) fn rotations_after_products(&self) -> impl Iterator<Item = Rotation> + '_ {
        self.outputs.iter().flatten().map(|instruction| match instruction {
            Instruction::Add(sum) => sum.rotation,
            Instruction::Rotate(rotation) => *rotation,
        })
    }
}

/// Which phases of an input ciphertext reach an output ciphertext, for every shift and swap.
struct Reach {
    phases: usize,
    shifts: usize,
    inputs: usize,
    reached: Vec<bool>,
}

impl Reach {
    fn new(layout: &Layout) -> Reach {
        let placement = &layout.placement;
        let phases = layout.grid.phase_count();
        let swaps = if placement.swaps { 2 } else { 1 };
        let len = placement.outputs * swaps * placement.shifts * placement.inputs * phases;
        let mut reach = Reach { phases, shifts: placement.shifts, inputs: placement.inputs, reached: vec![false; len] };
        let groups = |to: usize, from: usize| match &layout.operator {
            crate::op::Linear::Dense(_) => true,
            crate::op::Linear::Conv(conv) => {
                from / phases / (conv.input[0] / conv.groups) == to / (conv.output[0] / conv.groups)
            }
        };
        for output in 0..placement.outputs {
            for (row, column) in layout.columns() {
                let Some(to) = placement.output_channel(output, row, column) else { continue };
                for swap in 0..swaps {
                    for shift in 0..placement.shifts {
                        let source = placement.source_column(column, shift);
                        for input in 0..placement.inputs {
                            if let Some(from) = placement.input_channel(input, row ^ swap, source)
                                && groups(to, from)
                            {
                                let first = reach.index(output, swap, shift, input, swaps);
                                reach.reached[first + from % phases] = true;
                            }
                        }
                    }
                }
            }
        }
        reach
    }

    fn index(&self, output: usize, swap: usize, shift: usize, input: usize, swaps: usize) -> usize {
        (((output * swaps + swap) * self.shifts + shift) * self.inputs + input) * self.phases
    }
}

fn instructions(layout: &Layout, reach: &Reach, output: usize) -> Vec<Instruction> {
    let (babies, giants) = split(layout);
    let swaps = if layout.placement.swaps { 2 } else { 1 };
    let mut instructions = Vec::new();
    for swap in (0..swaps).rev() {
        // Sums at the largest shift first: each further rotation of the total serves all that came before.
        let mut behind = None;
        for shift in (0..layout.placement.shifts).step_by(layout.packing.baby_shifts).rev() {
            let sums = giants.iter().filter_map(|&offset| {
                let products = products(layout, reach, &babies, Position { output, swap, shift, offset }, swaps);
                let rotation = Rotation::left(layout.grid.steps(offset), layout.row_length);
                let swap = swap == 1;
                (!products.is_empty()).then_some(Sum { output, swap, shift, offset, rotation, products })
            });
            let sums: Vec<Sum> = sums.collect();
            if sums.is_empty() {
                continue;
            }
            match behind {
                // What the swapped rows left in the total must outlast the rotations to come: turn it back beforehand.
                None if !instructions.is_empty() => {
                    let back = Rotation::left(-layout.shift_steps(shift), layout.row_length);
                    instructions.push(Instruction::Rotate(Rotation { swap: true, ..back }));
                }
                None => {}
                Some(earlier) => instructions.push(rotate(layout, earlier - shift)),
            }
            behind = Some(shift);
            instructions.extend(sums.into_iter().map(Instruction::Add));
        }
        match behind {
            Some(shift) if shift > 0 => instructions.push(rotate(layout, shift)),
            _ => {}
        }
        // Nothing in the unswapped rows to carry the swap: it stands alone.
        if swap == 0 && behind.is_none() && !instructions.is_empty() {
            instructions.push(Instruction::Rotate(Rotation { steps: 0, swap: true }));
        }
    }
    instructions
}

fn rotate(layout: &Layout, shift: usize) -> Instruction {
    Instruction::Rotate(Rotation::left(layout.shift_steps(shift), layout.row_length))
}

/// The offsets by which inputs are rotated, and those by which sums are.
fn split(layout: &Layout) -> (Vec<Offset>, Vec<Offset>) {
    let still = vec![Offset { down: 0, right: 0 }];
    let all = layout.grid.offsets().collect();
    match layout.packing.taps {
        TapOrder::Inputs => (all, still),
        TapOrder::Outputs => (still, all),
        TapOrder::Mixed => (
            layout.grid.right.iter().map(|&right| Offset { down: 0, right }).collect(),
            layout.grid.down.iter().map(|&down| Offset { down, right: 0 }).collect(),
        ),
    }
}

/// Where a sum ends up.
#[derive(Clone, Copy)]
struct Position {
    output: usize,
    swap: usize,
    shift: usize,
    offset: Offset,
}

fn products(layout: &Layout, reach: &Reach, babies: &[Offset], at: Position, swaps: usize) -> Vec<Product> {
    let mut products = Vec::new();
    for input in 0..layout.placement.inputs {
        for low in 0..layout.packing.baby_shifts {
            let first = reach.index(at.output, at.swap, at.shift + low, input, swaps);
            let phases = &reach.reached[first..first + reach.phases];
            for &offset in babies {
                let whole = Offset { down: at.offset.down + offset.down, right: at.offset.right + offset.right };
                let mut reached = (0..reach.phases).filter(|&phase| phases[phase]);
                if reached.any(|phase| layout.grid.tap(&layout.operator, phase, whole).is_some()) {
                    let steps = layout.shift_steps(low) + layout.grid.steps(offset);
                    let rotation = Rotation::left(steps, layout.row_length);
                    products.push(Product { input, baby: Baby { shift: low, offset, rotation } });
                }
            }
        }
    }
    products
}
