//! One number a slot: one tap of the kernel, from packed inputs to results, in each alignment.

use std::error::Error;

use chococ_plans::packing::slots::layout::Layout;
use chococ_plans::packing::slots::program::Instruction;
use chococ_plans::packing::windows::Offset;
use chococ_plans::packing::{Alignment, Rotation, SlotPacking, TapOrder};

use crate::drawing::{CHANNEL_DIGITS, digits, letter, letters, say, title};
use crate::tensor::{SIZE, T, WEIGHTS, codes, convolution, operator, pixel, ranges, weight};

/// The tap whose rotation is drawn: it reads the pixel above and to the left.
const UP_LEFT: Offset = Offset { down: -1, right: -1 };

/// Draws the way of one tap with rotational redundancy.
pub fn rotational() -> Result<(), Box<dyn Error>> {
    title("Slots, rotational redundancy");
    let tap = Tap::new(Alignment::Rotational, 128)?;
    let (block, steps) = (tap.layout.grid.block, tap.steps);
    say(&format!(
        "One number a slot, in two rows that rotate together. Each channel has a block of {block} slots, with a zero \
         behind each row of pixels and more behind the last; row 1 has the channels in the other order:"
    ));
    draw("packed", &letters(&tap.packed));
    say(&format!("One rotation, rotate_rows({steps}), brings to each pixel the one above and to its left, or a zero:"));
    draw("rotated", &letters(&tap.rotated));
    say("The weights of that tap are constant within a block:");
    draw("weights", &digits(tap.weights.clone()));
    say(
        "The products of all nine taps are added up. These slots are results, marked with the output that they belong \
         to; the client drops all others and adds the two rows, so that each output has met both channels:",
    );
    draw("results", &tap.results());
    Ok(())
}

/// Draws the way of one tap with punctured weights.
pub fn punctured() -> Result<(), Box<dyn Error>> {
    title("Slots, punctured weights");
    let tap = Tap::new(Alignment::Punctured, 64)?;
    say(&format!("No redundant cells, so a block of {} slots a channel is enough here:", tap.layout.grid.block));
    draw("packed", &letters(&tap.packed));
    say(&format!(
        "For the same tap, rotate_rows({}) also brings pixels of other rows, and of the other channel:",
        tap.steps
    ));
    draw("rotated", &letters(&tap.rotated));
    say("The weights are zero wherever it does:");
    draw("weights", &digits(tap.weights.clone()));
    say("So the products, here as letters, keep only what lies inside the image:");
    draw("products", &tap.kept());
    say("The results fill every slot:");
    draw("results", &tap.results());
    Ok(())
}

/// Draws the way of one tap with masks.
pub fn masked() -> Result<(), Box<dyn Error>> {
    title("Slots, masked");
    let tap = Tap::new(Alignment::Masked, 64)?;
    say("The baseline: packed and rotated as with punctured weights,");
    draw("rotated", &letters(&tap.rotated));
    say("and then multiplied by a mask, a product more for each rotation, which costs noise budget,");
    draw("mask", &digits(tap.mask.clone()));
    draw("masked", &letters(&tap.masked));
    say("so that the weights can be constant again. The results fill every slot, as before:");
    draw("weights", &digits(tap.weights.clone()));
    draw("results", &tap.results());
    Ok(())
}

/// What happens to the slots of the one input on behalf of one tap, [`UP_LEFT`].
struct Tap {
    layout: Layout,
    /// Slots to the left by which the tap's pixel is rotated into place.
    steps: i64,
    packed: Vec<u64>,
    rotated: Vec<u64>,
    /// All ones where nothing is masked.
    mask: Vec<u64>,
    masked: Vec<u64>,
    weights: Vec<u64>,
    products: Vec<u64>,
    /// For each slot the element of the output that the client adds it to.
    results: Vec<Option<usize>>,
}

