//! Client and server of one plan, set up in one process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chococ_plans::check::CheckedPlan;
use chococ_plans::file::{read_plan, read_weights};
use chococ_plans::weights::Weights;
use chococ_runtime::client::{StageRecord, Watch};
use chococ_runtime::{ChaCha20, Client, Server, Session, Turn};
use indicatif::{ProgressBar, ProgressStyle};
use rand::SeedableRng;

use crate::failure::Failure;
use crate::{Common, tell};

/// A plan with its weights.
pub struct Loaded {
    /// The plan.
    pub plan: Arc<CheckedPlan>,
    /// The server's weights, and those they were rounded from.
    pub weights: Weights,
}

impl Common {
    /// Sets the threads up and reads the plan.
    pub fn load(&self) -> Result<Loaded, Failure> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
        }
        let plan = read_plan(&self.plan)?;
        let weights = read_weights(&self.plan, plan.plan())?;
        Ok(Loaded { plan: Arc::new(plan), weights })
    }

    /// Where randomness comes from: the operating system, unless a seed was given.
    pub fn rng(&self) -> ChaCha20 {
        match self.seed {
            Some(seed) => {
                tell("note: `--seed` makes keys that anyone can compute: for tests only\n");
                ChaCha20::seed_from_u64(seed)
            }
            None => rand::make_rng(),
        }
    }
}

/// The server, its weights ready, and the client with its keys.
pub struct Sides {
    /// Owns the secret keys.
    pub client: Client,
    /// Owns the weights.
    pub server: Server,
    /// The message with which every session begins.
    pub galois_keys: Vec<u8>,
    /// Time that the client took to make its keys.
    pub keys_time: Duration,
}

/// One inference.
pub struct Inferred {
    /// The network's answer.
    pub output: Vec<f32>,
    /// What the client recorded of each stage.
    pub records: Vec<StageRecord>,
    /// Time that the server took for each stage.
    pub server: Vec<Duration>,
    /// Time for the client's operators behind the last stage.
    pub tail: Duration,
}

impl Sides {
    /// Prepares weights and keys.
    pub fn new(loaded: &Loaded, watch: Watch, rng: &mut ChaCha20) -> Result<Sides, Failure> {
        let bar = progress("preparing weights", loaded.plan.server_stages().len());
        let server = Server::new(loaded.plan.clone(), &loaded.weights, &|ready, _| bar.set_position(ready as u64))?;
        bar.finish_and_clear();
        let begun = Instant::now();
        let client = Client::new(loaded.plan.clone(), rng)?.watch(watch);
        let galois_keys = client.galois_keys(rng);
        Ok(Sides { client, server, galois_keys, keys_time: begun.elapsed() })
    }

    /// Runs one inference, from input to answer.
    pub fn infer(&self, session: &Session<'_>, input: &[f32], rng: &mut ChaCha20) -> Result<Inferred, Failure> {
        let mut server = Vec::new();
        let (mut inference, mut turn) = self.client.start(input, rng)?;
        loop {
            match turn {
                Turn::Send(request) => {
                    let asked = Instant::now();
                    let reply = session.answer(&request)?;
                    server.push(asked.elapsed());
                    tracing::info!(stage = server.len(), up = request.len(), down = reply.len(), "answered");
                    turn = inference.resume(&reply, rng)?;
                }
                Turn::Done(output) => {
                    let (records, tail) = (inference.records().to_vec(), inference.tail());
                    return Ok(Inferred { output, records, server, tail });
                }
            }
        }
    }
}

/// A progress bar on standard error, if that is a terminal.
pub fn progress(what: &'static str, length: usize) -> ProgressBar {
    let bar = ProgressBar::new(length as u64);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta})");
    bar.set_style(style.expect("a template of known fields"));
    bar.set_message(what);
    bar
}

/// The class with the largest score, the first of equals.
pub fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
}
