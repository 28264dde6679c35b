//! The server: it owns the weights, works on what it cannot read, and never sees a secret key.
//!
//! A [`Server`] holds the weights made ready for products, once, for all clients; a [`Session`] adds one client's
//! Galois keys. Each family of packings has a folder, of how its stages are prepared and evaluated. Everything runs on
//! rayon's threads.

mod coefficients;
mod prepare;
mod slots;
mod tally;

#[cfg(test)]
mod failures;

use std::sync::Arc;

use chococ_plans::check::CheckedPlan;
use chococ_plans::weights::Weights;

use crate::bfv::context::Context;
use crate::bfv::galois::{GaloisKeys, SeededGaloisKey};
use crate::bfv::reply::Reply;
use crate::contexts::Contexts;
use crate::error::Error;
use crate::wire::header::{fingerprint, stage_of};
use crate::wire::{Kind, MessageError, galois, reply, request};
use prepare::{PreparedStage, prepare};
use rayon::prelude::*;

pub use tally::Operations;
use tally::Tally;

/// The server's side of one plan.
pub struct Server {
    plan: Arc<CheckedPlan>,
    fingerprint: [u8; 4],
    contexts: Contexts,
    stages: Vec<PreparedStage>,
}

/// A client's Galois keys, and what has been done with them.
pub struct Session<'a> {
    server: &'a Server,
    /// One set a key set of the plan.
    keys: Vec<GaloisKeys>,
    tally: Tally,
}

impl Server {
    /// Lays out, encodes and transforms all weights, masks and biases; the more threads the faster.
    ///
    /// `progress` is told after each stage how many are ready, and how many there are.
    ///
    /// # Errors
    /// [`Error::Weights`], where the weights lack a layer of the plan; [`Error::Parameters`], where a plan's
    /// parameters are beyond what this library computes with.
    pub fn new(plan: Arc<CheckedPlan>, weights: &Weights, progress: &dyn Fn(usize, usize)) -> Result<Server, Error> {
        let contexts = Contexts::new(&plan)?;
        let mut stages = Vec::new();
        for (index, checked) in plan.server_stages().enumerate() {
            stages.push(prepare(contexts.stage(index), checked, weights)?);
            progress(stages.len(), plan.server_stages().len());
        }
        Ok(Server { fingerprint: fingerprint(&plan), plan, contexts, stages })
    }

    /// Memory that the prepared weights take, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.stages.iter().map(PreparedStage::size_bytes).sum()
    }

    /// Opens a session with the client's message of Galois keys.
    ///
    /// # Errors
    /// [`Error::Message`], when it is not the message that this plan calls for.
    pub fn session(&self, galois_keys: &[u8]) -> Result<Session<'_>, Error> {
        let address = galois::address(&self.plan, self.fingerprint);
        let contexts: Vec<&Context> = self.contexts.key_sets().collect();
        let sets =
            galois::read(address, &self.plan, &contexts, galois_keys).map_err(Error::message(Kind::GaloisKeys))?;
        let expand = |(keys, context): (Vec<SeededGaloisKey>, &Context)| {
            let expanded = keys.into_par_iter().map(|key| {
                key.expand(context).expect("a checked plan that rotates has a key-switching prime and odd elements")
            });
            expanded.collect::<Vec<_>>().into_iter().collect()
        };
        let keys = sets.into_iter().zip(contexts).map(expand).collect();
        Ok(Session { server: self, keys, tally: Tally::default() })
    }
}

impl Session<'_> {
    /// Answers a request: evaluates its stage, switches the modulus, and writes the reply.
    ///
    /// Requests may come in any order, from several threads at once, and any number of times.
    ///
    /// # Errors
    /// [`Error::Message`], when it is no request that this plan calls for.
    pub fn answer(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let server = self.server;
        let found = stage_of(bytes).map_err(Error::message(Kind::Request))?;
        let index = usize::from(found);
        let no_stage = MessageError::NoStage { found, stages: server.stages.len() };
        let (checked, prepared) = server
            .plan
            .server_stages()
            .zip(&server.stages)
            .nth(index)
            .ok_or(no_stage)
            .map_err(Error::message(Kind::Request))?;
        let key_set = checked.stage.key_set;
        let context = server.contexts.stage(index);
        let inputs =
            request::read(checked, index, server.fingerprint, context, bytes).map_err(Error::message(Kind::Request))?;
        let inputs: Vec<_> = inputs.into_par_iter().map(|input| input.expand(context)).collect();
        let outputs = prepared.evaluate(context, &self.keys[key_set], &inputs, &self.tally);
        let replies = outputs.into_par_iter().enumerate();
        let replies: Vec<Reply> =
            replies.map(|(output, sum)| Reply::new(context, sum, &checked.layout.returned(output))).collect();
        Ok(reply::write(checked, index, server.fingerprint, &replies))
    }

    /// The operations of all answers so far, counted as they were done.
    pub fn operations(&self) -> Operations {
        self.tally.operations()
    }
}