impl Tap {
    fn new(alignment: Alignment, ring_degree: usize) -> Result<Tap, Box<dyn Error>> {
        let packing = SlotPacking { alignment, taps: TapOrder::Inputs, baby_shifts: 1 };
        let layout = Layout::new(&operator(), packing, ring_degree)?;
        let packed = layout.pack(&codes(), T).remove(0);
        let program = layout.program();
        let mut products = program.sums().flat_map(|sum| sum.products.iter().map(move |product| (sum, product)));
        let (sum, product) =
            products.find(|(_, product)| product.baby.offset == UP_LEFT).ok_or("a tap of the kernel")?;
        let rotated = rotate(&packed, product.baby.rotation);
        let mask = layout.mask(UP_LEFT).unwrap_or(vec![1; ring_degree]);
        let masked = multiply(&rotated, &mask);
        let weights = layout.weights(sum, product, &WEIGHTS, T);
        let products = multiply(&masked, &weights);
        // A slot belongs to the element of the output that is one when the slot is, alone.
        let alone = |slot: usize| (0..ring_degree).map(|other| u64::from(other == slot)).collect();
        let output = |slot| layout.unpack(&[alone(slot)], T, &ranges()).iter().position(|&sum| sum == 1);
        let results = (0..ring_degree).map(output).collect();
        let steps = layout.grid.steps(UP_LEFT);
        let tap = Tap { layout, steps, packed, rotated, mask, masked, weights, products, results };
        tap.check();
        Ok(tap)
    }

    /// Every result gets what the convolution wants of this tap, and all taps together make the convolution.
    fn check(&self) {
        let layout = &self.layout;
        for (slot, output) in self.results.iter().enumerate() {
            let Some(output) = output else { continue };
            let (row, column) = (slot / layout.row_length, slot % layout.row_length / layout.grid.block);
            let from = layout.placement.input_channel(0, row, column).expect("every block holds a channel");
            let (to, at) = (output / (SIZE * SIZE), output % (SIZE * SIZE));
            let expected = weight(to, from, UP_LEFT) * pixel(from, at, UP_LEFT);
            assert_eq!(self.products[slot] as i64, expected, "slot {slot}");
        }
        assert_eq!(layout.unpack(&[evaluated(layout, &self.packed)], T, &ranges()), convolution());
    }

    /// The letters of the pixels that the weights do not make zero.
    fn kept(&self) -> String {
        self.masked
            .iter()
            .zip(&self.products)
            .map(|(&code, &product)| letter(if product == 0 { 0 } else { code }))
            .collect()
    }

    fn results(&self) -> String {
        let mark = |output: &Option<usize>| output.map_or('.', |output| CHANNEL_DIGITS[output / (SIZE * SIZE)]);
        self.results.iter().map(mark).collect()
    }
}

fn rotate(slots: &[u64], by: Rotation) -> Vec<u64> {
    let row = slots.len() / 2;
    let from = |slot: usize| ((slot / row) ^ usize::from(by.swap)) * row + (slot % row + by.steps) % row;
    (0..slots.len()).map(|slot| slots[from(slot)]).collect()
}

fn multiply(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a * b % T).collect()
}

/// What the server does, on slots in the clear.
fn evaluated(layout: &Layout, input: &[u64]) -> Vec<u64> {
    let add = |a: Vec<u64>, b: Vec<u64>| -> Vec<u64> { a.iter().zip(&b).map(|(a, b)| (a + b) % T).collect() };
    let zeros = || vec![0; input.len()];
    let instructions = layout.program().outputs.remove(0);
    instructions.iter().fold(zeros(), |total, instruction| match instruction {
        Instruction::Rotate(rotation) => rotate(&total, *rotation),
        Instruction::Add(sum) => {
            let products = sum.products.iter().map(|product| {
                let rotated = rotate(input, product.baby.rotation);
                let mask = layout.mask(product.baby.offset).unwrap_or(vec![1; input.len()]);
                multiply(&multiply(&rotated, &mask), &layout.weights(sum, product, &WEIGHTS, T))
            });
            add(total, rotate(&products.fold(zeros(), add), sum.rotation))
        }
    })
}

/// Draws the two rows of a ciphertext, a slot a character.
fn draw(name: &str, slots: &str) {
    let (first, second) = slots.split_at(slots.len() / 2);
    println!("  {name:<8} row 0  {first}");
    println!("  {:<8} row 1  {second}", "");
}
