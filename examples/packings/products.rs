//! A convolution as products of polynomials, merged, carried out in the clear.

use std::error::Error;

use chococ_plans::packing::CoefficientPacking;
use chococ_plans::packing::coefficients::layout::Layout;
use chococ_plans::packing::coefficients::merging::Merging;
use chococ_plans::params::merging_element;

use crate::drawing::CHANNEL_DIGITS;
use crate::tensor::{T, WEIGHTS, codes, convolution, operator, ranges};

/// All inputs and outputs of the convolution, for one choice of packing: N coefficients each.
pub struct Products {
    pub layout: Layout,
    pub packed: Vec<Vec<u64>>,
    /// Merged, if the packing merges.
    pub outputs: Vec<Vec<i64>>,
}

impl Products {
    /// Carries out the convolution and sees to it that it is one.
    pub fn new(packing: CoefficientPacking, ring_degree: usize) -> Result<Products, Box<dyn Error>> {
        let layout = Layout::new(&operator(), packing, ring_degree)?;
        let packed = layout.pack(&codes(), T);
        let mut products = Products { layout, packed, outputs: Vec::new() };
        let groups = products.layout.output_groups();
        products.outputs = (0..products.layout.outputs())
            .map(|output| products.merge(output, &products.layout.merging(output % groups)))
            .collect();
        products.check();
        Ok(products)
    }

    /// One base of an output: the sum of a product a group of channels.
    pub fn base(&self, output: usize, base: usize) -> Vec<i64> {
        let (channel_groups, output_groups) = (self.layout.channel_groups(), self.layout.output_groups());
        let mut sum = vec![0; self.layout.ring_degree];
        for channels in 0..channel_groups {
            let input = &self.packed[output / output_groups * channel_groups + channels];
            let kernel = self.kernel(output % output_groups, base, channels);
            add_product(&mut sum, input, &kernel);
        }
        sum
    }

    /// The kernel polynomial of one base of a group of outputs, for a group of channels.
    pub fn kernel(&self, output_group: usize, base: usize, channel_group: usize) -> Vec<i32> {
        let kernel = self.layout.kernel(output_group, base, channel_group, &WEIGHTS);
        kernel.expect("a convolution of one group: every channel meets every output")
    }

    fn merge(&self, output: usize, merging: &Merging) -> Vec<i64> {
        match merging {
            Merging::Base(base) => self.base(output, *base),
            Merging::Merge { even, odd, step } => {
                let odd = odd.as_ref().map(|odd| self.merge(output, odd));
                let zeros = vec![0; self.layout.ring_degree];
                Merge::new(self.merge(output, even), odd.unwrap_or(zeros), *step).half
            }
        }
    }

    /// What a client reads from the outputs is the convolution.
    fn check(&self) {
        let read = |(output, coefficients): (usize, &Vec<i64>)| {
            let positions = self.layout.returned(output).into_iter();
            positions.map(|position| coefficients[position].rem_euclid(T as i64) as u64).collect()
        };
        let returned: Vec<Vec<u64>> = self.outputs.iter().enumerate().map(read).collect();
        assert_eq!(self.layout.unpack(&returned, T, &ranges()), convolution());
    }

    /// The weights that meet each coefficient of the first input in coefficient `at` of its product with `kernel`.
    pub fn met(&self, kernel: &[i32], at: usize) -> Vec<i32> {
        let n = kernel.len();
        let weight = |from: usize| if from <= at { kernel[at - from] } else { -kernel[n + at - from] };
        let met: Vec<i32> = (0..n).map(weight).collect();
        let sum: i64 = met.iter().zip(&self.packed[0]).map(|(&weight, &code)| i64::from(weight) * code as i64).sum();
        assert_eq!(sum, self.outputs[0][at]);
        met
    }

    /// Which output channel has a result at each coefficient.
    pub fn results(&self, output: usize) -> Vec<Option<usize>> {
        let mut results = vec![None; self.layout.ring_degree];
        let [height, width] = self.layout.windows.output;
        for row in self.layout.output_rows(output) {
            row.positions().for_each(|position| results[position] = Some(row.element / (height * width)));
        }
        results
    }

    /// An output, a coefficient a character: the number of its channel for a result, ~ for junk.
    pub fn against_junk(&self, output: usize) -> String {
        let coefficients = self.outputs[output].iter().zip(self.results(output));
        let mark = |(&value, channel): (&i64, Option<usize>)| match channel {
            Some(channel) => CHANNEL_DIGITS[channel],
            None if value == 0 => '.',
            None => '~',
        };
        coefficients.map(mark).collect()
    }
}

/// Adds a product modulo X^N + 1.
fn add_product(sum: &mut [i64], input: &[u64], kernel: &[i32]) {
    let n = sum.len();
    for (i, &code) in input.iter().enumerate() {
        for (j, &weight) in kernel.iter().enumerate() {
            let sign = if i + j < n { 1 } else { -1 };
            sum[(i + j) % n] += sign * code as i64 * i64::from(weight);
        }
    }
}

/// One merge of two ciphertexts, E and O, step by step.
pub struct Merge {
    pub even: Vec<i64>,
    pub odd: Vec<i64>,
    /// X^h O.
    pub moved: Vec<i64>,
    /// E + X^h O.
    pub sum: Vec<i64>,
    /// E - X^h O.
    pub difference: Vec<i64>,
    /// sigma(E - X^h O).
    pub turned: Vec<i64>,
    /// The sum of the two: twice the results.
    pub doubled: Vec<i64>,
    pub half: Vec<i64>,
}

impl Merge {
    /// Merges with `step` for h.
    pub fn new(even: Vec<i64>, odd: Vec<i64>, step: usize) -> Merge {
        let element = merging_element(even.len(), step) as usize;
        let add = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        let subtract = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let moved = moved(&odd, |exponent| exponent + step);
        let (sum, difference) = (add(&even, &moved), subtract(&even, &moved));
        let turned = self::moved(&difference, |exponent| exponent * element);
        let doubled = add(&sum, &turned);
        assert!(doubled.iter().all(|value| value % 2 == 0), "what does not cancel doubles");
        let half = doubled.iter().map(|value| value / 2).collect();
        Merge { even, odd, moved, sum, difference, turned, doubled, half }
    }
}

/// Puts each coefficient at another exponent, where X^N is -1.
fn moved(a: &[i64], to: impl Fn(usize) -> usize) -> Vec<i64> {
    let n = a.len();
    let mut result = vec![0; n];
    for (exponent, value) in a.iter().enumerate() {
        let (wraps, exponent) = (to(exponent) / n, to(exponent) % n);
        result[exponent] = if wraps.is_multiple_of(2) { *value } else { -value };
    }
    result
}
