//! Reads arrays in numpy's `.npy` format, a piece at a time, so that nothing is allocated on a header's word alone.
//!
//! Source: numpy, "NEP 1: A simple file format for NumPy arrays", versions 1.0 to 3.0.

use std::io::{self, Read};

use super::InputProblem;

/// The first bytes of every `.npy` file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest header that is read. Numpy's own are under 200 bytes for arrays of plain numbers.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// An array whose header has been read and whose data come next.
pub(super) struct Array<R> {
    /// What errors call it.
    pub name: String,
    /// Its shape, as the header claims it.
    pub shape: Vec<usize>,
    descriptor: String,
    element: Element,
    data: R,
}

/// How one number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    kind: Kind,
    bytes: usize,
    big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

impl<R: Read> Array<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If it is not a header, or describes anything but plain numbers in row-major order.
    pub fn open(name: &str, mut data: R) -> Result<Self, InputProblem> {
        let malformed = |reason| InputProblem::Header { array: name.to_owned(), reason };
        let header = read_header(&mut data).map_err(malformed)?;
        let descriptor = field(&header, "descr").ok_or(malformed("no `descr`"))?;
        // A structured type is a list, not a string, and no element parses from a bracket.
        let descriptor = quoted(descriptor).unwrap_or("[...]").to_owned();
        let element = parse_element(&descriptor).ok_or(InputProblem::ElementType {
            array: name.to_owned(),
            found: descriptor.clone(),
            needed: "plain integers or floats",
        })?;
        let shape = field(&header, "shape").and_then(parse_shape).ok_or(malformed("no `shape`, or a bad one"))?;
        let column_major = field(&header, "fortran_order").ok_or(malformed("no `fortran_order`"))?;
        if column_major.starts_with("True") && shape.len() > 1 {
            return Err(InputProblem::ColumnMajor { array: name.to_owned() });
        }
        Ok(Self { name: name.to_owned(), shape, descriptor, element, data })
    }

    /// Whether the numbers are `u8`.
    pub fn holds_bytes(&self) -> bool {
        self.element.kind == Kind::Unsigned && self.element.bytes == 1
    }

    /// Whether the numbers can be pixels: `u8` or floats.
    pub fn holds_pixels(&self) -> bool {
        self.holds_bytes() || self.element.kind == Kind::Float
    }

    /// Whether the numbers are integers.
    pub fn holds_integers(&self) -> bool {
        self.element.kind != Kind::Float
    }

    /// Says that the numbers are of another type than is needed.
    pub fn wrong_type(self, needed: &'static str) -> InputProblem {
        InputProblem::ElementType { array: self.name, found: self.descriptor, needed }
    }

    /// Reads the next `count` numbers; the caller vouches for `count`, which is allocated.
    ///
    /// # Errors
    /// If the data end too early, after `found` of `claimed` entries, or cannot be read.
    pub fn read<T>(
        &mut self,
        count: usize,
        found: usize,
        claimed: usize,
        convert: impl Fn(f64) -> T,
    ) -> Result<Vec<T>, InputProblem> {
        let mut bytes = vec![0; count * self.element.bytes];
        self.data.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => InputProblem::Truncated { array: self.name.clone(), found, claimed },
            _ => self.damaged(error.to_string()),
        })?;
        Ok(bytes.chunks_exact(self.element.bytes).map(|bytes| convert(self.element.decode(bytes))).collect())
    }

    /// Checks that the data end here; at the end an archive also compares its checksum.
    ///
    /// # Errors
    /// If they go on or the checksum differs.
    pub fn finish(mut self) -> Result<(), InputProblem> {
        match self.data.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("more data than its shape needs".to_owned())),
            Err(error) => Err(self.damaged(error.to_string())),
        }
    }

    fn damaged(&self, reason: String) -> InputProblem {
        InputProblem::Damaged { array: self.name.clone(), reason }
    }
}

impl Element {
    /// Converts one number. Integers beyond 2^53 are rounded.
    fn decode(self, bytes: &[u8]) -> f64 {
        let mut little = [0; 8];
        little[..self.bytes].copy_from_slice(bytes);
        if self.big_endian {
            little[..self.bytes].reverse();
        }
        let word = u64::from_le_bytes(little);
        let unused_bits = 64 - 8 * self.bytes;
        match self.kind {
            Kind::Unsigned => word as f64,
            Kind::Signed => ((word << unused_bits) as i64 >> unused_bits) as f64,
            Kind::Float if self.bytes == 4 => f64::from(f32::from_bits(word as u32)),
            Kind::Float => f64::from_bits(word),
        }
    }
}

/// Reads magic, version, length and text of a header.
fn read_header(data: &mut impl Read) -> Result<String, &'static str> {
    let mut prefix = [0; 8];
    data.read_exact(&mut prefix).map_err(|_| "cut short")?;
    if !prefix.starts_with(MAGIC) {
        return Err("it does not begin as an array");
    }
    let mut length = [0; 4];
    let length_bytes = match prefix[6] {
        1 => 2,
        2 | 3 => 4,
        _ => return Err("unknown format version"),
    };
    data.read_exact(&mut length[..length_bytes]).map_err(|_| "cut short")?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER_BYTES {
        return Err("too long");
    }
    let mut text = vec![0; length];
    data.read_exact(&mut text).map_err(|_| "cut short")?;
    String::from_utf8(text).map_err(|_| "not text")
}

