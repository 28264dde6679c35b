//! Reads one sample from a `.png` picture.

use std::io::{BufRead, Seek};

use png::{BitDepth, ColorType, Decoder};

use super::{Fit, InputProblem, fit, widen_grey};

/// Reads a grey or RGB picture, 8 bits a channel, as (channels, height, width) in [0, 1], as light as it is stored.
///
/// # Errors
/// If the file is damaged, has another pixel format, or another shape than the network needs.
pub(super) fn read(file: impl BufRead + Seek, needed: &[usize]) -> Result<Vec<f32>, InputProblem> {
    let mut decoder = Decoder::new(file);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(InputProblem::Picture)?;
    let info = reader.info();
    let channels = match (info.color_type, info.bit_depth) {
        (ColorType::Grayscale, BitDepth::Eight) => 1,
        (ColorType::Rgb, BitDepth::Eight) => 3,
        (color, depth) => {
            let found = format!("{color:?} pixels at {} bits a channel", depth as u8);
            let grey = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
            let cure = if grey {
                "-alpha off -colorspace Gray -depth 8 -define png:color-type=0"
            } else {
                "-alpha off -depth 8 -define png:color-type=2"
            };
            return Err(InputProblem::PixelFormat { found, cure });
        }
    };
    let shape = [channels, info.height as usize, info.width as usize];
    if channels == 3 && needed.len() == 3 && needed[0] == 1 {
        return Err(InputProblem::ColourForGrey { needed: needed.to_vec() });
    }
    // From here on the picture is no larger than the network's input. Its channels are not a row of grey samples.
    let fit = match fit("picture", &shape, needed)? {
        (1, fit) => fit,
        _ => {
            let (found, needed) = (shape.to_vec(), needed.to_vec());
            return Err(InputProblem::Shape { array: "picture".to_owned(), found, needed });
        }
    };
    let mut pixels = vec![0; shape.iter().product()];
    reader.next_frame(&mut pixels).map_err(InputProblem::Picture)?;
    let plane = |channel: usize| pixels.iter().skip(channel).step_by(channels);
    let sample: Vec<f32> = (0..channels).flat_map(plane).map(|&pixel| f32::from(pixel) / 255.0).collect();
    Ok(match fit {
        Fit::Exact => sample,
        Fit::GreyWidened => widen_grey(&sample),
    })
}
