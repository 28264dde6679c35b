//! The error of a layer for which no parameters work: what was tried, and what to do.

use std::fmt;

use chococ_plans::network::LinearLayer;
use chococ_plans::packing::misfit::Misfit;

use crate::passes::choose_packing::{Attempt, Outcome, Restriction, StageSearch};

/// A layer that no packing and no parameters fit, within what was asked for.
#[derive(Clone, Debug)]
pub struct NoParameters {
    node: String,
    kind: &'static str,
    attempts: Vec<Attempt>,
    within: Restriction,
}

impl NoParameters {
    /// Gathers what is to be said.
    pub fn new(layer: &LinearLayer, search: StageSearch, within: Restriction) -> NoParameters {
        let kind = layer.operator.kind();
        NoParameters { node: layer.name.clone(), kind, attempts: search.attempts, within }
    }

    fn too_large(&self) -> bool {
        let large = |outcome: &Outcome| {
            matches!(outcome, Outcome::Misfit(Misfit::BlockTooLarge { .. } | Misfit::TooManyCells { .. }))
        };
        self.attempts.iter().all(|attempt| large(&attempt.outcome))
    }
}

impl fmt::Display for NoParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}` ({}): no secure encryption parameters fit", self.node, self.kind)?;
        for Attempt { kind, ring_degree, outcome } in &self.attempts {
            write!(f, "\n  {kind} packing at ring degree {ring_degree}: ")?;
            match outcome {
                Outcome::Misfit(misfit) => write!(f, "{misfit}")?,
                Outcome::NoBudget(bits) if bits.is_finite() => {
                    write!(f, "the estimated noise budget is {bits:.1} bits and must not be below 0")?;
                }
                Outcome::NoBudget(_) => write!(f, "128-bit security leaves no room for a modulus")?,
                Outcome::CannotBeat { bytes_at_least } => write!(f, "would take {bytes_at_least} bytes or more")?,
                Outcome::Fits(_) => write!(f, "fits")?,
            }
        }
        let cure = match (self.within.ring_degree, self.within.kind, self.too_large()) {
            (Some(_), _, _) => "leave out `--ring-degree` and let the compiler choose",
            (None, Some(_), _) => "`--packing auto`, which takes whatever fits",
            (None, None, true) => "reduce the size of the image that this node reads",
            (None, None, false) => "fewer `--activation-bits` or `--weight-bits`",
        };
        write!(f, "\n  try: {cure}")
    }
}
