//! Makes up pictures: colour gradients with soft blobs, which resemble photographs in smoothness and in nothing else.

use crate::random::Random;

/// Where the pictures come from.
const SEED: u64 = 20_240;

/// How far the grain goes to either side: about two of 256 levels.
const GRAIN: f32 = 0.01;

/// A colour: one number in [0, 1] a channel.
type Colour = Vec<f32>;

/// A round spot of one colour that fades towards its rim.
struct Blob {
    /// Its centre, (y, x) in pixels; it may lie a little outside.
    centre: [f32; 2],
    /// Its radius in pixels.
    radius: f32,
    colour: Colour,
}

/// Makes up pictures of (channels, height, width), in [0, 1] and row-major; fewer are the first of more.
pub(super) fn pictures(shape: [usize; 3], count: usize) -> Vec<Vec<f32>> {
    let mut random = Random::new(SEED);
    (0..count).map(|_| picture(shape, &mut random)).collect()
}

fn picture([channels, height, width]: [usize; 3], random: &mut Random) -> Vec<f32> {
    let (from, to) = (colour(channels, random), colour(channels, random));
    let slope = [random.between(-1.0, 1.0), random.between(-1.0, 1.0)];
    let blobs = blobs([channels, height, width], random);
    let mut picture = vec![0.0; channels * height * width];
    for y in 0..height {
        for x in 0..width {
            // A steep gradient leaves the range of its two colours near the corners; the last clamp mends that.
            let [down, right] = [y as f32 / height as f32 - 0.5, x as f32 / width as f32 - 0.5];
            let mut pixel = mixed(&from, &to, 0.5 + slope[0] * down + slope[1] * right);
            for blob in &blobs {
                pixel = mixed(&pixel, &blob.colour, blob.cover(y as f32, x as f32));
            }
            for (channel, value) in pixel.into_iter().enumerate() {
                let value: f32 = value + random.between(-GRAIN, GRAIN);
                picture[(channel * height + y) * width + x] = value.clamp(0.0, 1.0);
            }
        }
    }
    picture
}

fn colour(channels: usize, random: &mut Random) -> Colour {
    (0..channels).map(|_| random.uniform()).collect()
}

/// Three to six blobs, with radii from an eighth to a half of the picture's height.
fn blobs([channels, height, width]: [usize; 3], random: &mut Random) -> Vec<Blob> {
    let count = random.between(3.0, 7.0) as usize;
    let (height, width) = (height as f32, width as f32);
    let blob = |_| Blob {
        centre: [random.between(0.0, height), random.between(0.0, width)],
        radius: random.between(height / 8.0, height / 2.0),
        colour: colour(channels, random),
    };
    (0..count).map(blob).collect()
}

impl Blob {
    /// How much of what lies behind it the blob hides at a pixel: 1 at its centre, 0 from its radius on.
    fn cover(&self, y: f32, x: f32) -> f32 {
        let (dy, dx) = (y - self.centre[0], x - self.centre[1]);
        let inside = (1.0 - (dy * dy + dx * dx) / (self.radius * self.radius)).max(0.0);
        inside * (2.0 - inside)
    }
}

/// The colour that lies `part` of the way from one to the other.
fn mixed(from: &[f32], to: &[f32], part: f32) -> Colour {
    from.iter().zip(to).map(|(from, to)| from + (to - from) * part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 3] = [3, 32, 32];

    #[test]
    fn pixels_lie_between_0_and_1_and_pictures_differ() {
        let pictures = pictures(SHAPE, 20);
        assert!(pictures.iter().flatten().all(|pixel| (0.0..=1.0).contains(pixel)));
        assert!(pictures.iter().all(|picture| picture.len() == 3 * 32 * 32));
        for (index, picture) in pictures.iter().enumerate() {
            assert!(!pictures[..index].contains(picture));
        }
    }

    #[test]
    fn fewer_are_the_first_of_more() {
        assert_eq!(pictures(SHAPE, 2), pictures(SHAPE, 5)[..2]);
        assert!(pictures(SHAPE, 0).is_empty());
    }

    /// As in photographs, neighbours are alike, and pixels far apart are not.
    #[test]
    fn pictures_are_smooth_but_not_flat() {
        let pictures = pictures(SHAPE, 50);
        let mean_step = |distance: usize| {
            let rows = pictures.iter().flat_map(|picture| picture.chunks_exact(32));
            let steps: Vec<f32> =
                rows.flat_map(|row| row.iter().zip(&row[distance..]).map(|(a, b)| (a - b).abs())).collect();
            steps.iter().sum::<f32>() / steps.len() as f32
        };
        let (near, far) = (mean_step(1), mean_step(12));
        assert!(near < 0.05 && far > 3.0 * near && far > 0.1, "{near} and {far}");
    }
}
