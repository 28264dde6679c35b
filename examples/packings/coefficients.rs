//! One number a coefficient: interleaved, merged, stacked, in tiles.

use std::error::Error;

use chococ_plans::packing::CoefficientPacking;
use chococ_plans::packing::coefficients::merging::Merging;
use chococ_plans::packing::windows::Offset;
use chococ_plans::params::merging_element;

use crate::drawing::{beside, digits, grid, letter, letters, say, title};
use crate::products::{Merge, Products};
use crate::tensor::{CHANNELS, SIZE};

/// The whole image as one tile, both channels in one ciphertext, a ciphertext an output.
const WHOLE: CoefficientPacking =
    CoefficientPacking { tile: [SIZE, SIZE], tiles_at_once: 1, interleave: CHANNELS, stack: 1, merge: 1 };

/// N.
const RING_DEGREE: usize = 64;

/// Coefficients of which one merge shows the numbers.
const SHOWN: usize = 12;

/// Draws an input, a kernel and their product.
pub fn interleaved() -> Result<(), Box<dyn Error>> {
    title("Coefficients, interleaved");
    let products = Products::new(WHOLE, RING_DEGREE)?;
    let pitch = products.layout.tiles.pitch;
    let kernel = products.kernel(0, 0, 0);
    let middle = *products.layout.returned(0).get(SIZE + 1).ok_or("a pixel of the second row")?;
    say(&format!(
        "One number a coefficient; nothing is rotated. Cell p of channel c sits at exponent {CHANNELS} p + c, and a \
         row of the image takes {pitch} cells, one of them zero:"
    ));
    draw_exponents();
    draw("packed", &letters(&products.packed[0]));
    say(&format!(
        "The kernel of output 0 lies at negative exponents, that is, at the far end, as X^-k = -X^({RING_DEGREE}-k):"
    ));
    draw_kernel(&kernel);
    say(&format!(
        "Since X^a X^b = X^(a+b), each coefficient of the product is a sum over a window. In coefficient {middle}, at \
         pixel f, these meet:"
    ));
    draw("packed", &letters(&products.packed[0]));
    draw("weights", &weights(&products.met(&kernel, middle)));
    say("One product makes them all. Results are in brackets, a row of the image a line; the rest is junk:");
    let (values, results) = (&products.outputs[0], products.results(0));
    for begin in (0..RING_DEGREE).step_by(pitch * CHANNELS) {
        draw(&begin.to_string(), &bracketed(&values[begin..], &results[begin..], pitch * CHANNELS));
    }
    say("In short, 0 for a result of output 0 and ~ for junk. Output 1 is another product, with its own kernel:");
    draw("output 0", &products.against_junk(0));
    draw("output 1", &products.against_junk(1));
    Ok(())
}

/// Draws one merge of two outputs, step by step.
pub fn merged() -> Result<(), Box<dyn Error>> {
    title("Coefficients, merged");
    let apart = Products::new(WHOLE, RING_DEGREE)?;
    let products = Products::new(CoefficientPacking { merge: 2, ..WHOLE }, RING_DEGREE)?;
    let layout = &products.layout;
    let Merging::Merge { step, .. } = layout.merging(0) else { return Err("two outputs are two bases".into()) };
    let merge = Merge::new(products.base(0, 0), products.base(0, 1), step);
    assert_eq!(merge.half, products.outputs[0]);
    let element = merging_element(RING_DEGREE, step);
    say(&format!(
        "The two outputs, E and O, become one ciphertext, (E + X^h O) + sigma(E - X^h O). Here h is {step}, and sigma, \
         X -> X^{element}, negates odd coefficients: so the junk cancels that stood at the odd ones of E, and of O. \
         The results double, which the server undoes beforehand, modulo q. The first {SHOWN} coefficients:"
    ));
    let (of_one, of_both, none) = (apart.results(0), products.results(0), vec![None; SHOWN]);
    let of_moved: Vec<Option<usize>> = std::iter::repeat_n(None, step).chain(of_one.iter().copied()).collect();
    for (name, values, results) in [
        ("E", &merge.even, &of_one),
        ("O", &merge.odd, &of_one),
        ("X^h O", &merge.moved, &of_moved),
        ("E + X^h O", &merge.sum, &none),
        ("E - X^h O", &merge.difference, &none),
        ("sigma of it", &merge.turned, &none),
        ("whole sum", &merge.doubled, &none),
        ("halved", &merge.half, &of_both),
    ] {
        draw(name, &bracketed(values, results, SHOWN));
    }
    let (sent, returned) = (layout.sent(0).len(), layout.returned(0).len());
    say(&format!(
        "Output 1 has taken the place of junk. What junk is left, nobody reads: of the c0 of a ciphertext, {sent} \
         coefficients travel to the server, and only the {returned} that are results come back:"
    ));
    draw_exponents();
    draw("output 0", &apart.against_junk(0));
    draw("output 1", &apart.against_junk(1));
    draw("merged", &products.against_junk(0));
    Ok(())
}

