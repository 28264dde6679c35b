//! What can be wrong with a file of inputs, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A file of inputs that cannot be used.
#[derive(Debug, Error)]
#[error("input `{}`: {problem}", path.display())]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: InputProblem,
}

/// What is wrong with a file of inputs; the text says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}\n  try: check the path and its permissions")]
    Unreadable(io::Error),
    /// The first bytes are of no known format.
    #[error("is neither an .npz, an .npy nor a .png file\n  try: `numpy.savez(path, images=images, labels=labels)`")]
    UnknownFormat,
    /// The archive cannot be opened.
    #[error("is not a whole .npz archive: {0}\n  try: copy or write the file again")]
    Archive(zip::result::ZipError),
    /// The archive does not say which of its arrays the samples are.
    #[error(
        "holds {found:?}, and it is not clear which of them are the samples\n  \
         try: `numpy.savez(path, images=images, labels=labels)`"
    )]
    MissingArray {
        /// The arrays it does hold.
        found: Vec<String>,
    },
    /// The header of an array is not one that numpy writes.
    #[error("{array} has a malformed header: {reason}\n  try: write it again with `numpy.save` or `numpy.savez`")]
    Header {
        /// The array.
        array: String,
        /// What is wrong with the header.
        reason: &'static str,
    },
    /// The array is in column-major order.
    #[error("{array} is in column-major order\n  try: save `numpy.ascontiguousarray(images)`")]
    ColumnMajor {
        /// The array.
        array: String,
    },
    /// The array holds numbers of an unsuitable type.
    #[error("{array} has dtype '{found}' and must have {needed}\n  try: convert it with `.astype(...)` before saving")]
    ElementType {
        /// The array.
        array: String,
        /// Its dtype, in numpy's notation.
        found: String,
        /// The types that would do.
        needed: &'static str,
    },
    /// The samples have another shape than the network's input.
    #[error(
        "{array} has shape {found:?}, but the network takes {needed:?}, or (n, that shape)\n  \
         try: reshape, crop or pad the samples as it was done when the network was trained"
    )]
    Shape {
        /// The array or picture.
        array: String,
        /// Its shape.
        found: Vec<usize>,
        /// The network's input shape, without a batch axis.
        needed: Vec<usize>,
    },
    /// The array has no samples.
    #[error("{array} holds no sample\n  try: save at least one")]
    Empty {
        /// The array.
        array: String,
    },
    /// The data end before the last sample.
    #[error("{array} ends after {found} of {claimed} entries\n  try: copy or write the file again")]
    Truncated {
        /// The array.
        array: String,
        /// How many entries along its first axis are whole.
        found: usize,
        /// How many its header claims.
        claimed: usize,
    },
    /// The data of an array cannot be read, or go on after the last sample.
    #[error("{array} is damaged: {reason}\n  try: copy or write the file again")]
    Damaged {
        /// The array.
        array: String,
        /// What the reader met.
        reason: String,
    },
    /// A number that no network can take.
    #[error(
        "sample {sample} is {value} at index {index}, and inputs must be finite\n  try: clean the data before saving"
    )]
    NotFinite {
        /// The sample, counted from 0.
        sample: usize,
        /// The place in the sample, row-major, counted from 0.
        index: usize,
        /// The number.
        value: f32,
    },
    /// The labels are not one a sample.
    #[error("the labels have shape {found:?} for {samples} samples\n  try: save one label a sample, as one row")]
    LabelShape {
        /// Shape of the labels.
        found: Vec<usize>,
        /// How many samples there are.
        samples: usize,
    },
    /// A label is not a class number.
    #[error("the label of sample {sample} is {value}\n  try: number the classes from 0")]
    LabelValue {
        /// The sample, counted from 0.
        sample: usize,
        /// Its label.
        value: f64,
    },
    /// The picture cannot be decoded.
    #[error("is not a whole .png file: {0}\n  try: copy or write the file again")]
    Picture(png::DecodingError),
    /// The picture has an unsuitable pixel format.
    #[error(
        "is a picture of {found}, and must be grey or RGB with 8 bits a channel\n  try: `magick in.png {cure} out.png`"
    )]
    PixelFormat {
        /// Its colour type and depth.
        found: String,
        /// Options of ImageMagick that convert it.
        cure: &'static str,
    },
    /// A colour picture for a network that takes grey ones.
    #[error(
        "is an RGB picture, but the network takes one channel ({needed:?})\n  \
         try: `magick in.png -colorspace Gray -depth 8 out.png`"
    )]
    ColourForGrey {
        /// The network's input shape.
        needed: Vec<usize>,
    },
}
