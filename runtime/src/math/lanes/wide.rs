//! Arithmetic for every prime below 2^61: 64-bit products put together from halves.

use super::{Lanes, Modulus, Planes, Residues, SumForm, Table, quotients};

/// Lazy arithmetic with laziness 4: values lie below 8p < 2^64.
///
/// The high word of a product may come out up to 2 too small, which saves a multiplication and the carries; the
/// headroom of 8p pays for it.
#[derive(Clone, Copy)]
pub(in crate::math) struct Wide<L: Lanes> {
    lanes: L,
    modulus: L::Vector,
    twice: L::Vector,
    four_times: L::Vector,
    product_ratio: L::Vector,
    bits: u32,
    /// 2^h - 1, for operands split at h = ceil(bits / 2) bits.
    low_part: L::Vector,
}

impl<L: Lanes> Wide<L> {
    /// Prepares the arithmetic.
    #[inline(always)]
    pub fn new(lanes: L, modulus: Modulus) -> Self {
        Self {
            lanes,
            modulus: lanes.splat(modulus.value()),
            twice: lanes.splat(2 * modulus.value()),
            four_times: lanes.splat(4 * modulus.value()),
            product_ratio: lanes.splat(modulus.product_ratio()),
            bits: modulus.bits(),
            low_part: lanes.splat((1 << modulus.bits().div_ceil(2)) - 1),
        }
    }
}

impl<L: Lanes> Residues for Wide<L> {
    type Lanes = L;
    /// The residue and its 64-bit quotient.
    type Constant = (L::Vector, L::Vector);

    #[inline(always)]
    fn lanes(self) -> L {
        self.lanes
    }

    #[inline(always)]
    fn modulus(self) -> L::Vector {
        self.modulus
    }

    #[inline(always)]
    fn lazy_bound(self) -> L::Vector {
        self.four_times
    }

    fn table(modulus: Modulus, constants: &[u64]) -> Table {
        Table { values: constants.to_vec(), quotients: quotients(modulus, constants, 64) }
    }

    #[inline(always)]
    fn constant(self, table: &Table, index: usize) -> Self::Constant {
        (self.lanes.splat(table.values[index]), self.lanes.splat(table.quotients[index]))
    }

    #[inline(always)]
    fn constants(self, table: &Table, index: usize, stride: usize) -> Self::Constant {
        let count = L::LANES / stride;
        let value = self.lanes.load_spread(&table.values[index..][..count], stride);
        (value, self.lanes.load_spread(&table.quotients[index..][..count], stride))
    }

    /// x w' / 2^64 falls short of the real quotient xw/p by less than x / 2^64 < 1, and the high word found falls short
    /// of that by less than 3: so xw - qp < 4p, for any word x.
    #[inline(always)]
    fn mul(self, x: L::Vector, (value, quotient): Self::Constant) -> L::Vector {
        let lanes = self.lanes;
        let multiple = lanes.mul_high_about(x, quotient);
        lanes.sub(lanes.mul_low(x, value), lanes.mul_low(multiple, self.modulus))
    }

    #[inline(always)]
    fn fold(self, x: L::Vector) -> L::Vector {
        self.lanes.sub_once(x, self.four_times)
    }

    #[inline(always)]
    fn canonical(self, x: L::Vector) -> L::Vector {
        self.sub_modulus_once(self.lanes.sub_once(self.fold(x), self.twice))
    }

    #[inline(always)]
    fn reduce_multiple(self, x: L::Vector) -> L::Vector {
        self.sub_modulus_once(self.lanes.sub_once(x, self.twice))
    }

    #[inline(always)]
    fn sub_modulus_once(self, x: L::Vector) -> L::Vector {
        self.lanes.sub_once(x, self.modulus)
    }

    /// Barrett on z = xy with b bits: z1 = floor(z / 2^(b-1)) is the high word of (x 2^(64-b)) (2y), found up to 2 too
    /// small, and q the high word of z1 * floor(2^(b+63)/p), again up to 2 too small. The real quotient z/p exceeds q
    /// by less than 3 (from z1), z1 / 2^64 <= 1/4 (from the ratio) and 3 (from q): z - qp < 6.25 p.
    #[inline(always)]
    fn product(self, x: L::Vector, y: L::Vector) -> L::Vector {
        let lanes = self.lanes;
        let top = lanes.mul_high_about(lanes.shift_left(x, 64 - self.bits), lanes.add(y, y));
        let multiple = lanes.mul_high_about(top, self.product_ratio);
        self.canonical(lanes.sub(lanes.mul_low(x, y), lanes.mul_low(multiple, self.modulus)))
    }
    const PLANES: usize = 3;

    /// Three planes, of weights 1, 2^h and 2^2h, for the products of halves of h = ceil(bits / 2) bits. A product adds
    /// less than 2^2h, 2^(bits + 1) and 2^2h to them, so each holds 2^(63 - bits) of them or more.
    fn sum_form(modulus: Modulus) -> SumForm {
        let weight = modulus.reduce(1 << modulus.bits().div_ceil(2));
        let weights = vec![1, weight, modulus.mul(weight, weight)];
        SumForm { weights, capacity: 1 << (63 - modulus.bits()), makes_room: false }
    }

    #[inline(always)]
    fn make_room(self, planes: Planes<Self>) -> Planes<Self> {
        planes
    }

    #[inline(always)]
    fn add_product(self, [low, middle, high]: Planes<Self>, x: L::Vector, y: L::Vector) -> Planes<Self> {
        let lanes = self.lanes;
        let h = self.bits.div_ceil(2);
        let (x_low, x_high) = (lanes.and(x, self.low_part), lanes.shift_right(x, h));
        let (y_low, y_high) = (lanes.and(y, self.low_part), lanes.shift_right(y, h));
        let cross = lanes.add(lanes.mul_32(x_low, y_high), lanes.mul_32(x_high, y_low));
        [
            lanes.add(low, lanes.mul_32(x_low, y_low)),
            lanes.add(middle, cross),
            lanes.add(high, lanes.mul_32(x_high, y_high)),
        ]
    }
}
