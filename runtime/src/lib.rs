//! Software BFV, and the client and server that carry out a plan with it.
//!
//! Arithmetic, from the bottom up:
//! - [`math`]: residues, transforms, polynomials, sampling; knows nothing of encryption
//! - [`bfv`]: the encryption scheme, one verb a file; [`contexts`]: made ready for a plan
//!
//! Carrying out a plan:
//! - [`client`]: secret keys, and everything in the clear; no weights
//! - [`server`]: weights, and nothing in the clear; no secret keys
//! - [`wire`]: what crosses between them, as bytes
//! - [`reference`](mod@reference): the same plan without encryption, for comparison
//!
//! ```no_run
//! # use chococ_runtime::{ChaCha20, Client, Server, Turn};
//! # fn run(plan: &std::path::Path, input: &[f32]) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
//! use chococ_plans::file;
//!
//! let checked = std::sync::Arc::new(file::read_plan(plan)?);
//! let server = Server::new(checked.clone(), &file::read_weights(plan, checked.plan())?, &|_, _| {})?;
//!
//! let mut rng: ChaCha20 = rand::make_rng();
//! let client = Client::new(checked, &mut rng)?;
//! let session = server.session(&client.galois_keys(&mut rng))?;
//!
//! let (mut inference, mut turn) = client.start(input, &mut rng)?;
//! let answer = loop {
//!     match turn {
//!         Turn::Send(request) => turn = inference.resume(&session.answer(&request)?, &mut rng)?,
//!         Turn::Done(answer) => break answer,
//!     }
//! };
//! # Ok(answer)
//! # }
//! ```

pub mod bfv;
pub mod client;
pub mod contexts;
mod error;
pub mod math;
pub mod reference;
pub mod server;
mod values;
pub mod wire;

pub use client::{Client, Inference, Turn};
pub use error::Error;
pub use math::chacha::ChaCha20;
pub use server::{Server, Session};
