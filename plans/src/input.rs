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
    // To the end in any case: the archive's checksum stands there, and is of the whole array.
    for sample in inputs.len()..claimed {
        array.read(length, sample, claimed, |_| 0.0)?;
    }
    array.finish()?;
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use ndarray::{Array, Array1, Array2, Array3, Array4};
    use ndarray_npy::{NpzWriter, WritableElement, WriteNpyExt};
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    /// A directory that vanishes, and a file in it.
    fn scratch(name: &str) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        (directory, path)
    }

    fn read_bytes(bytes: &[u8], shape: &[usize], limit: Option<usize>) -> Result<Samples, InputError> {
        let (_directory, path) = scratch("input");
        std::fs::write(&path, bytes).unwrap();
        read_samples(&path, shape, limit)
    }

    fn npy<A: WritableElement, D: ndarray::Dimension>(array: &Array<A, D>) -> Vec<u8> {
        let mut bytes = Vec::new();
        array.write_npy(&mut bytes).unwrap();
        bytes
    }

    fn npz(fill: impl FnOnce(&mut NpzWriter<io::Cursor<Vec<u8>>>)) -> Vec<u8> {
        let mut writer = NpzWriter::new_compressed(io::Cursor::new(Vec::new()));
        fill(&mut writer);
        writer.finish().unwrap().into_inner()
    }

    fn bytes_of(shape: (usize, usize, usize)) -> Array3<u8> {
        Array::from_shape_fn(shape, |(n, y, x)| (n * 100 + y * 10 + x) as u8)
    }

    fn message(result: Result<Samples, InputError>) -> String {
        result.expect_err("this file is not in order").problem.to_string()
    }

    #[test]
    fn an_archive_gives_images_and_labels() {
        let images = bytes_of((3, 4, 5));
        let labels = Array1::from(vec![7i64, 0, 9]);
        let file = npz(|npz| {
            npz.add_array("labels", &labels).unwrap();
            npz.add_array("images", &images).unwrap();
        });
        let samples = read_bytes(&file, &[1, 4, 5], None).unwrap();
        let expected: Vec<f32> = images.iter().map(|&byte| f32::from(byte) / 255.0).collect();
        assert_eq!(samples.inputs.concat(), expected);
        assert_eq!(samples.labels, Some(vec![7, 0, 9]));
        let first = read_bytes(&file, &[1, 4, 5], Some(2)).unwrap();
        assert_eq!(first, Samples { inputs: samples.inputs[..2].to_vec(), labels: Some(vec![7, 0]) });
    }

    #[test]
    fn the_array_may_have_another_name() {
        let data = Array2::<f32>::from_shape_fn((2, 3), |(n, x)| n as f32 - x as f32);
        for names in [["x", "y"], ["digits", "labels"]] {
            let file = npz(|npz| {
                npz.add_array(names[0], &data).unwrap();
                npz.add_array(names[1], &Array1::from(vec![1u8, 2])).unwrap();
            });
            let samples = read_bytes(&file, &[3], None).unwrap();
            assert_eq!(samples.inputs, [[0.0, -1.0, -2.0], [1.0, 0.0, -1.0]]);
            assert_eq!(samples.labels, Some(vec![1, 2]));
        }
    }

    #[test]
    fn one_sample_may_come_alone() {
        let alone = Array3::<f64>::from_elem((2, 3, 4), 0.25);
        let samples = read_bytes(&npy(&alone), &[2, 3, 4], None).unwrap();
        assert_eq!(samples, Samples { inputs: vec![vec![0.25; 24]], labels: None });
        assert_eq!(read_bytes(&npy(&alone), &[1, 3, 4], None).unwrap().inputs.len(), 2, "(n, H, W) serves (1, H, W)");
    }

    #[test]
    fn grey_pictures_are_framed_for_the_colour_networks() {
        let images = Array3::<u8>::from_shape_fn((2, 28, 28), |(n, y, x)| (1 + n * 100 + y * 3 + x) as u8);
        let samples = read_bytes(&npy(&images), &[3, 32, 32], None).unwrap();
        assert_eq!(samples.inputs.len(), 2);
        for (n, input) in samples.inputs.iter().enumerate() {
            for index in 0..3 * 32 * 32 {
                let (y, x) = (index / 32 % 32, index % 32);
                let inside = (2..30).contains(&y) && (2..30).contains(&x);
                let expected = if inside { f32::from(images[[n, y - 2, x - 2]]) / 255.0 } else { 0.0 };
                assert_eq!(input[index], expected);
            }
        }
    }

    #[test]
    fn another_margin_is_not_guessed() {
        let text = message(read_bytes(&npy(&bytes_of((2, 6, 6))), &[1, 8, 8], None));
        assert!(text.contains("[2, 6, 6]") && text.contains("[1, 8, 8]"), "{text}");
        let text = message(read_bytes(&npy(&bytes_of((2, 28, 28))), &[1, 32, 32], None));
        assert!(text.starts_with("array has shape [2, 28, 28], but the network takes [1, 32, 32]"), "{text}");
    }

    #[test]
    fn what_a_file_lacks_is_named() {
        let two = npz(|npz| {
            npz.add_array("b", &bytes_of((1, 2, 2))).unwrap();
            npz.add_array("a", &bytes_of((1, 2, 2))).unwrap();
        });
        let text = message(read_bytes(&two, &[1, 2, 2], None));
        assert!(text.starts_with(r#"holds ["a", "b"], and it is not clear which"#), "{text}");
        let text = message(read_bytes(&npz(|_| {}), &[1, 2, 2], None));
        assert!(text.starts_with("holds [], "), "{text}");
        let text = message(read_bytes(&npy(&bytes_of((0, 2, 2))), &[1, 2, 2], None));
        assert!(text.starts_with("array holds no sample"), "{text}");
        assert!(matches!(read_bytes(b"images", &[1], None).unwrap_err().problem, InputProblem::UnknownFormat));
        assert!(matches!(read_bytes(b"", &[1], None).unwrap_err().problem, InputProblem::UnknownFormat));
        let (_directory, path) = scratch("absent.npz");
        let error = read_samples(&path, &[1], None).unwrap_err();
        assert!(error.to_string().contains("absent.npz`: cannot be read"), "{error}");
    }

    #[test]
    fn a_count_of_samples_is_not_believed_before_they_are_read() {
        let mut file = npy(&bytes_of((3, 4, 5)));
        let claim = file.windows(9).position(|window| window == b"(3, 4, 5)").expect("the shape in the header");
        // The header is padded with blanks, which make room for a longer number.
        file.splice(claim..claim + 9, *b"(9000000000000000000, 4, 5)");
        let blanks = file.windows(18).position(|window| window == [b' '; 18]).expect("padding of the header");
        file.drain(blanks..blanks + 18);
        let text = message(read_bytes(&file, &[1, 4, 5], None));
        assert!(text.starts_with("array ends after 3 of 9000000000000000000 entries"), "{text}");
    }

    #[test]
    fn integers_other_than_bytes_are_refused_as_pixels() {
        let text = message(read_bytes(&npy(&Array2::<i32>::zeros((2, 3))), &[3], None));
        assert!(text.starts_with("array has dtype '<i4' and must have uint8, float32 or float64"), "{text}");
    }

    #[test]
    fn numbers_must_be_finite() {
        let mut images = Array2::<f32>::zeros((3, 4));
        images[[2, 1]] = f32::NAN;
        let text = message(read_bytes(&npy(&images), &[4], None));
        assert!(text.starts_with("sample 2 is NaN at index 1"), "{text}");
        assert_eq!(read_bytes(&npy(&images), &[4], Some(2)).unwrap().inputs.len(), 2);
        let large = Array2::<f64>::from_elem((1, 2), 1e300);
        let text = message(read_bytes(&npy(&large), &[2], None));
        assert!(text.starts_with("sample 0 is inf at index 0"), "{text}");
    }

    #[test]
    fn labels_must_be_one_class_a_sample() {
        let labelled = |labels: Array1<i16>| {
            npz(|npz| {
                npz.add_array("images", &bytes_of((3, 2, 2))).unwrap();
                npz.add_array("labels", &labels).unwrap();
            })
        };
        let text = message(read_bytes(&labelled(Array1::zeros(2)), &[1, 2, 2], None));
        assert!(text.starts_with("the labels have shape [2] for 3 samples"), "{text}");
        let text = message(read_bytes(&labelled(Array1::from(vec![0, -1, 2])), &[1, 2, 2], None));
        assert!(text.starts_with("the label of sample 1 is -1"), "{text}");
        let real = npz(|npz| {
            npz.add_array("images", &bytes_of((3, 2, 2))).unwrap();
            npz.add_array("labels", &Array1::<f32>::zeros(3)).unwrap();
        });
        let text = message(read_bytes(&real, &[1, 2, 2], None));
        assert!(text.starts_with("array `labels` has dtype '<f4' and must have an integer type"), "{text}");
    }

    #[test]
    fn damage_inside_an_archive_is_noticed() {
        let mut writer = NpzWriter::new(io::Cursor::new(Vec::new()));
        writer.add_array("images", &Array3::<u8>::from_elem((2, 2, 2), 0xA5)).unwrap();
        let mut file = writer.finish().unwrap().into_inner();
        let data = file.windows(8).position(|window| window == [0xA5; 8]).expect("stored without compression");
        file[data + 3] ^= 1;
        let text = message(read_bytes(&file, &[1, 2, 2], None));
        assert!(text.starts_with("array `images` is damaged"), "{text}");
    }

    proptest! {
        #[test]
        fn floats_come_back(n in 1usize..4, shape in [1usize..4, 1..5, 1..5], seed in any::<u32>(), double: bool) {
            let number = |index: usize| (seed.wrapping_mul(index as u32 + 1) as f32) / 1e6 - 1000.0;
            let values: Vec<f32> = (0..n * shape.iter().product::<usize>()).map(number).collect();
            let array = Array4::from_shape_vec((n, shape[0], shape[1], shape[2]), values.clone()).unwrap();
            let file = if double { npy(&array.mapv(f64::from)) } else { npy(&array) };
            prop_assert_eq!(read_bytes(&file, &shape, None).unwrap().inputs.concat(), values);
        }

        #[test]
        fn no_cut_or_broken_file_panics(cut in 0usize..2000, at in 0usize..2000, flip in 0u8..=255, kind in 0..2) {
            let mut file = match kind {
                0 => npy(&bytes_of((3, 4, 5))),
                _ => npz(|npz| {
                    npz.add_array("images", &bytes_of((3, 4, 5))).unwrap();
                    npz.add_array("labels", &Array1::<u8>::zeros(3)).unwrap();
                }),
            };
            let (cut, at) = (cut % file.len(), at % file.len());
            prop_assert!(read_bytes(&file[..cut], &[1, 4, 5], None).is_err());
            file[at] ^= flip;
            let _ = read_bytes(&file, &[1, 4, 5], None);
        }
    }
}
