//! `choco-run evaluate`: the accuracy of the float network, the quantised one and the encrypted one.

use std::path::PathBuf;

use chococ_plans::input::read_samples;
use chococ_runtime::client::Watch;
use chococ_runtime::reference;
use comfy_table::{Table, presets};
use rayon::prelude::*;

use crate::failure::{EXIT_CODES, Failure};
use crate::sides::{Loaded, Sides, largest, progress};
use crate::{Backend, Common, print};

/// Samples that are run under encryption unless `--limit` says otherwise: enough to see, and done in seconds.
const ENCRYPTED_SAMPLES: usize = 10;

/// What to evaluate, and on what.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Labelled samples: `images` and `labels` in an .npz file
    #[arg(long, value_name = "FILE.npz")]
    data: PathBuf,
    /// How many samples, from the first [default: 10 under encryption, otherwise all]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Stop at the quantised network, or go on to the encrypted one
    #[arg(long, value_enum, default_value_t = Backend::Plain)]
    backend: Backend,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loaded = arguments.common.load()?;
    let limit = match (arguments.limit, arguments.backend) {
        (Some(limit), _) => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        (None, Backend::Bfv) => Some(ENCRYPTED_SAMPLES),
        (None, Backend::Plain) => None,
    };
    let samples = read_samples(&arguments.data, &loaded.plan.plan().input_shape, limit)?;
    let labels = samples.labels.ok_or(Failure::NoLabels)?;
    let inputs = &samples.inputs;

    let Loaded { plan, weights } = &loaded;
    let float = in_parallel("float", inputs, |x| Ok(largest(&reference::floats(plan, weights, x)?)))?;
    let quantised = in_parallel("quantised", inputs, |x| Ok(largest(&reference::integers(plan, weights, x)?.output)))?;
    let encrypted = match arguments.backend {
        Backend::Plain => None,
        Backend::Bfv => Some(under_encryption(&arguments.common, &loaded, inputs)?),
    };

    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(vec!["network", "right", "accuracy", "agrees with float"]);
    let rows = [("float", Some(&float)), ("quantised", Some(&quantised)), ("encrypted", encrypted.as_ref())];
    for (name, classes) in rows.into_iter().filter_map(|(name, classes)| classes.map(|classes| (name, classes))) {
        let equal = |to: &[usize]| classes.iter().zip(to).filter(|(class, other)| class == other).count();
        let percent = |count: usize| format!("{:.2} %", 100.0 * count as f64 / labels.len() as f64);
        let right = equal(&labels);
        table.add_row([
            name.to_owned(),
            format!("{right} of {}", labels.len()),
            percent(right),
            percent(equal(&float)),
        ]);
    }
    print(&format!("{table}\n"))
}

/// Classifies all inputs on all cores.
fn in_parallel(
    what: &'static str,
    inputs: &[Vec<f32>],
    classify: impl Fn(&[f32]) -> Result<usize, Failure> + Sync,
) -> Result<Vec<usize>, Failure> {
    let bar = progress(what, inputs.len());
    let classes = inputs.par_iter().map(|input| classify(input).inspect(|_| bar.inc(1))).collect();
    bar.finish_and_clear();
    classes
}

/// Classifies all inputs under encryption, one after the other: the server uses all cores for each.
fn under_encryption(common: &Common, loaded: &Loaded, inputs: &[Vec<f32>]) -> Result<Vec<usize>, Failure> {
    let mut rng = common.rng();
    let sides = Sides::new(loaded, Watch::default(), &mut rng)?;
    let session = sides.server.session(&sides.galois_keys)?;
    let bar = progress("encrypted", inputs.len());
    let mut classes = Vec::new();
    for input in inputs {
        classes.push(largest(&sides.infer(&session, input, &mut rng)?.output));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(classes)
}
