//! The 16 bytes in front of every message.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..4 | `CHOC` |
//! | 4 | version of the message format: 2 |
//! | 5 | kind: 1 Galois keys, 2 request, 3 reply |
//! | 6..8 | index of the server stage, counted from 0 in the plan's order; 0 for Galois keys |
//! | 8..12 | how many ciphertexts, or Galois keys, follow |
//! | 12..16 | the first four bytes of the SHA-256 of the plan's text |
//!
//! Numbers are little-endian. The last field catches a client and a server that hold different plans: it is no
//! protection against anyone who means harm.

use std::fmt;

use chococ_plans::check::CheckedPlan;
use chococ_plans::cost::HEADER_BYTES;
use chococ_plans::file::{sha256, to_text};

use crate::math::bits;

const MAGIC: [u8; 4] = *b"CHOC";

/// Version of the message format.
pub const MESSAGE_VERSION: u8 = 2;

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From client to server, once a session.
    GaloisKeys,
    /// From client to server: the encrypted input of a stage.
    Request,
    /// From server to client: the encrypted output of a stage.
    Reply,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::GaloisKeys => 1,
            Kind::Request => 2,
            Kind::Reply => 3,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::GaloisKeys => "Galois keys",
            Kind::Request => "request",
            Kind::Reply => "reply",
        })
    }
}

/// Which message of which plan: what a receiver knows before it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// What it carries.
    pub kind: Kind,
    /// The server stage, counted from 0; 0 for Galois keys.
    pub stage: u16,
    /// Ciphertexts or keys in it.
    pub count: u32,
    /// The plan, by [`fingerprint`].
    pub plan: [u8; 4],
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Too short, too long, or cut off.
    #[error("{found} bytes instead of {expected}")]
    Length {
        /// Its bytes.
        found: usize,
        /// What the plan says.
        expected: usize,
    },
    /// Something else altogether.
    #[error("it does not begin as a message: {found:02x?}")]
    Magic {
        /// Its first bytes.
        found: [u8; 4],
    },
    /// Another version of the format.
    #[error(
        "it has format version {found}, this program speaks {MESSAGE_VERSION}\n  try: the same version on both sides"
    )]
    Version {
        /// Its version.
        found: u8,
    },
    /// A message of another kind.
    #[error("it is of kind {found}, expected {} ({expected})", expected.code())]
    Kind {
        /// Its kind, as a number.
        found: u8,
        /// What should have come.
        expected: Kind,
    },
    /// A message of another stage.
    #[error("it is for stage {found}, expected stage {expected}")]
    Stage {
        /// Its stage.
        found: u16,
        /// What should have come.
        expected: u16,
    },
    /// A message for a stage that the plan does not have.
    #[error("it is for stage {found}, the plan has {stages} server stages")]
    NoStage {
        /// Its stage.
        found: u16,
        /// Server stages of the plan.
        stages: usize,
    },
    /// Another number of ciphertexts or keys.
    #[error("it carries {found} items, expected {expected}")]
    Count {
        /// Its count.
        found: u32,
        /// What the plan says.
        expected: u32,
    },
    /// A message about another plan.
    #[error("it belongs to another plan ({found:02x?}, here {expected:02x?})\n  try: the same plan file on both sides")]
    Plan {
        /// Its fingerprint.
        found: [u8; 4],
        /// The plan's.
        expected: [u8; 4],
    },
    /// A number that is no residue.
    #[error("item {item} holds a number that is not below {bound}")]
    Coefficient {
        /// The ciphertext or key, counted from 0.
        item: usize,
        /// What its numbers must stay below.
        bound: u64,
    },
    /// Bits that should be zero.
    #[error("item {item} has bits set between two lists of numbers")]
    Padding {
        /// The ciphertext or key, counted from 0.
        item: usize,
    },
}

/// Names a plan in four bytes, by the hash of its text.
pub fn fingerprint(plan: &CheckedPlan) -> [u8; 4] {
    let hex = sha256(to_text(plan.plan()).as_bytes());
    u32::from_str_radix(&hex[..8], 16).expect("a hash is written in hexadecimal digits").to_be_bytes()
}

impl Address {
    /// Addresses a message of a server stage.
    pub(super) fn of_stage(kind: Kind, index: usize, ciphertexts: usize, plan: [u8; 4]) -> Address {
        let stage = u16::try_from(index).expect("a checked plan has at most 2^16 server stages");
        let count = u32::try_from(ciphertexts).expect("a checked tensor has at most 2^26 elements");
        Address { kind, stage, count, plan }
    }

