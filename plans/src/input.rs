//! Reads inputs of a network, with their labels, from `.npz`, `.npy` and `.png` files.
//!
//! Bytes become numbers in [0, 1], byte / 255; floats are taken as they are. Shapes must match the network's; see
//! [`read_samples`]. What a file claims about itself is checked before memory is set aside for it.

mod error;
mod npy;
mod picture;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

pub use error::{InputError, InputProblem};
use npy::Array;

/// Inputs of a network and, if the file holds them, their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The inputs, row-major in the network's input shape; all numbers are finite.
    pub inputs: Vec<Vec<f32>>,
    /// The class of each input.
    pub labels: Option<Vec<usize>>,
}

/// Side length of the grey pictures that [`GREY_WIDENED`] networks also take.
const GREY_SIDE: usize = 28;
/// Input shape of the networks that were trained on grey pictures with a frame of zeros, repeated for each colour.
const GREY_WIDENED: [usize; 3] = [3, 32, 32];

/// Reads the samples of a file for a network whose input has `shape`; all of them, or the first `limit`.
///
/// The first bytes of the file, not its name, tell its kind:
///
/// - `.npz`: the samples are array `images`, else `x`, else the only array that is not the labels; the labels, if
///   there are any, are array `labels`, else `y`, integers, one a sample.
/// - `.npy`: one array of samples.
/// - `.png`: one sample, grey or RGB, 8 bits a channel, light on dark as stored (MNIST's digits are light on dark).
///
/// An array holds `shape` (one sample) or (n, `shape`), as uint8, float32 or float64 in row-major order. For a shape
/// (1, height, width) the channel axis may be missing. No picture is cropped or resized, with one exception: a
/// network of 3 x 32 x 32 also takes a grey 28 x 28 picture, framed by two zeros on every side and repeated in each
/// channel, as the Fashion-MNIST networks of this project were trained.
///
/// # Errors
/// [`InputError`]: the file cannot be read, is damaged or cut short, lacks its samples, holds another number type or
/// another shape, no sample at all, or a NaN or an infinity. Each says what to do.
pub fn read_samples(path: impl AsRef<Path>, shape: &[usize], limit: Option<usize>) -> Result<Samples, InputError> {
    let limit = limit.unwrap_or(usize::MAX);
    read(path.as_ref(), shape, limit).map_err(|problem| InputError { path: path.as_ref().to_owned(), problem })
}

fn read(path: &Path, shape: &[usize], limit: usize) -> Result<Samples, InputProblem> {
    let mut file = BufReader::new(File::open(path).map_err(InputProblem::Unreadable)?);
    let start = file.fill_buf().map_err(InputProblem::Unreadable)?;
    if start.starts_with(npy::MAGIC) {
        let inputs = read_inputs(Array::open("array", file)?, shape, limit)?;
        Ok(Samples { inputs, labels: None })
    } else if start.starts_with(b"PK") {
        read_archive(file, shape, limit)
    } else if start.starts_with(b"\x89PNG") {
        picture::read(file, shape).map(|sample| Samples { inputs: vec![sample], labels: None })
    } else {
        Err(InputProblem::UnknownFormat)
    }
}

fn read_archive(file: impl Read + Seek, shape: &[usize], limit: usize) -> Result<Samples, InputProblem> {
    let mut archive = ZipArchive::new(file).map_err(InputProblem::Archive)?;
    let names: Vec<&str> = archive.file_names().map(|name| name.strip_suffix(".npy").unwrap_or(name)).collect();
    let named = |wanted: &[&str]| wanted.iter().find(|name| names.contains(*name)).map(|name| name.to_string());
    let labels_name = named(&["labels", "y"]);
    let others: Vec<&&str> = names.iter().filter(|name| Some(**name) != labels_name.as_deref()).collect();
    let images_name = named(&["images", "x"]).or(match others[..] {
        [only] => Some(only.to_string()),
        _ => None,
    });
    let Some(images_name) = images_name else {
        let mut found: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        found.sort();
        return Err(InputProblem::MissingArray { found });
    };
    let inputs = read_inputs(open_array(&mut archive, &images_name)?, shape, limit)?;
    let labels = match labels_name {
        Some(name) => Some(read_labels(open_array(&mut archive, &name)?, inputs.len(), limit)?),
        None => None,
    };
    Ok(Samples { inputs, labels })
}

