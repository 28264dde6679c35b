//! Long sums of products, reduced once: the server's inner loop.

use super::kernel::{self, Kernel, Task};
use super::lanes::{Lanes, Residues, SumForm, Vector};
use super::modulus::Modulus;

/// Sums of products a_i b_i, one for each of N words, with one reduction at the end.
///
/// A product costs two or three vector instructions without reduction. The sum is held in one to three planes of
/// 64-bit words, chosen by kernel and modulus; when they could overflow they are reduced on the way, which is rare.
/// Time does not depend on the words, but the planes are not wiped: sum secrets elsewhere.
pub struct LazyAccumulator {
    modulus: Modulus,
    kernel: Kernel,
    form: SumForm,
    length: usize,
    /// The planes, one after the other, each of N words.
    planes: Vec<u64>,
    /// Upper bound on the products in the planes since they were last reduced.
    products: usize,
}

/// One term a * b of a sum: two slices of N reduced words.
pub type Term<'a> = (&'a [u64], &'a [u64]);

impl LazyAccumulator {
    /// Makes an empty sum for residues of `length` words.
    pub fn new(modulus: Modulus, length: usize) -> Self {
        Self::with_kernel(modulus, length, Kernel::best())
    }

    fn with_kernel(modulus: Modulus, length: usize, kernel: Kernel) -> Self {
        let mut form = None;
        kernel::run(kernel, modulus, AskForm { modulus, form: &mut form });
        let form = form.expect("the task has run");
        let planes = vec![0; form.weights.len() * length];
        Self { modulus, kernel, form, length, planes, products: 0 }
    }

    /// Adds one product, word by word.
    ///
    /// # Panics
    /// When a slice has not the length of the sum.
    pub fn add_product(&mut self, a: &[u64], b: &[u64]) {
        self.add_products(&[(a, b)]);
    }

    /// Adds several products; the more at once, the less often the sum goes through memory.
    ///
    /// # Panics
    /// As for [`add_product`](Self::add_product).
    pub fn add_products(&mut self, terms: &[Term<'_>]) {
        assert!(terms.iter().all(|(a, b)| a.len() == self.length && b.len() == self.length), "terms have N words");
        // One place is kept for the residue that a reduction on the way leaves.
        for terms in terms.chunks(self.form.capacity - 1) {
            if self.form.makes_room {
                self.products = 0;
            } else if self.products + terms.len() > self.form.capacity {
                self.reduce();
            }
            self.products += terms.len();
            let task = AddProducts { terms, planes: &mut self.planes, length: self.length, modulus: self.modulus };
            kernel::run(self.kernel, self.modulus, task);
        }
    }

    /// Writes the sum, reduced, and empties it.
    ///
    /// # Panics
    /// When `out` has not the length of the sum.
    pub fn finish(&mut self, out: &mut [u64]) {
        assert_eq!(out.len(), self.length, "the sum has N words");
        self.reduce();
        out.copy_from_slice(&self.planes[..self.length]);
        self.planes[..self.length].fill(0);
        self.products = 0;
    }

    /// Brings the sum into the first plane as reduced words, and empties the others.
    fn reduce(&mut self) {
        let task = Reduce { modulus: self.modulus, weights: &self.form.weights, planes: &mut self.planes };
        kernel::run_wide(self.kernel, self.modulus, task);
        // A residue is no more than the largest product.
        self.products = 1;
    }
}

struct AskForm<'a> {
    modulus: Modulus,
    form: &'a mut Option<SumForm>,
}

impl Task for AskForm<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, _residues: R) {
        *self.form = Some(R::sum_form(self.modulus));
    }
}

struct AddProducts<'a> {
    terms: &'a [Term<'a>],
    planes: &'a mut [u64],
    length: usize,
    modulus: Modulus,
}

impl Task for AddProducts<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        // Several registers of words at a time, so that additions to one sum need not wait for each other.
        let unrolled = UNROLL * R::Lanes::LANES;
        let mut start = 0;
        while start + unrolled <= self.length {
            add_products::<R, UNROLL>(r, self.terms, self.planes, self.length, start);
            start += unrolled;
        }
        while start + R::Lanes::LANES <= self.length {
            add_products::<R, 1>(r, self.terms, self.planes, self.length, start);
            start += R::Lanes::LANES;
        }
        self.add_rest(start);
    }
}

/// Registers of words summed together.
const UNROLL: usize = 4;