/// Finds what follows `'key':` in a Python dictionary of plain values.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    Some(rest.trim_start())
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.split('\'').next()
}

/// Parses numpy's notation of a number type: byte order, kind, bytes, such as `<f4`.
fn parse_element(descriptor: &str) -> Option<Element> {
    let plain = descriptor.trim_start_matches(['<', '>', '|', '=']);
    let (kind, bytes) = match plain {
        "u1" | "u2" | "u4" | "u8" => (Kind::Unsigned, &plain[1..]),
        "i1" | "i2" | "i4" | "i8" => (Kind::Signed, &plain[1..]),
        "f4" | "f8" => (Kind::Float, &plain[1..]),
        _ => return None,
    };
    Some(Element { kind, bytes: bytes.parse().ok()?, big_endian: descriptor.starts_with('>') })
}

/// Parses a tuple of sizes: `()`, `(3,)`, `(2, 28, 28)`.
fn parse_shape(text: &str) -> Option<Vec<usize>> {
    let (sizes, _) = text.strip_prefix('(')?.split_once(')')?;
    sizes.split(',').map(str::trim).filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    fn header(descriptor: &str, column_major: &str, shape: &str) -> String {
        format!("{{'descr': {descriptor}, 'fortran_order': {column_major}, 'shape': {shape}, }}\n")
    }

    fn open(file: &[u8]) -> Result<Array<&[u8]>, String> {
        Array::open("array", file).map_err(|problem| problem.to_string())
    }

    #[test]
    fn numbers_of_every_kind_and_order_are_read() {
        let cases: [(&str, &[u8], f64); 10] = [
            ("'|u1'", &[200], 200.0),
            ("'|i1'", &[200], -56.0),
            ("'<u2'", &[1, 2], 513.0),
            ("'>u2'", &[1, 2], 258.0),
            ("'<i4'", &[254, 255, 255, 255], -2.0),
            ("'>i8'", &[255, 255, 255, 255, 255, 255, 255, 253], -3.0),
            ("'<u8'", &[1, 0, 0, 0, 1, 0, 0, 0], 4_294_967_297.0),
            ("'<f4'", &[0, 0, 0x20, 0xC0], -2.5),
            ("'>f4'", &[0xC0, 0x20, 0, 0], -2.5),
            ("'>f8'", &[0x3F, 0xE0, 0, 0, 0, 0, 0, 0], 0.5),
        ];
        for (descriptor, data, value) in cases {
            let file = file(&header(descriptor, "False", "(1,)"), data);
            let mut array = open(&file).unwrap();
            assert_eq!(array.read(1, 0, 1, |value| value).unwrap(), [value], "{descriptor}");
            array.finish().unwrap();
        }
    }

    #[test]
    fn shapes_of_every_rank_are_read() {
        for (text, shape) in [("()", vec![]), ("(3,)", vec![3]), ("(2, 3)", vec![2, 3]), ("(1,2,0)", vec![1, 2, 0])] {
            assert_eq!(open(&file(&header("'<f4'", "False", text), &[])).unwrap().shape, shape);
        }
    }

    #[test]
    fn malformed_headers_are_named() {
        let cases = [
            (header("'<f4'", "False", "(3"), "no `shape`, or a bad one"),
            (header("'<f4'", "False", "(-3,)"), "no `shape`, or a bad one"),
            (header("'<f4'", "False", "(99999999999999999999,)"), "no `shape`, or a bad one"),
            ("{'shape': (3,)}".to_owned(), "no `descr`"),
            ("{'descr': '<f4', 'shape': (3,)}".to_owned(), "no `fortran_order`"),
            (header("'<c8'", "False", "(3,)"), "dtype '<c8'"),
            (header("'<f2'", "False", "(3,)"), "dtype '<f2'"),
            (header("'<f\u{e9}'", "False", "(3,)"), "dtype '<f\u{e9}'"),
            (header("[('a', '<f4')]", "False", "(3,)"), "dtype '[...]'"),
            (header("'<f4'", "True", "(3, 2)"), "column-major"),
        ];
        for (header, expected) in cases {
            let text = open(&file(&header, &[])).err().expect("a malformed header");
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn broken_prefixes_are_named() {
        let whole = file(&header("'<f4'", "False", "(1,)"), &[0; 4]);
        for length in 0..whole.len() - 4 {
            assert!(open(&whole[..length]).err().expect("cut").contains("cut short"), "at {length}");
        }
        let mut version = whole.clone();
        version[6] = 9;
        assert!(open(&version).err().expect("version 9").contains("unknown format version"));
        let long = [MAGIC, &[2, 0], &u32::MAX.to_le_bytes()].concat();
        assert!(open(&long).err().expect("4 GiB of header").contains("too long"));
    }

    #[test]
    fn missing_and_spare_data_are_noticed() {
        let file = file(&header("'<f4'", "False", "(2,)"), &[0; 7]);
        let mut array = open(&file).unwrap();
        assert_eq!(array.read(1, 0, 2, |value| value).unwrap(), [0.0]);
        let text = array.read(1, 1, 2, |value| value).unwrap_err().to_string();
        assert!(text.starts_with("array ends after 1 of 2 entries"), "{text}");
        let mut array = open(&file).unwrap();
        array.read(1, 0, 1, |value| value).unwrap();
        assert!(array.finish().unwrap_err().to_string().contains("more data than its shape needs"));
    }
}
