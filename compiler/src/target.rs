//! What a network is compiled for: a link, the machines at its ends, and what to spend least of.

use chococ_plans::cost::Cost;
use chococ_plans::packing::Packing;
use chococ_plans::params::KeyParameters;
use chococ_plans::work::Work;
use serde::{Deserialize, Serialize};

/// The link between client and server, and both machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The link.
    pub link: Link,
    /// The client's machine.
    pub client: Machine,
    /// The server's.
    pub server: Machine,
}

/// How fast bytes travel, in Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// From client to server.
    pub up_mbit_s: f64,
    /// From server to client.
    pub down_mbit_s: f64,
}

/// How fast a machine computes, on one core and in all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Nanoseconds for a butterfly of a transform.
    pub ns_per_butterfly: f64,
    /// Nanoseconds for a product modulo a prime, with a sum.
    pub ns_per_product: f64,
    /// Nanoseconds for a number that is drawn, scaled, packed or unpacked.
    pub ns_per_number: f64,
    /// Cores that work on one inference.
    pub cores: u32,
}

/// What to spend least of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Bytes on the wire for an inference.
    #[default]
    Bytes,
    /// The client's time for encryption and decryption.
    ClientTime,
    /// Time until the answer: the link, the client and the server, one after the other.
    Latency,
}

/// What is wrong with a target.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TargetError {
    /// Not the form.
    #[error("it is not a target: {0}\n  try: a copy of compiler/targets/watch.ron with other numbers")]
    Form(String),
    /// A number that no machine has.
    #[error("{name} is {found}, and must be above 0 and finite\n  try: measure it, or leave out `--target`")]
    Number {
        /// Which one.
        name: &'static str,
        /// The number.
        found: f64,
    },
}

/// A target for those who name none.
const WATCH: &str = include_str!("../targets/watch.ron");

impl Target {
    /// Reads a target, in RON.
    ///
    /// # Errors
    /// [`TargetError`]: it has another form, or a number that no machine has.
    pub fn read(text: &str) -> Result<Target, TargetError> {
        let target: Target = ron::from_str(text).map_err(|error| TargetError::Form(error.to_string()))?;
        let Target { link, client, server } = target;
        let machine = |machine: Machine| {
            let Machine { ns_per_butterfly, ns_per_product, ns_per_number, cores } = machine;
            [
                ("ns_per_butterfly", ns_per_butterfly),
                ("ns_per_product", ns_per_product),
                ("ns_per_number", ns_per_number),
                ("cores", f64::from(cores)),
            ]
        };
        let numbers = [("up_mbit_s", link.up_mbit_s), ("down_mbit_s", link.down_mbit_s)];
        let all = numbers.into_iter().chain(machine(client)).chain(machine(server));
        match all.into_iter().find(|(_, number)| !(number.is_finite() && *number > 0.0)) {
            Some((name, found)) => Err(TargetError::Number { name, found }),
            None => Ok(target),
        }
    }
}

impl Default for Target {
    fn default() -> Target {
        Target::read(WATCH).expect("a test reads it")
    }
}

impl Machine {
    /// Nanoseconds for some work, spread over all cores.
    fn ns(&self, work: Work) -> f64 {
        let one = work.butterflies * self.ns_per_butterfly
            + work.products * self.ns_per_product
            + work.numbers * self.ns_per_number;
        one / f64::from(self.cores)
    }
}

/// What everything weighs, in whatever the objective counts: the price of a choice is one number.
///
/// What is not the objective itself weighs little but not nothing, so that it decides between choices that hardly
/// differ otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    target: Target,
    byte_up: f64,
    byte_down: f64,
    key_byte: f64,
    client_ns: f64,
    server_ns: f64,
}

/// Inferences in a session, over which the keys are spread: a client that registers them stays a while.
const INFERENCES: f64 = 1000.0;

impl Prices {
    /// Prices for an objective.
    pub fn new(objective: Objective, target: Target) -> Prices {
        let [byte_up, byte_down] = [target.link.up_mbit_s, target.link.down_mbit_s].map(|rate| 8e3 / rate);
        let key_byte = 1.0 / INFERENCES;
        match objective {
            // A byte is worth as much as 12 us of the server's time, or 5 us of a client that were as fast.
            Objective::Bytes => {
                // However slow the client is.
                let relative = target.server.ns(Work::ONE_EACH) / target.client.ns(Work::ONE_EACH);
                Prices { target, byte_up: 1.0, byte_down: 1.0, key_byte, client_ns: 2e-4 * relative, server_ns: 8e-5 }
            }
            Objective::ClientTime => Prices {
                target,
                byte_up: byte_up / 1000.0,
                byte_down: byte_down / 1000.0,
                key_byte: byte_up * key_byte / 1000.0,
                client_ns: 1.0,
                server_ns: 1e-3,
            },
            Objective::Latency => {
                Prices { target, byte_up, byte_down, key_byte: byte_up * key_byte, client_ns: 1.0, server_ns: 1.0 }
            }
        }
    }

    /// The same, with Galois keys so many times as dear.
    pub fn with_dearer_keys(self, factor: f64) -> Prices {
        Prices { key_byte: self.key_byte * factor, ..self }
    }

    /// The price of a stage that costs at least so much: of the server's work, only what moves ciphertexts counts.
    pub fn at_least(&self, ring_degree: usize, residues: usize, packing: Packing, cost: &Cost) -> f64 {
        let client = self.target.client.ns(Work::of_client(ring_degree, residues, packing, cost));
        self.byte_up * cost.bytes_up as f64 + self.byte_down * cost.bytes_down as f64 + self.client_ns * client
    }

    /// The price of a stage.
    pub fn of(&self, keys: &KeyParameters, packing: Packing, cost: &Cost) -> f64 {
        let server = self.target.server.ns(Work::of_server(keys, cost));
        self.at_least(keys.ring_degree, keys.ciphertext_primes.len(), packing, cost) + self.server_ns * server
    }

    /// The price of Galois keys.
    pub fn of_keys(&self, size_bytes: usize) -> f64 {
        self.key_byte * size_bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_of_this_repository_can_be_read() {
        Target::read(WATCH).expect("watch.ron");
        Target::read(include_str!("../targets/workstation.ron")).expect("workstation.ron");
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |from: &str, to: &str| Target::read(&WATCH.replace(from, to)).expect_err("refused").to_string();
        insta::assert_snapshot!(refused("down_mbit_s: 22.0", "down_mbit_s: -1.0"), @r"
        down_mbit_s is -1, and must be above 0 and finite
          try: measure it, or leave out `--target`
        ");
        insta::assert_snapshot!(refused("ns_per_number: 1000.0", "ns_per_number: inf"), @r"
        ns_per_number is inf, and must be above 0 and finite
          try: measure it, or leave out `--target`
        ");
        assert!(refused("down_mbit_s", "downlink").contains("`downlink`"));
    }
}