/// Draws the kernels of two outputs in one polynomial.
pub fn stacked() -> Result<(), Box<dyn Error>> {
    title("Coefficients, stacked");
    let products = Products::new(CoefficientPacking { interleave: 1, stack: 2, ..WHOLE }, RING_DEGREE)?;
    say(&format!(
        "Where an input leaves room, as one channel alone does, one polynomial holds the kernels of two outputs, {} \
         exponents apart. Channel 0, and its kernels:",
        products.layout.tiles.block
    ));
    draw_exponents();
    draw("packed", &letters(&products.packed[0]));
    draw_kernel(&products.kernel(0, 0, 0));
    say("Its product and that of channel 1 add up to both outputs, and the junk of one meets no result of the other:");
    draw("outputs", &products.against_junk(0));
    Ok(())
}

/// Draws the tiles of an image, with their halos.
pub fn tiled() -> Result<(), Box<dyn Error>> {
    title("Coefficients, in tiles");
    let packing = CoefficientPacking { tile: [2, 2], tiles_at_once: 2, ..WHOLE };
    let products = Products::new(packing, RING_DEGREE)?;
    let tiles = &products.layout.tiles;
    say("An image too large for one ciphertext is cut into tiles, each with the halo that its windows read. Here are \
         the tiles of channel 0, with brackets around the pixels at which the tile has outputs:");
    let middle = tiles.steps(Offset { down: 0, right: 0 });
    let grids = (0..tiles.tiles()).map(|tile| {
        let (input, place) = (tile / packing.tiles_at_once, tile % packing.tiles_at_once);
        let rows = tiles.results(tile, [SIZE, SIZE]);
        let outputs: Vec<usize> = rows.flat_map(|row| row.cell + middle..row.cell + middle + row.length).collect();
        let cells: Vec<usize> = tiles.window_cells().collect();
        let lines = grid(&cells, tiles.pitch, |cell| {
            let pixel = letter(products.packed[input][(place * tiles.block + cell) * CHANNELS]);
            if outputs.contains(cell) { format!("[{pixel}]") } else { format!(" {pixel} ") }
        });
        (format!("tile {tile}"), lines)
    });
    beside(&grids.collect::<Vec<_>>());
    say("Two tiles fit a ciphertext, both channels interleaved. Below each, its product for output 0:");
    draw_exponents();
    for (input, packed) in products.packed.iter().enumerate() {
        let first = input * packing.tiles_at_once;
        draw(&format!("tiles {first}, {}", first + 1), &letters(packed));
        draw("output 0", &products.against_junk(input * products.layout.output_groups()));
    }
    Ok(())
}

/// Draws a polynomial, a coefficient a character.
fn draw(name: &str, coefficients: &str) {
    println!("  {name:<15}{}", coefficients.trim_end());
}

/// Draws every tenth exponent.
fn draw_exponents() {
    draw("exponent", &(0..RING_DEGREE).step_by(10).map(|ten| format!("{ten:<10}")).collect::<String>());
}

/// Draws a kernel, its signs above.
fn draw_kernel(kernel: &[i32]) {
    draw("kernel", &kernel.iter().map(|&weight| if weight < 0 { '-' } else { ' ' }).collect::<String>());
    draw("", &weights(kernel));
}

fn weights(weights: &[i32]) -> String {
    digits(weights.iter().map(|weight| weight.unsigned_abs().into()))
}

/// The first few coefficients as numbers, results in brackets.
fn bracketed(values: &[i64], results: &[Option<usize>], few: usize) -> String {
    let show = |(value, result): (&i64, &Option<usize>)| match result {
        Some(_) => format!("{:>6}", format!("[{value}]")),
        None => format!("{value:>5} "),
    };
    values.iter().zip(results).take(few).map(show).collect()
}
