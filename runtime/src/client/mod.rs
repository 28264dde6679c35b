//! The client: it owns the secret keys, sees everything in the clear, and needs no weights.
//!
//! An [`Inference`] is a state machine: it says what to send, is resumed with what came back, and in the end has the
//! answer. How bytes travel is its user's business. Beside the messages it holds one ciphertext at a time.

mod inference;
mod keys;
mod record;

use std::sync::Arc;

use chococ_plans::check::{CheckedPlan, CheckedStage};
use chococ_plans::packing::moves::Moves;
use rand::CryptoRng;

use crate::bfv::keys::{ReplyKey, SecretKey};
use crate::contexts::Contexts;
use crate::error::Error;
use crate::wire::header::fingerprint;

pub use inference::{Inference, Turn};
pub use record::{StageRecord, Watch};

/// The client's side of one plan. It can run any number of inferences, one after the other or at once.
///
/// It does not print or serialise: its secret keys stay where they were drawn, and are wiped when it is dropped.
pub struct Client {
    plan: Arc<CheckedPlan>,
    fingerprint: [u8; 4],
    contexts: Contexts,
    /// One a key set.
    secrets: Vec<SecretKey>,
    /// One a server stage.
    reply_keys: Vec<ReplyKey>,
    /// One a server stage.
    moves: Vec<Moves>,
    watch: Watch,
}

impl Client {
    /// Draws a secret key for each key set of the plan, in order, from `rng`.
    ///
    /// Whoever knows what `rng` yields knows the keys: it must be seeded by the operating system, except in tests.
    ///
    /// # Errors
    /// [`Error::Parameters`], where a plan's parameters are beyond what this library computes with.
    pub fn new(plan: Arc<CheckedPlan>, rng: &mut impl CryptoRng) -> Result<Client, Error> {
        let contexts = Contexts::new(&plan)?;
        let secrets: Vec<SecretKey> = contexts.key_sets().map(|context| SecretKey::generate(context, rng)).collect();
        let stages = plan.server_stages().enumerate();
        let reply_key = |(index, checked): (usize, CheckedStage<'_>)| {
            ReplyKey::new(contexts.stage(index), &secrets[checked.stage.key_set])
        };
        let reply_keys = stages.map(reply_key).collect();
        let moves = plan.server_stages().map(|checked| Moves::new(checked.layout)).collect();
        let fingerprint = fingerprint(&plan);
        Ok(Client { plan, fingerprint, contexts, secrets, reply_keys, moves, watch: Watch::default() })
    }

    /// Sets what later inferences record beside times and sizes.
    pub fn watch(mut self, watch: Watch) -> Client {
        self.watch = watch;
        self
    }

    /// Starts an inference: computes up to the first request, or to the answer if there is none.
    ///
    /// `input` is row-major, of the plan's input shape. Errors of encryption and the request's seed come from `rng`.
    ///
    /// # Errors
    /// [`Error::InputLength`] and [`Error::InputNotFinite`].
    pub fn start(&self, input: &[f32], rng: &mut impl CryptoRng) -> Result<(Inference<'_>, Turn), Error> {
        Inference::start(self, input, rng)
    }
}

#[cfg(test)]
mod tests {
    /// The client must stay small and must not come near what only its counterpart may know.
    #[test]
    fn client_code_imports_neither_weights_nor_the_other_side() {
        let sources = [
            include_str!("mod.rs"),
            include_str!("inference.rs"),
            include_str!("keys.rs"),
            include_str!("record.rs"),
            include_str!("../values.rs"),
        ];
        for source in sources {
            let code = source.split("#[cfg(test)]").next().expect("split gives at least one part");
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in lines {
                let forbidden = ["server::", "Server::new", "weights", "Weights", "linear_integers", "linear_floats"];
                assert!(forbidden.iter().all(|word| !line.contains(word)), "{line}");
            }
        }
    }
}
