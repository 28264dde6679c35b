//! The convolution that every picture is about, computed by nested loops: what every packing must come to.

use chococ_plans::op::{Conv, Linear};
use chococ_plans::packing::windows::Offset;

use crate::drawing::{beside, grid, letter, say};

/// Plaintext modulus: above every sum, and 1 modulo 2N as slots need it.
pub const T: u64 = 12_289;

/// Rows and columns of a channel.
pub const SIZE: usize = 4;

/// Input channels, and output channels.
pub const CHANNELS: usize = 2;

/// Output channels, input channels, rows, columns.
pub const WEIGHTS: [i32; 36] = [
    1, 2, 1, 2, 3, 2, 1, 2, 1, //
    3, 1, 2, 1, 2, 3, 2, 3, 1, //
    2, 2, 3, 3, 1, 1, 1, 3, 2, //
    4, 1, 1, 2, 1, 3, 1, 1, 2,
];

/// The convolution's shapes.
pub fn operator() -> Linear {
    Linear::Conv(Conv {
        input: [CHANNELS, SIZE, SIZE],
        output: [CHANNELS, SIZE, SIZE],
        kernel: [3, 3],
        strides: [1, 1],
        pads_before: [1, 1],
        dilations: [1, 1],
        groups: 1,
    })
}

/// One code a pixel, all different: 1 to 16 in channel 0, 17 to 32 in channel 1.
pub fn codes() -> Vec<i32> {
    (1..).take(CHANNELS * SIZE * SIZE).collect()
}

/// The pixel of a channel at `offset` from an output pixel; zero beyond the image.
pub fn pixel(channel: usize, at: usize, offset: Offset) -> i64 {
    let (y, x) = ((at / SIZE) as i64 + offset.down, (at % SIZE) as i64 + offset.right);
    let inside = |at: i64| (0..SIZE as i64).contains(&at);
    let index = |y: i64, x: i64| (channel * SIZE + y as usize) * SIZE + x as usize;
    if inside(y) && inside(x) { i64::from(codes()[index(y, x)]) } else { 0 }
}

/// The weight with which an output channel multiplies what an input channel holds at `offset`.
pub fn weight(to: usize, from: usize, offset: Offset) -> i64 {
    let (row, column) = ((offset.down + 1) as usize, (offset.right + 1) as usize);
    i64::from(WEIGHTS[((to * CHANNELS + from) * 3 + row) * 3 + column])
}

/// The nested loops of the textbook: what every packing must come to.
pub fn convolution() -> Vec<i64> {
    let taps = || (-1..=1).flat_map(|down| (-1..=1).map(move |right| Offset { down, right }));
    let sum = |to: usize, at: usize| -> i64 {
        let from_channel =
            |from| taps().map(move |offset| weight(to, from, offset) * pixel(from, at, offset)).sum::<i64>();
        (0..CHANNELS).map(from_channel).sum()
    };
    (0..CHANNELS).flat_map(|to| (0..SIZE * SIZE).map(move |at| sum(to, at))).collect()
}

/// Bounds of every sum: all that t can tell apart.
pub fn ranges() -> Vec<(i64, i64)> {
    vec![(0, T as i64 - 1); CHANNELS]
}

/// Draws the tensor, the weights, and what comes out.
pub fn draw() {
    say("A tensor of two channels, a letter a pixel (a is 1, p is 16, A is 17, P is 32; a dot is zero), and the \
         weights of a 3x3 convolution, from each channel to each of two outputs:");
    let letters: Vec<u64> = codes().into_iter().map(|code| code as u64).collect();
    let channels = letters
        .chunks(SIZE * SIZE)
        .enumerate()
        .map(|(channel, pixels)| (format!("channel {channel}"), grid(pixels, SIZE, |&code| letter(code).to_string())));
    let kernels = WEIGHTS
        .chunks(9)
        .enumerate()
        .map(|(index, taps)| (format!("{} to {}", index % CHANNELS, index / CHANNELS), grid(taps, 3, i32::to_string)));
    beside(&channels.chain(kernels).collect::<Vec<_>>());
    say("What every packing must come to, computed by nested loops:");
    let outputs = convolution();
    let outputs = outputs.chunks(SIZE * SIZE).enumerate();
    let outputs = outputs.map(|(to, sums)| (format!("output {to}"), grid(sums, SIZE, |sum| format!("{sum:>3}"))));
    beside(&outputs.collect::<Vec<_>>());
}
