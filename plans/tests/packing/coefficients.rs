//! Carried out on polynomials in the clear, a stage in coefficients computes what its operator means, whatever the
//! coefficients hold that do not travel.

use chococ_plans::packing::CoefficientPacking;
use chococ_plans::packing::coefficients::layout::Layout;
use chococ_plans::packing::coefficients::merging::Merging;
use chococ_plans::packing::coefficients::tiles::Tiles;
use chococ_plans::packing::windows::Windows;
use chococ_plans::params::merging_element;
use proptest::prelude::*;

use crate::operators::{naive, numbers, operators};

/// A prime in the place of q and of t: merging divides by powers of two.
const T: i64 = 1_000_003;

/// Packings of any kind in the smallest ring degree that takes them, or in twice that.
fn layouts() -> impl Strategy<Value = Layout> {
    let parts = ([0usize..7, 0usize..7], 1usize..4, 0u32..5, 1usize..4, 0u32..5, 0u32..2);
    (operators(), parts).prop_filter_map(
        "products must not take long",
        |(operator, (tile, tiles_at_once, interleave, stack, merge, room))| {
            let windows = Windows::new(&operator);
            let tile = [0, 1].map(|axis| tile[axis] % windows.output[axis] + 1);
            let (interleave, merge) = (1 << interleave, 1 << merge.min(interleave));
            let cells = Tiles::new(&windows, tile).block * tiles_at_once * stack * interleave;
            let packing = CoefficientPacking { tile, tiles_at_once, interleave, stack, merge };
            let ring_degree = cells.next_power_of_two() << room;
            let layout = || Layout::new(&operator, packing, ring_degree).expect("its cells were counted");
            (2..=1024).contains(&ring_degree).then(layout)
        },
    )
}

/// The product modulo X^N + 1.
fn product(a: &[i64], b: &[i64]) -> Vec<i64> {
    let n = a.len();
    let mut product = vec![0; n];
    for (i, &x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
        for (j, &y) in b.iter().enumerate().filter(|(_, y)| **y != 0) {
            let sign = if i + j < n { 1 } else { -1 };
            product[(i + j) % n] = (product[(i + j) % n] + sign * (x * y % T)) % T;
        }
    }
    product
}

/// Replaces X by X^g.
fn automorphism(a: &[i64], element: u64) -> Vec<i64> {
    let n = a.len();
    let mut image = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        let exponent = i * element as usize % (2 * n);
        image[exponent % n] = if exponent < n { x } else { -x };
    }
    image
}

fn combined(a: &[i64], b: &[i64], sign: i64) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| (a + sign * b) % T).collect()
}

fn inverse(a: i64) -> i64 {
    (0..T - 2)
        .fold((1, a, T - 2), |(result, base, exponent), _| match exponent {
            0 => (result, base, 0),
            _ if exponent % 2 == 1 => (result * base % T, base * base % T, exponent / 2),
            _ => (result, base * base % T, exponent / 2),
        })
        .0
}

/// What the server does with the inputs of one group of tiles, for one group of outputs.
struct Evaluation<'a> {
    layout: &'a Layout,
    inputs: &'a [Vec<i64>],
    weights: &'a [i32],
    output_group: usize,
    /// 1/M modulo T.
    divided: i64,
}

impl Evaluation<'_> {
    fn merged(&self, merging: &Merging) -> Vec<i64> {
        let n = self.layout.ring_degree;
        match merging {
            Merging::Base(base) => {
                let mut sum = vec![0; n];
                for from in 0..self.layout.channel_groups() {
                    let kernel = self.layout.kernel(self.output_group, *base, from, self.weights);
                    assert_eq!(kernel.is_some(), self.layout.connects(self.output_group, *base, from));
                    if let Some(kernel) = kernel {
                        let kernel: Vec<i64> = kernel.iter().map(|&w| i64::from(w) * self.divided % T).collect();
                        sum = combined(&sum, &product(&self.inputs[from], &kernel), 1);
                    }
                }
                sum
            }
            Merging::Merge { even, odd, step } => {
                let even = self.merged(even);
                let mut monomial = vec![0; n];
                monomial[*step] = 1;
                let odd = odd.as_ref().map_or(vec![0; n], |odd| product(&self.merged(odd), &monomial));
                let image = automorphism(&combined(&even, &odd, -1), merging_element(n, *step));
                combined(&combined(&even, &odd, 1), &image, 1)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn products_and_merges_compute_their_operator(
        layout in layouts(), seed in any::<u64>()
    ) {
        let Layout { operator, packing, .. } = layout.clone();
        let (weights, bias, codes) = numbers(&operator, seed);
        let mut inputs = Vec::new();
        for (input, packed) in layout.pack(&codes, T as u64).into_iter().enumerate() {
            // Anything may stand where nothing travels.
            let mut polynomial: Vec<i64> = (0..packed.len() as i64).map(|i| (i * 77_777 + 13) % T).collect();
            layout.sent(input).into_iter().for_each(|position| polynomial[position] = packed[position] as i64);
            prop_assert!((0..packed.len()).all(|i| packed[i] == 0 || polynomial[i] == packed[i] as i64), "sent");
            inputs.push(polynomial);
        }
        let divided = inverse(packing.merge as i64);
        let mut outputs = Vec::new();
        for output in 0..layout.outputs() {
            let (tile_group, output_group) = (output / layout.output_groups(), output % layout.output_groups());
            let inputs = &inputs[tile_group * layout.channel_groups()..][..layout.channel_groups()];
            let evaluation = Evaluation { layout: &layout, inputs, weights: &weights, output_group, divided };
            let sums = evaluation.merged(&layout.merging(output_group));
            let bias = layout.bias(output, &bias, T as u64);
            let read = |position: usize| (sums[position] + bias[position] as i64).rem_euclid(T) as u64;
            outputs.push(layout.returned(output).into_iter().map(read).collect());
        }
        let ranges = vec![(-400_000, 400_000); operator.output_channels()];
        prop_assert_eq!(layout.unpack(&outputs, T as u64, &ranges), naive(&operator, &weights, &bias, &codes));
    }
}
