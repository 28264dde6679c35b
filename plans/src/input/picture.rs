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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn png(color: ColorType, depth: BitDepth, width: u32, height: u32, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    fn message(file: &[u8], needed: &[usize]) -> String {
        read(Cursor::new(file), needed).unwrap_err().to_string()
    }

    #[test]
    fn grey_and_colour_become_planes() {
        let grey = png(ColorType::Grayscale, BitDepth::Eight, 3, 2, &[0, 51, 255, 1, 2, 3]);
        let expected = [0.0, 0.2, 1.0, 1.0 / 255.0, 2.0 / 255.0, 3.0 / 255.0];
        assert_eq!(read(Cursor::new(&grey), &[1, 2, 3]).unwrap(), expected);
        let colour = png(ColorType::Rgb, BitDepth::Eight, 2, 1, &[255, 0, 51, 0, 255, 102]);
        assert_eq!(read(Cursor::new(&colour), &[3, 1, 2]).unwrap(), [1.0, 0.0, 0.0, 1.0, 0.2, 0.4]);
    }

    #[test]
    fn a_grey_picture_is_framed_for_the_colour_networks() {
        let file = png(ColorType::Grayscale, BitDepth::Eight, 28, 28, &[255; 784]);
        let sample = read(Cursor::new(&file), &[3, 32, 32]).unwrap();
        assert_eq!((sample.len(), sample.iter().sum::<f32>()), (3072, 3.0 * 784.0));
    }

    #[test]
    fn colour_channels_are_not_three_grey_samples() {
        let file = png(ColorType::Rgb, BitDepth::Eight, 28, 28, &[0; 3 * 784]);
        assert!(message(&file, &[3, 32, 32]).starts_with("picture has shape [3, 28, 28], but the network takes"));
        assert!(message(&file, &[28, 28]).starts_with("picture has shape [3, 28, 28], but the network takes"));
        let text = message(&file, &[1, 28, 28]);
        assert!(text.starts_with("is an RGB picture, but the network takes one channel ([1, 28, 28])"), "{text}");
    }

    #[test]
    fn other_pixel_formats_are_refused_with_a_cure() {
        let deep = png(ColorType::Grayscale, BitDepth::Sixteen, 1, 1, &[0, 0]);
        let text = message(&deep, &[1, 1, 1]);
        assert!(text.starts_with("is a picture of Grayscale pixels at 16 bits a channel"), "{text}");
        assert!(text.contains("-colorspace Gray"), "{text}");
        let transparent = png(ColorType::Rgba, BitDepth::Eight, 1, 1, &[0; 4]);
        assert!(message(&transparent, &[3, 1, 1]).contains("-alpha off -depth 8"));
    }

    #[test]
    fn a_size_is_not_believed_before_it_fits() {
        let mut file = png(ColorType::Grayscale, BitDepth::Eight, 1, 1, &[0]);
        // Width and height of the header chunk, whose checksum then has to be made good.
        file[16..24].copy_from_slice(&[0, 0, 0x4E, 0x20, 0, 1, 0, 0]);
        let checksum = crc32(&file[12..29]);
        file[29..33].copy_from_slice(&checksum.to_be_bytes());
        let text = message(&file, &[1, 1, 1]);
        assert!(text.starts_with("picture has shape [1, 65536, 20000], but the network takes [1, 1, 1]"), "{text}");
    }

    #[test]
    fn cut_pictures_are_damaged() {
        let file = png(ColorType::Grayscale, BitDepth::Eight, 3, 2, &[0, 51, 255, 1, 2, 3]);
        for length in 4..file.len() - 20 {
            assert!(message(&file[..length], &[1, 2, 3]).starts_with("is not a whole .png file"), "at {length}");
        }
    }

    /// The checksum of PNG chunks, bit by bit.
    fn crc32(bytes: &[u8]) -> u32 {
        let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
    }
}