fn open_array<'a, R: Read + Seek>(
    archive: &'a mut ZipArchive<R>,
    name: &str,
) -> Result<Array<impl Read + use<'a, R>>, InputProblem> {
    let entry = match archive.index_for_name(&format!("{name}.npy")) {
        Some(index) => archive.by_index(index),
        None => archive.by_name(name),
    };
    Array::open(&format!("array `{name}`"), entry.map_err(InputProblem::Archive)?)
}

fn read_inputs<R: Read>(mut array: Array<R>, shape: &[usize], limit: usize) -> Result<Vec<Vec<f32>>, InputProblem> {
    if !array.holds_pixels() {
        return Err(array.wrong_type("uint8, float32 or float64"));
    }
    let (claimed, fit) = fit(&array.name, &array.shape, shape)?;
    let divisor = if array.holds_bytes() { 255.0 } else { 1.0 };
    let length = match fit {
        Fit::Exact => shape.iter().product(),
        Fit::GreyWidened => GREY_SIDE * GREY_SIDE,
    };
    let mut inputs = Vec::new();
    while inputs.len() < claimed.min(limit) {
        let values = array.read(length, inputs.len(), claimed, |value| value as f32 / divisor)?;
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(InputProblem::NotFinite { sample: inputs.len(), index, value: values[index] });
        }
        inputs.push(match fit {
            Fit::Exact => values,
            Fit::GreyWidened => widen_grey(&values),
        });
    }
    if claimed <= limit {
        array.finish()?;
    }
    Ok(inputs)
}

fn read_labels<R: Read>(mut array: Array<R>, samples: usize, limit: usize) -> Result<Vec<usize>, InputProblem> {
    if !array.holds_integers() {
        return Err(array.wrong_type("an integer type"));
    }
    // With a limit below the number of samples, only the first `limit` were read, and any longer row of labels will do.
    let enough = |labels: usize| labels == samples || (labels > samples && samples == limit);
    if array.shape.len() != 1 || !enough(array.shape[0]) {
        return Err(InputProblem::LabelShape { found: array.shape, samples });
    }
    let claimed = array.shape[0];
    let values = array.read(samples, 0, claimed, |value| value)?;
    // Integers below 2^53 pass an f64 unchanged; no network has that many classes.
    let class = |(sample, value): (usize, f64)| match value {
        value if (0.0..1e9).contains(&value) => Ok(value as usize),
        _ => Err(InputProblem::LabelValue { sample, value }),
    };
    values.into_iter().enumerate().map(class).collect()
}

/// How a sample of a file becomes an input of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// As it is.
    Exact,
    /// By [`widen_grey`].
    GreyWidened,
}

/// Finds how many samples an array of shape `found` holds for a network that needs shape `needed`.
fn fit(array: &str, found: &[usize], needed: &[usize]) -> Result<(usize, Fit), InputProblem> {
    let mut sample_shapes = vec![(needed, Fit::Exact)];
    if let [1, plane @ ..] = needed
        && plane.len() == 2
    {
        sample_shapes.push((plane, Fit::Exact));
    }
    if needed == GREY_WIDENED {
        sample_shapes.push((&[GREY_SIDE, GREY_SIDE], Fit::GreyWidened));
        sample_shapes.push((&[1, GREY_SIDE, GREY_SIDE], Fit::GreyWidened));
    }
    for (sample_shape, fit) in sample_shapes {
        match found {
            found if found == sample_shape => return Ok((1, fit)),
            [0, rest @ ..] if rest == sample_shape => return Err(InputProblem::Empty { array: array.to_owned() }),
            [samples, rest @ ..] if rest == sample_shape => return Ok((*samples, fit)),
            _ => {}
        }
    }
    Err(InputProblem::Shape { array: array.to_owned(), found: found.to_vec(), needed: needed.to_vec() })
}

/// Frames a grey picture with zeros, equally on every side, and repeats it in each channel.
fn widen_grey(grey: &[f32]) -> Vec<f32> {
    let [channels, height, width] = GREY_WIDENED;
    let (top, left) = ((height - GREY_SIDE) / 2, (width - GREY_SIDE) / 2);
    let mut widened = vec![0.0; channels * height * width];
    for plane in widened.chunks_exact_mut(height * width) {
        for (target, source) in plane.chunks_exact_mut(width).skip(top).zip(grey.chunks_exact(GREY_SIDE)) {
            target[left..left + GREY_SIDE].copy_from_slice(source);
        }
    }
    widened
}