/// Adds all terms at words `start..start + COUNT * LANES`.
#[inline(always)]
fn add_products<R: Residues, const COUNT: usize>(
    r: R,
    terms: &[Term<'_>],
    planes: &mut [u64],
    length: usize,
    start: usize,
) {
    let lanes = r.lanes();
    let mut sums = [[lanes.splat(0); 3]; COUNT];
    for (i, sum) in sums.iter_mut().enumerate() {
        for plane in 0..R::PLANES {
            sum[plane] = lanes.load(&planes[plane * length + start + i * R::Lanes::LANES..]);
        }
        *sum = r.make_room(*sum);
    }
    for (a, b) in terms {
        let (a, b) = (&a[start..][..COUNT * R::Lanes::LANES], &b[start..][..COUNT * R::Lanes::LANES]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let x: Vector<R> = lanes.load(&a[i * R::Lanes::LANES..]);
            *sum = r.add_product(*sum, x, lanes.load(&b[i * R::Lanes::LANES..]));
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        for plane in 0..R::PLANES {
            lanes.store(&mut planes[plane * length + start + i * R::Lanes::LANES..], sum[plane]);
        }
    }
}

impl AddProducts<'_> {
    /// Adds all terms at the words from `start` on, too few for a register.
    fn add_rest(self, start: usize) {
        for i in start..self.length {
            let sum = self.terms.iter().fold(0, |sum, (a, b)| self.modulus.add(sum, self.modulus.mul(a[i], b[i])));
            self.planes[i] = self.modulus.add(self.modulus.reduce(self.planes[i]), sum);
        }
    }
}

struct Reduce<'a> {
    modulus: Modulus,
    weights: &'a [u64],
    planes: &'a mut [u64],
}

impl Task for Reduce<'_> {
    /// Needs an arithmetic whose multiplication takes any word.
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let lanes = r.lanes();
        let table = R::table(self.modulus, self.weights);
        let (first, others) = self.planes.split_at_mut(self.planes.len() / self.weights.len());
        let whole = first.len() - first.len() % R::Lanes::LANES;
        for start in (0..whole).step_by(R::Lanes::LANES) {
            let mut sum = r.mul(lanes.load(&first[start..]), r.constant(&table, 0));
            for (i, plane) in others.chunks_exact_mut(first.len()).enumerate() {
                let part = r.mul(lanes.load(&plane[start..]), r.constant(&table, i + 1));
                sum = r.fold(lanes.add(sum, part));
                lanes.store(&mut plane[start..], lanes.splat(0));
            }
            lanes.store(&mut first[start..], r.canonical(sum));
        }
        // Words too few for a register are in the first plane alone.
        first[whole..].iter_mut().for_each(|word| *word = self.modulus.reduce(*word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    fn residues(p: Modulus, seed: u64, length: usize) -> Vec<u64> {
        let words = (1..=length as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed).rotate_left(31));
        words.map(|x| if x % 3 == 0 { p.value() - 1 } else { p.reduce(x) }).collect()
    }

    fn kernels() -> impl Iterator<Item = Kernel> {
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    fn prime(bits: u32) -> Modulus {
        Modulus::new(ntt_primes_below(bits, 16).next().expect("16 is small"))
    }

    proptest! {
        #[test]
        fn sums_are_those_of_reduced_products(bits in 14u32..=61, length in 0usize..70, terms in 0usize..40, seed: u64) {
            let p = prime(bits);
            let a: Vec<_> = (0..terms as u64).map(|i| residues(p, seed ^ i, length)).collect();
            let b: Vec<_> = (0..terms as u64).map(|i| residues(p, seed ^ (i << 32), length)).collect();
            let term = |i: usize| a.iter().zip(&b).fold(0, |sum, (a, b)| p.add(sum, p.mul(a[i], b[i])));
            let expected: Vec<u64> = (0..length).map(term).collect();
            for kernel in kernels() {
                let mut sum = LazyAccumulator::with_kernel(p, length, kernel);
                let mut found = vec![1; length];
                a.iter().zip(&b).for_each(|(a, b)| sum.add_product(a, b));
                sum.finish(&mut found);
                prop_assert_eq!(&found, &expected, "one by one, {:?}", kernel);
                let pairs: Vec<Term> = a.iter().zip(&b).map(|(a, b)| (&a[..], &b[..])).collect();
                sum.add_products(&pairs[..terms / 3]);
                sum.add_products(&pairs[terms / 3..]);
                sum.finish(&mut found);
                prop_assert_eq!(&found, &expected, "together, {:?}", kernel);
            }
        }
    }

    #[test]
    fn the_largest_products_do_not_overflow_a_long_sum() {
        for p in (14..=61).map(prime) {
            let largest = [p.value() - 1; 17];
            for kernel in kernels() {
                let mut sum = LazyAccumulator::with_kernel(p, 17, kernel);
                let count = 9000;
                sum.add_products(&vec![(&largest[..], &largest[..]); count - 1]);
                sum.add_product(&largest, &largest);
                let mut found = [0; 17];
                sum.finish(&mut found);
                assert_eq!(found, [p.reduce(count as u64); 17], "(-1)^2, {count} times, p {}, {kernel:?}", p.value());
            }
        }
    }
}
