//! ChaCha20 as a generator: the streams of [`ChaCha20Rng`], word for word, by wider registers where there are any.

use std::convert::Infallible;

use chacha20::ChaCha20Rng;
use rand::{SeedableRng, TryCryptoRng, TryRng};
#[cfg(target_arch = "x86_64")]
use zeroize::{Zeroize, Zeroizing};

#[cfg(target_arch = "x86_64")]
use super::lanes::chacha;

/// A stream of a seed, from its start: as hard to foretell as the seed is.
///
/// It serves for all that client and server draw, public or secret; what it holds is wiped when it is dropped.
pub struct ChaCha20(Source);

enum Source {
    Portable(Box<ChaCha20Rng>),
    #[cfg(target_arch = "x86_64")]
    Wide(Box<Wide>),
}

/// Blocks made many at a time.
#[cfg(target_arch = "x86_64")]
struct Wide {
    key: [u32; 8],
    stream: u64,
    /// The block behind those in the buffer.
    next: u64,
    buffer: [u8; chacha::BYTES],
    /// Bytes of the buffer that are used up.
    used: usize,
}

impl ChaCha20 {
    /// Opens stream `stream` of a seed.
    pub fn new(seed: [u8; 32], stream: u64) -> Self {
        #[cfg(target_arch = "x86_64")]
        if chacha::is_available() {
            let seed = Zeroizing::new(seed);
            let (buffer, used) = ([0; chacha::BYTES], chacha::BYTES);
            // The key is written where it stays.
            let mut wide = Box::new(Wide { key: [0; 8], stream, next: 0, buffer, used });
            let words = wide.key.iter_mut().zip(seed.as_chunks().0);
            words.for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
            return Self(Source::Wide(wide));
        }
        Self::portable(seed, stream)
    }

    fn portable(seed: [u8; 32], stream: u64) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(stream);
        Self(Source::Portable(Box::new(rng)))
    }
}

impl SeedableRng for ChaCha20 {
    type Seed = [u8; 32];

    fn from_seed(seed: [u8; 32]) -> Self {
        Self::new(seed, 0)
    }
}

impl TryRng for ChaCha20 {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut word = [0; 4];
        self.try_fill_bytes(&mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut word = [0; 8];
        self.try_fill_bytes(&mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        match &mut self.0 {
            Source::Portable(rng) => rng.try_fill_bytes(bytes),
            #[cfg(target_arch = "x86_64")]
            Source::Wide(wide) => {
                wide.fill(bytes);
                Ok(())
            }
        }
    }
}

/// As strong as the seed is secret.
impl TryCryptoRng for ChaCha20 {}

#[cfg(target_arch = "x86_64")]
impl Drop for Wide {
    fn drop(&mut self) {
        self.key.as_mut_slice().zeroize();
        self.buffer.as_mut_slice().zeroize();
    }
}

#[cfg(target_arch = "x86_64")]
impl Wide {
    /// Gives the next bytes of the stream, by whole words: what is left of the last one is skipped.
    fn fill(&mut self, bytes: &mut [u8]) {
        let buffered = bytes.len().min(chacha::BYTES - self.used);
        let (front, rest) = bytes.split_at_mut(buffered);
        front.copy_from_slice(&self.buffer[self.used..][..buffered]);
        self.used += buffered.next_multiple_of(4);
        let (whole, rest) = rest.as_chunks_mut();
        for blocks in whole {
            chacha::blocks(&self.key, self.stream, self.next, blocks);
            self.next += chacha::BLOCKS;
        }
        if !rest.is_empty() {
            chacha::blocks(&self.key, self.stream, self.next, &mut self.buffer);
            self.next += chacha::BLOCKS;
            rest.copy_from_slice(&self.buffer[..rest.len()]);
            self.used = rest.len().next_multiple_of(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::Rng;

    use super::*;

    proptest! {
        #[test]
        fn the_stream_is_that_of_the_reference(
            seed: [u8; 32],
            stream: u64,
            lengths in prop::collection::vec(0usize..3000, 1..8),
        ) {
            let (mut wide, mut portable) = (ChaCha20::new(seed, stream), ChaCha20::portable(seed, stream));
            for length in lengths {
                let (mut found, mut expected) = (vec![0; length], vec![0; length]);
                wide.fill_bytes(&mut found);
                portable.fill_bytes(&mut expected);
                prop_assert_eq!(found, expected);
                prop_assert_eq!(wide.next_u32(), portable.next_u32());
            }
        }
    }
}
