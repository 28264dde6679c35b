//! What an inference records about its server stages.

use std::time::Duration;

/// What to record beside times and sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The integers on either side of each server stage, to be compared with a reference.
    pub integers: bool,
    /// The measured noise budget of each reply. It depends on the secret key: it is for tests and reports, and must
    /// never travel.
    pub budgets: bool,
}

/// One server stage of one inference, as the client saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageRecord {
    /// Time for the client's own operators since the stage before.
    pub clear: Duration,
    /// Time to quantise, pack, encode, encrypt and serialise.
    pub encrypt: Duration,
    /// Time to deserialise, decrypt, decode and unpack; measuring budgets does not count.
    pub decrypt: Duration,
    /// Bytes of the request.
    pub bytes_up: usize,
    /// Bytes of the reply.
    pub bytes_down: usize,
    /// The codes that were encrypted, in the layer's input shape; empty unless watched.
    pub codes: Vec<i32>,
    /// The accumulators that came back, in the layer's output shape; empty unless watched.
    pub accumulators: Vec<i64>,
    /// Measured noise budget of the worst ciphertext of the reply, in bits, if watched.
    pub budget_bits: Option<f64>,
}