    /// Begins a message that will have `size_bytes` in all.
    pub(super) fn begin(self, size_bytes: usize) -> Vec<u8> {
        // With room for what packing may write behind its own bytes.
        let mut bytes = Vec::with_capacity(size_bytes + bits::SLACK);
        bytes.extend(MAGIC);
        bytes.extend([MESSAGE_VERSION, self.kind.code()]);
        bytes.extend(self.stage.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.plan);
        bytes
    }

    /// Checks that `bytes` is the message expected, of `size_bytes` in all, and returns its payload.
    pub(super) fn open(self, bytes: &[u8], size_bytes: usize) -> Result<&[u8], MessageError> {
        let (header, payload) = split(bytes)?;
        if header.kind != self.kind.code() {
            return Err(MessageError::Kind { found: header.kind, expected: self.kind });
        }
        if header.plan != self.plan {
            return Err(MessageError::Plan { found: header.plan, expected: self.plan });
        }
        if header.stage != self.stage {
            return Err(MessageError::Stage { found: header.stage, expected: self.stage });
        }
        if header.count != self.count {
            return Err(MessageError::Count { found: header.count, expected: self.count });
        }
        if bytes.len() != size_bytes {
            return Err(MessageError::Length { found: bytes.len(), expected: size_bytes });
        }
        Ok(payload)
    }
}

/// Reads which stage a message says it is for, before anything else about it is believed.
///
/// # Errors
/// [`MessageError`], when it has no header of this format.
pub fn stage_of(bytes: &[u8]) -> Result<u16, MessageError> {
    split(bytes).map(|(header, _)| header.stage)
}

/// A header as it came, of which only magic and version have been checked.
struct Header {
    kind: u8,
    stage: u16,
    count: u32,
    plan: [u8; 4],
}

fn split(bytes: &[u8]) -> Result<(Header, &[u8]), MessageError> {
    let short = MessageError::Length { found: bytes.len(), expected: HEADER_BYTES };
    let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
    let [m0, m1, m2, m3, version, kind, s0, s1, c0, c1, c2, c3, plan @ ..] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(MessageError::Magic { found: [m0, m1, m2, m3] });
    }
    if version != MESSAGE_VERSION {
        return Err(MessageError::Version { found: version });
    }
    let (stage, count) = (u16::from_le_bytes([s0, s1]), u32::from_le_bytes([c0, c1, c2, c3]));
    Ok((Header { kind, stage, count, plan }, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Address = Address { kind: Kind::Reply, stage: 258, count: 3, plan: [9, 8, 7, 6] };

    fn message() -> Vec<u8> {
        let mut bytes = ADDRESS.begin(18);
        bytes.extend([0xaa, 0xbb]);
        bytes
    }

    #[test]
    fn a_header_is_sixteen_bytes_as_documented() {
        assert_eq!(message()[..16], [b'C', b'H', b'O', b'C', 2, 3, 2, 1, 3, 0, 0, 0, 9, 8, 7, 6]);
        assert_eq!(ADDRESS.open(&message(), 18), Ok(&[0xaa, 0xbb][..]));
        assert_eq!(stage_of(&message()), Ok(258));
    }

    #[test]
    fn every_field_is_compared() {
        let changed = |at: usize| {
            let mut bytes = message();
            bytes[at] ^= 0x40;
            ADDRESS.open(&bytes, 18).expect_err("one byte is wrong")
        };
        assert!(matches!(changed(0), MessageError::Magic { .. }));
        assert_eq!(changed(4), MessageError::Version { found: 0x42 });
        assert_eq!(changed(5), MessageError::Kind { found: 0x43, expected: Kind::Reply });
        assert!(matches!(changed(7), MessageError::Stage { expected: 258, .. }));
        assert!(matches!(changed(11), MessageError::Count { found: 0x4000_0003, expected: 3 }));
        assert!(matches!(changed(15), MessageError::Plan { .. }));
    }

    #[test]
    fn lengths_are_exact() {
        for length in (0..18).chain([19]) {
            let mut bytes = message();
            bytes.resize(length, 0);
            let error = ADDRESS.open(&bytes, 18).expect_err("too short or too long");
            assert!(matches!(error, MessageError::Length { found, .. } if found == length), "{error}");
        }
    }
}
