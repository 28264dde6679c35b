//! The Galois keys that the client makes for its counterpart, once a session.

use rand::CryptoRng;

use super::Client;
use crate::bfv::galois::SeededGaloisKey;
use crate::wire::galois;

impl Client {
    /// Makes the one message with all Galois keys: what every session sends first, even if there are none.
    ///
    /// Each call draws new seeds and errors from `rng`; any of the messages serves.
    pub fn galois_keys(&self, rng: &mut impl CryptoRng) -> Vec<u8> {
        let mut bytes = galois::begin(galois::address(&self.plan, self.fingerprint), &self.plan);
        let key_sets = self.plan.plan().key_sets.iter().zip(self.contexts.key_sets()).zip(&self.secrets);
        for ((set, context), secret) in key_sets {
            if set.galois.is_empty() {
                continue;
            }
            let mut seed = [0; 32];
            rng.fill_bytes(&mut seed);
            galois::append_seed(&mut bytes, seed);
            for (stream, &element) in (0..).zip(&set.galois) {
                let key = SeededGaloisKey::generate(context, secret, element, seed, stream, rng)
                    .expect("a checked plan that rotates has a key-switching prime, and elements are odd below 2N");
                galois::append(&mut bytes, context, &key);
            }
        }
        bytes
    }
}
