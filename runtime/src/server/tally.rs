//! Counts operations as they are done, so that what plans state about costs can be held against them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Operations on ciphertexts, as [`Cost`](chococ_plans::cost::Cost) counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rotations of inputs, their decomposition shared.
    pub hoisted_rotations: usize,
    /// Rotations of sums and totals.
    pub rotations: usize,
    /// Products with weights.
    pub products: usize,
    /// Products with masks.
    pub mask_products: usize,
}

/// Counters that several threads add to. Relaxed order will do: nothing else is published through them.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub hoisted_rotations: Counter,
    pub rotations: Counter,
    pub products: Counter,
    pub mask_products: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicUsize);

impl Counter {
    pub fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub fn operations(&self) -> Operations {
        Operations {
            hoisted_rotations: self.hoisted_rotations.get(),
            rotations: self.rotations.get(),
            products: self.products.get(),
            mask_products: self.mask_products.get(),
        }
    }
}
