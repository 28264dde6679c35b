//! One inference, from the client's side.

use std::time::{Duration, Instant};

use chococ_plans::check::CheckedStage;
use chococ_plans::eval;
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::modulo::reduce_codes;
use chococ_plans::plan::Stage;
use rand::CryptoRng;
use zeroize::Zeroizing;

use super::{Client, StageRecord};
use crate::bfv::ciphertext::SeededCiphertext;
use crate::bfv::context::Context;
use crate::bfv::encode::{Encoder, Plaintext};
use crate::bfv::encrypt::Encryption;
use crate::bfv::reply::{Reply, decrypt_reply_into, measured_reply_budget_bits};
use crate::error::Error;
use crate::values::Values;
use crate::wire::reply::Reader;
use crate::wire::{Kind, request};

/// What an inference wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Send these bytes, and resume with those that come back.
    Send(Vec<u8>),
    /// The network's answer, row-major in its shape.
    Done(Vec<f32>),
}

/// One inference under way.
pub struct Inference<'a> {
    client: &'a Client,
    values: Values,
    /// The stage of the plan to be carried out next.
    next: usize,
    /// The server stage whose reply is awaited; as many are behind it.
    awaited: Option<usize>,
    records: Vec<StageRecord>,
    /// The integers of the last reply: memory that the next one uses again.
    accumulators: Zeroizing<Vec<i64>>,
    /// Time for the client's own operators since the last reply.
    clear: Duration,
    /// Client time behind the last reply, at the end.
    tail: Duration,
}

impl<'a> Inference<'a> {
    pub(super) fn start(
        client: &'a Client,
        input: &[f32],
        rng: &mut impl CryptoRng,
    ) -> Result<(Inference<'a>, Turn), Error> {
        let results = |stage: CheckedStage<'_>| stage.stage.layer.operator.output_shape().iter().product();
        let largest: Option<usize> = client.plan.server_stages().map(results).max();
        let mut inference = Inference {
            client,
            values: Values::new(client.plan.plan(), input)?,
            next: 0,
            awaited: None,
            records: Vec::new(),
            // Room for the largest, so that none are left behind when it grows.
            accumulators: Zeroizing::new(Vec::with_capacity(largest.unwrap_or(0))),
            clear: Duration::ZERO,
            tail: Duration::ZERO,
        };
        let turn = inference.advance(rng);
        Ok((inference, turn))
    }

    /// Takes a reply in and goes on to the next request, or to the answer.
    ///
    /// After an error nothing has changed: the right reply may still come.
    ///
    /// # Errors
    /// [`Error::Message`], when the reply is not the one awaited; [`Error::Ended`], when none is.
    pub fn resume(&mut self, reply: &[u8], rng: &mut impl CryptoRng) -> Result<Turn, Error> {
        let index = self.awaited.ok_or(Error::Ended)?;
        let begun = Instant::now();
        let Received { real, budget_bits, measuring } = self.receive(index, reply)?;
        self.awaited = None;
        let record = &mut self.records[index];
        record.bytes_down = reply.len();
        record.budget_bits = budget_bits;
        let layer = &stage(self.client, index).stage.layer;
        self.values.define(layer.output, layer.operator.output_shape(), real);
        if self.client.watch.integers {
            record.accumulators.clone_from(&self.accumulators);
        }
        record.decrypt = begun.elapsed().saturating_sub(measuring);
        Ok(self.advance(rng))
    }

    /// What was recorded of the server stages so far.
    pub fn records(&self) -> &[StageRecord] {
        &self.records
    }

    /// Time for the client's operators behind the last server stage; zero until the inference is done.
    pub fn tail(&self) -> Duration {
        self.tail
    }

    /// Carries out client stages up to the next server stage, or to the end.
    fn advance(&mut self, rng: &mut impl CryptoRng) -> Turn {
        let client = self.client;
        while let Some(stage) = client.plan.plan().stages.get(self.next) {
            self.next += 1;
            match stage {
                Stage::Client(steps) => {
                    let begun = Instant::now();
                    steps.iter().for_each(|step| self.values.take_step(step));
                    self.clear += begun.elapsed();
                }
                Stage::Server(_) => return Turn::Send(self.send(rng)),
            }
        }
        self.tail = std::mem::take(&mut self.clear);
        Turn::Done(self.values.read(client.plan.plan().output).1)
    }

