//! The networks of this repository, with images to calibrate and to test them on.
//!
//! README.md beside this crate says where the images come from, under which licence, and how the networks were
//! trained. All files are small and lie in the repository: nothing is downloaded. Larger networks are built on the
//! spot, with random weights.
//!
//! - this module: the trained networks, by [`all`] and [`named`];
//! - [`BuiltNetwork`]: those with random weights, by [`built()`] and [`built_named`];
//! - [`builder`]: writes ONNX files.

pub mod builder;
mod built;
mod random;

pub use built::{BuiltNetwork, built, built_named};

use std::path::{Path, PathBuf};

/// A trained network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Its name; its file is `name.onnx`.
    pub name: &'static str,
    /// Shape of its input: channels, height, width.
    pub input_shape: [usize; 3],
    /// The images it was trained for.
    pub images: Images,
    /// Multiplications of one inference.
    pub macs: usize,
    /// Accuracy in floats on all test images, in percent.
    pub float_accuracy: f64,
}

/// A set of labelled 28 x 28 images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// Handwritten digits: 500 to calibrate, 2000 to test.
    Mnist,
    /// Pieces of clothing: 500 to calibrate, 1000 to test.
    Fashion,
}

const GREY: [usize; 3] = [1, 28, 28];

/// Grey images in a frame of zeros, once for each colour.
const WIDENED: [usize; 3] = [3, 32, 32];

const MODELS: [Model; 10] = [
    model("logreg", Images::Mnist, 7_840, 90.2),
    model("mlp", Images::Mnist, 104_768, 97.55),
    model("cryptonet_small", Images::Mnist, 106_625, 98.1),
    model("lenet5_small", Images::Mnist, 281_640, 98.95),
    model("lenet5_small_dyn", Images::Mnist, 281_640, 98.95),
    model("lenet5_large", Images::Mnist, 12_273_152, 98.85),
    model("mobilenet_fashion", Images::Fashion, 1_272_928, 85.4),
    model("mobilenet_fashion_bn", Images::Fashion, 1_272_928, 85.4),
    model("resnet20_fashion", Images::Fashion, 7_783_872, 86.5),
    Model { input_shape: WIDENED, ..model("squeezenet_fashion", Images::Fashion, 20_021_248, 86.9) },
];

const fn model(name: &'static str, images: Images, macs: usize, float_accuracy: f64) -> Model {
    Model { name, input_shape: GREY, images, macs, float_accuracy }
}

/// All networks, the smallest first within each set of images.
pub fn all() -> &'static [Model] {
    &MODELS
}

/// The network of that name.
pub fn named(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

/// The float logits of every network for its first 16 test images: an .npz file with an array for each, by name.
pub fn reference_logits() -> PathBuf {
    folder().join("data/reference_logits.npz")
}

impl Model {
    /// Its ONNX file.
    pub fn path(&self) -> PathBuf {
        folder().join(format!("{}.onnx", self.name))
    }

    /// Images to take the ranges of activations from: an .npz file with `images` and `labels`.
    pub fn calibration_images(&self) -> PathBuf {
        folder().join(format!("data/{}_calib.npz", self.images.stem()))
    }

    /// Images that it was not trained on: an .npz file with `images` and `labels`.
    pub fn test_images(&self) -> PathBuf {
        folder().join(format!("data/{}_test.npz", self.images.stem()))
    }
}

impl Images {
    fn stem(self) -> &'static str {
        match self {
            Images::Mnist => "mnist",
            Images::Fashion => "fashion",
        }
    }
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_there_and_small() {
        for model in all() {
            for path in [model.path(), model.calibration_images(), model.test_images(), reference_logits()] {
                let size = path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).len();
                assert!((1..8 << 20).contains(&size), "{} has {size} bytes", path.display());
            }
        }
    }

    #[test]
    fn every_network_is_found_by_its_name() {
        assert!(all().iter().all(|model| named(model.name) == Some(model)));
        assert_eq!(named("no such network"), None);
    }

    #[test]
    fn no_network_is_left_out() {
        let files = std::fs::read_dir(folder()).expect("this folder");
        let names = files.map(|file| file.expect("readable").file_name().into_string().expect("plain names"));
        let mut found: Vec<String> = names.filter_map(|n| n.strip_suffix(".onnx").map(str::to_owned)).collect();
        let mut listed: Vec<String> = all().iter().map(|model| model.name.to_owned()).collect();
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
    }
}
