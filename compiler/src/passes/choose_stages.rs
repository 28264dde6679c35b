//! Chooses for all server stages of a network: each by itself, then what they have in common.
//!
//! Assumes ranges proved. Makes true: every stage has a choice, all weights fit the server's memory and all Galois keys
//! the client's link where anything tried does, and keys are shared where that is cheaper. Keys become dearer until they
//! are few enough.

use chococ_plans::network::LinearLayer;
use chococ_plans::plan::RunnerUp;
use rayon::prelude::*;

use crate::no_parameters::NoParameters;
use crate::passes::bound_memory::bound_memory;
use crate::passes::choose_packing::{Choice, Restriction, StageSearch, choose_packing};
use crate::passes::share_keys::{key_bytes, share_keys};
use crate::passes::split_stages::Part;
use crate::target::Prices;
use crate::{DEFAULT_MAX_KEY_BYTES, Error, Options};

/// Server stages with their choices, what was tried for each, and what all their keys take.
pub struct Chosen {
    /// One for each server stage, with the best that lost.
    pub choices: Vec<(Choice, Option<RunnerUp>)>,
    /// What was tried for each.
    pub search: Vec<StageSearch>,
    /// Bytes of all Galois keys.
    pub key_bytes: usize,
}

/// How much dearer keys become each time that they take too many bytes.
const DEARER: f64 = 2.0;

/// How dear keys may become before no cheaper ones are expected: as if they were sent with every inference.
const DEAREST: f64 = 1024.0;

/// Chooses for all server stages until their Galois keys take no more bytes than they may.
///
/// # Errors
/// [`Error::NoParameters`], where nothing fits a stage; [`Error::GaloisKeys`], where the bound that was asked for is too
/// low.
pub fn choose_stages(parts: &[Part], options: &Options, progress: &(dyn Fn(&str) + Sync)) -> Result<Chosen, Error> {
    let most = options.max_key_bytes.unwrap_or(DEFAULT_MAX_KEY_BYTES);
    let prices = Prices::new(options.objective, options.target);
    let first = choose_at(parts, options, &prices)?;
    let (mut least, mut dearer) = (first.key_bytes, DEARER);
    if least <= most {
        return Ok(first);
    }
    while dearer <= DEAREST {
        progress("choosing packings and parameters again, for fewer Galois keys");
        let chosen = choose_at(parts, options, &prices.with_dearer_keys(dearer))?;
        if chosen.key_bytes <= most {
            return Ok(chosen);
        }
        least = least.min(chosen.key_bytes);
        dearer *= DEARER;
    }
    match options.max_key_bytes {
        Some(most) => Err(Error::GaloisKeys { least, most }),
        None => Ok(first),
    }
}

/// Chooses for all server stages, several at a time, and lets them share keys.
fn choose_at(parts: &[Part], options: &Options, prices: &Prices) -> Result<Chosen, Error> {
    let layers = parts.iter().filter_map(|part| match part {
        Part::Server(layer) => Some(layer),
        Part::Client(_) => None,
    });
    let layers: Vec<&LinearLayer> = layers.collect();
    let within = Restriction { kind: options.packing, ring_degree: options.ring_degree };
    let searched = layers.par_iter().map(|layer| match choose_packing(layer, within, prices) {
        (Some(choice), search) => Ok((choice, search)),
        (None, search) => Err(Error::NoParameters(NoParameters::new(layer, search, within))),
    });
    let (choices, search): (Vec<_>, Vec<_>) = searched.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let choices = bound_memory(choices, &search, options.max_server_bytes, prices);
    let choices = share_keys(&layers, choices, prices);
    let key_bytes = key_bytes(&choices);
    let with_runner_up = |(choice, search): (Choice, &StageSearch)| {
        let runner_up = search.runner_up(&choice, prices);
        (choice, runner_up)
    };
    Ok(Chosen { choices: choices.into_iter().zip(&search).map(with_runner_up).collect(), search, key_bytes })
}