    /// Encrypts the input of the next server stage: c1 of all its ciphertexts from one new seed.
    fn send(&mut self, rng: &mut impl CryptoRng) -> Vec<u8> {
        let begun = Instant::now();
        let client = self.client;
        let index = self.records.len();
        let checked = stage(client, index);
        let CheckedStage { stage, layout, .. } = checked;
        let (context, secret) = (client.contexts.stage(index), &client.secrets[stage.key_set]);
        let moves = &client.moves[index];
        let (_, tensor) = self.values.read(stage.layer.input);
        let codes = eval::quantize(&stage.layer.quantizer, &tensor);
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let mut bytes = request::begin(checked, index, client.fingerprint, seed);
        let t = context.plaintext_modulus();
        let reduced = reduce_codes(&codes, t);
        let mut plaintext = Plaintext::zero(context);
        let mut slots = vec![0; if encoder(context, layout).is_some() { context.ring_degree() } else { 0 }];
        let mut encryption = Encryption::new(context, secret);
        let mut ciphertext = SeededCiphertext::empty(context);
        for input in 0..layout.inputs() {
            match encoder(context, layout) {
                Some(encoder) => {
                    moves.pack(input, &reduced, t, &mut slots);
                    encoder.encode_into(&slots, &mut plaintext);
                }
                None => plaintext.set(context, |coefficients| moves.pack(input, &reduced, t, coefficients)),
            }
            encryption.encrypt(&plaintext, seed, input as u64, rng, &mut ciphertext);
            request::append(&mut bytes, context, &ciphertext, moves.sent(input));
        }
        self.awaited = Some(index);
        self.records.push(StageRecord {
            clear: std::mem::take(&mut self.clear),
            encrypt: begun.elapsed(),
            bytes_up: bytes.len(),
            codes: if client.watch.integers { codes } else { Vec::new() },
            ..StageRecord::default()
        });
        bytes
    }

    /// Decrypts a reply.
    fn receive(&mut self, index: usize, bytes: &[u8]) -> Result<Received, Error> {
        let client = self.client;
        let checked = stage(client, index);
        let CheckedStage { stage, layout, .. } = checked;
        let (context, key) = (client.contexts.stage(index), &client.reply_keys[index]);
        let moves = &client.moves[index];
        let t = context.plaintext_modulus();
        let accumulators = &mut self.accumulators;
        accumulators.clear();
        accumulators.resize(stage.layer.operator.output_shape().iter().product(), 0);
        // Room for all, so that none are left behind when it grows.
        let mut results = Zeroizing::new(Vec::with_capacity(context.ring_degree()));
        let (mut budget_bits, mut measuring): (Option<f64>, _) = (None, Duration::ZERO);
        let opened = Reader::open(checked, index, client.fingerprint, bytes);
        let mut reader = opened.map_err(Error::message(Kind::Reply))?;
        let mut reply = Zeroizing::new(Reply::empty());
        for output in 0..layout.outputs() {
            let returned = moves.returned(output);
            let count = returned.iter().map(|run| run.length).sum();
            reader.next(count, &mut reply).map_err(Error::message(Kind::Reply))?;
            if client.watch.budgets {
                let begun = Instant::now();
                let measured = measured_reply_budget_bits(context, key, &reply, &layout.returned(output));
                budget_bits = Some(budget_bits.map_or(measured, |smallest| smallest.min(measured)));
                measuring += begun.elapsed();
            }
            decrypt_reply_into(context, key, &mut reply, returned, &mut results);
            if let Some(encoder) = encoder(context, layout) {
                // c0 and c1 s are not needed any more.
                encoder.decode_into(&mut results, &mut reply.c0);
                std::mem::swap(&mut *results, &mut reply.c0);
            }
            moves.unpack(output, &results, t, accumulators);
        }
        let real = eval::dequantize_residues(&stage.layer, t, accumulators);
        Ok(Received { real, budget_bits, measuring })
    }
}

/// What puts a stage's numbers into slots, if they go there.
fn encoder<'a>(context: &'a Context, layout: &Layout) -> Option<&'a Encoder> {
    match layout {
        Layout::Slots(_) => {
            Some(context.encoder().expect("the plaintext modulus of a checked stage in slots has a transform"))
        }
        Layout::Coefficients(_) => None,
    }
}

/// A reply, decrypted.
struct Received {
    /// What its integers stand for.
    real: Vec<f32>,
    /// The smallest budget of its ciphertexts, if it is watched.
    budget_bits: Option<f64>,
    /// Time that measuring took: no part of the client's work.
    measuring: Duration,
}

/// The server stage of an index.
fn stage(client: &Client, index: usize) -> CheckedStage<'_> {
    client.plan.server_stages().nth(index).expect("as many requests are sent as there are server stages")
}
