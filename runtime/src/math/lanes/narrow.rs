//! Arithmetic for primes below 2^30: three 32-bit multiplications a product.

use super::{Lanes, Modulus, Planes, Residues, SumForm, Table, quotients};

/// Lazy arithmetic with laziness 2: values lie below 4p < 2^32, so a lane's high half is zero.
#[derive(Clone, Copy)]
pub(in crate::math) struct Narrow<L: Lanes> {
    lanes: L,
    modulus: L::Vector,
    twice: L::Vector,
    /// floor(2^(bits + 31) / p), below 2^32.
    product_ratio: L::Vector,
    bits: u32,
    /// 2^32 mod p.
    half_word: L::Vector,
    low_half: L::Vector,
}

impl<L: Lanes> Narrow<L> {
    /// Prepares the arithmetic.
    #[inline(always)]
    pub fn new(lanes: L, modulus: Modulus) -> Self {
        debug_assert!(modulus.bits() <= 30);
        Self {
            lanes,
            modulus: lanes.splat(modulus.value()),
            twice: lanes.splat(2 * modulus.value()),
            // floor(floor(r * 2^32) / 2^32) = floor(r): the 64-bit ratio holds the 32-bit one.
            product_ratio: lanes.splat(modulus.product_ratio() >> 32),
            bits: modulus.bits(),
            half_word: lanes.splat(half_word(modulus)),
            low_half: lanes.splat(u64::from(u32::MAX)),
        }
    }
}

impl<L: Lanes> Residues for Narrow<L> {
    type Lanes = L;
    /// The residue in the low half of a lane and its 32-bit quotient, also in the low half.
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
        self.twice
    }

    fn table(modulus: Modulus, constants: &[u64]) -> Table {
        // Packed into one word, w' above w: half the memory traffic, for one shift.
        let packed = quotients(modulus, constants, 32).iter().zip(constants).map(|(q, w)| q << 32 | w).collect();
        Table { values: packed, quotients: Vec::new() }
    }

    #[inline(always)]
    fn constant(self, table: &Table, index: usize) -> Self::Constant {
        let packed = table.values[index];
        // A multiplication reads the low half only, so the quotient above the residue does no harm.
        (self.lanes.splat(packed), self.lanes.splat(packed >> 32))
    }

    #[inline(always)]
    fn constants(self, table: &Table, index: usize, stride: usize) -> Self::Constant {
        let packed = self.lanes.load_spread(&table.values[index..][..L::LANES / stride], stride);
        (packed, self.lanes.shift_right(packed, 32))
    }

    /// q = floor(x w' / 2^32) exceeds xw/p - x/2^32 - 1 and x < 2^32, so xw - qp < 2p.
    #[inline(always)]
    fn mul(self, x: L::Vector, (value, quotient): Self::Constant) -> L::Vector {
        let lanes = self.lanes;
        let multiple = lanes.shift_right(lanes.mul_32(x, quotient), 32);
        lanes.sub(lanes.mul_32(x, value), lanes.mul_32(multiple, self.modulus))
    }

    #[inline(always)]
    fn fold(self, x: L::Vector) -> L::Vector {
        self.lanes.sub_once_32(x, self.twice)
    }

    #[inline(always)]
    fn canonical(self, x: L::Vector) -> L::Vector {
        self.sub_modulus_once(self.fold(x))
    }

    #[inline(always)]
    fn reduce_multiple(self, x: L::Vector) -> L::Vector {
        self.sub_modulus_once(x)
    }

    #[inline(always)]
    fn sub_modulus_once(self, x: L::Vector) -> L::Vector {
        self.lanes.sub_once_32(x, self.modulus)
    }

    /// Barrett as in [`Modulus::mul`], with 32 for 64: z1 = floor(z / 2^(b-1)) < 2^(b+1) <= 2^31 and
    /// q = floor(z1 * floor(2^(b+31)/p) / 2^32), so z - qp < 2.5 p.
    #[inline(always)]
    fn product(self, x: L::Vector, y: L::Vector) -> L::Vector {
        let lanes = self.lanes;
        let z = lanes.mul_32(x, y);
        let multiple = lanes.mul_32(lanes.shift_right(z, self.bits - 1), self.product_ratio);
        self.canonical(lanes.sub(z, lanes.mul_32(lanes.shift_right(multiple, 32), self.modulus)))
    }
    const PLANES: usize = 1;

    /// One plane, for products below 2^60: at least 11 fit beside what `make_room` leaves.
    fn sum_form(modulus: Modulus) -> SumForm {
        let left = ((1 << 32) - 1) * half_word(modulus) + ((1 << 32) - 1);
        let largest = (modulus.value() - 1).pow(2);
        SumForm { weights: vec![1], capacity: ((u64::MAX - left) / largest) as usize, makes_room: true }
    }

    /// Folds the high half onto the low one: h 2^32 + l = h (2^32 mod p) + l < 2^62 + 2^32.
    #[inline(always)]
    fn make_room(self, [sum, ..]: Planes<Self>) -> Planes<Self> {
        let lanes = self.lanes;
        let high = lanes.mul_32(lanes.shift_right(sum, 32), self.half_word);
        [lanes.add(high, lanes.and(sum, self.low_half)), lanes.splat(0), lanes.splat(0)]
    }

    #[inline(always)]
    fn add_product(self, [sum, ..]: Planes<Self>, x: L::Vector, y: L::Vector) -> Planes<Self> {
        let lanes = self.lanes;
        [lanes.add(sum, lanes.mul_32(x, y)), lanes.splat(0), lanes.splat(0)]
    }
}

/// Returns 2^32 mod p.
fn half_word(modulus: Modulus) -> u64 {
    modulus.reduce(1 << 32)
}
