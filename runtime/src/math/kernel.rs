//! The vector instructions a transform or a product runs on, chosen at run time.

use super::lanes::{Narrow, Residues, Scalar, Wide};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2, avx512, ifma, roomy};
use super::modulus::Modulus;

/// Moduli below this have the narrow arithmetic: 4p fits 32 bits.
const NARROW: u64 = 1 << 30;

/// A set of vector instructions.
///
/// The kernels differ in speed alone: each gives fully reduced residues, so results are equal bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain 64-bit integers; runs everywhere.
    Scalar,
    /// Four lanes of 64 bits.
    Avx2,
    /// Eight lanes of 64 bits (AVX-512 F and DQ).
    Avx512,
    /// Eight lanes with 52-bit multiply-add, for moduli below 2^50; wider ones as [`Avx512`](Self::Avx512).
    Avx512Ifma,
}

impl Kernel {
    /// Lists every kernel, slowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Avx2, Self::Avx512, Self::Avx512Ifma];

    /// Returns the fastest kernel this machine runs.
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|kernel| kernel.is_available()).expect("scalar code runs everywhere")
    }

    /// Says whether this machine has the kernel's instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => ifma::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 | Self::Avx512Ifma => false,
        }
    }
}

/// A piece of work written once for all kernels.
pub(super) trait Task {
    /// Does the work with the given arithmetic; must be `#[inline(always)]`, so that it takes on the instructions of
    /// the function it is expanded in.
    fn run<R: Residues>(self, residues: R);
}

/// Runs a task on a kernel, with the cheapest arithmetic the modulus allows.
///
/// # Panics
/// When the machine lacks the kernel.
pub(super) fn run(kernel: Kernel, modulus: Modulus, task: impl Task) {
    let narrow = modulus.value() < NARROW;
    match kernel {
        Kernel::Scalar if narrow => task.run(Narrow::new(Scalar, modulus)),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::run(modulus, narrow, task),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512Ifma if modulus.bits() <= 50 && !narrow => ifma::run(modulus, task),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 | Kernel::Avx512Ifma => avx512::run(modulus, narrow, task),
        _ => run_wide(kernel, modulus, task),
    }
}

/// Runs a transform of a ring degree, at least 32 where the kernel is a vector one: as [`run`], but with an arithmetic
/// that has room for the whole of it where the modulus leaves some.
///
/// # Panics
/// When the machine lacks the kernel.
pub(super) fn run_transform(kernel: Kernel, modulus: Modulus, ring_degree: usize, task: impl Task) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512Ifma if roomy::fits(ring_degree, modulus) => roomy::run(modulus, task),
        _ => run(kernel, modulus, task),
    }
}

/// Runs a task on a kernel, with the arithmetic whose multiplication by a constant takes any word.
///
/// # Panics
/// When the machine lacks the kernel.
pub(super) fn run_wide(kernel: Kernel, modulus: Modulus, task: impl Task) {
    match kernel {
        Kernel::Scalar => task.run(Wide::new(Scalar, modulus)),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::run(modulus, false, task),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 | Kernel::Avx512Ifma => avx512::run(modulus, false, task),
        #[cfg(not(target_arch = "x86_64"))]
        _ => panic!("this machine lacks the instructions of {kernel:?}"),
    }
}
