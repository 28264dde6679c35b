//! Turns a [`Plan`] into a [`CheckedPlan`], or says what is wrong with it.
//!
//! Whoever carries out a plan accepts nothing but a checked one, and so needs no second round of checks. Everything
//! that a plan states and that follows from the rest of it is computed again: layouts, Galois keys, costs, budgets.
//! (The ranges follow from the weights: [`Weights::from_bytes`](crate::weights::Weights::from_bytes) proves them.)

mod client;
pub mod meaning;
mod parameters;

use std::collections::BTreeSet;

use crate::cost;
use crate::evaluation::Evaluation;
use crate::noise::{self, COEFFICIENTS, EncryptionKey};
use crate::packing::Packing;
use crate::packing::layout::Layout;
use crate::packing::misfit::Misfit;
use crate::params::Parameters;
use crate::plan::{Plan, Security, ServerStage};

/// A plan that holds together, with the parameters and layouts of its server stages.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    plan: Plan,
    stages: Vec<(Parameters, Layout)>,
}

/// One server stage of a checked plan, with all that belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct CheckedStage<'a> {
    /// The stage as the plan states it.
    pub stage: &'a ServerStage,
    /// Its encryption parameters.
    pub parameters: &'a Parameters,
    /// Where its numbers sit.
    pub layout: &'a Layout,
}

impl CheckedPlan {
    /// The plan as data.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The server stages, in order.
    pub fn server_stages(&self) -> impl ExactSizeIterator<Item = CheckedStage<'_>> {
        let stages: Vec<&ServerStage> = self.plan.server_stages().collect();
        let checked = stages.into_iter().zip(&self.stages);
        checked.map(|(stage, (parameters, layout))| CheckedStage { stage, parameters, layout })
    }
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A tensor of a shape that nothing can have.
    #[error("the plan's {what} has shape {shape:?}")]
    Shape {
        /// Which tensor.
        what: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A value is read before it is defined, defined twice, or never defined.
    #[error("{stage}: value {value} {problem}")]
    Value {
        /// The step or layer.
        stage: String,
        /// The value's number.
        value: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An operator that does not fit the shapes around it, or numbers out of range.
    #[error("{stage}: {problem}")]
    Operator {
        /// The step or layer.
        stage: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Encryption parameters that cannot work.
    #[error("key set {key_set}: {problem}")]
    Parameters {
        /// Index of the key set.
        key_set: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Encryption parameters below 128 bits.
    #[error(
        "key set {key_set}: a modulus of {found:.1} bits is insecure at ring degree {ring_degree}: \
         128-bit security allows {limit}\n  try: compile the model again, and leave the parameters to the compiler"
    )]
    Insecure {
        /// Index of the key set.
        key_set: usize,
        /// log2 of the whole modulus.
        found: f64,
        /// N.
        ring_degree: usize,
        /// What the table allows.
        limit: u32,
    },
    /// A file name that leads elsewhere.
    #[error("`{0}` is not the plain name of a file beside the plan")]
    FileName(String),
    /// A stage that names a key set which does not exist.
    #[error("{stage}: there is no key set {key_set}")]
    KeySet {
        /// The layer.
        stage: String,
        /// The index it names.
        key_set: usize,
    },
    /// A plaintext modulus that is too small to hold the stage's results.
    #[error("{stage}: results take {width} values, the plaintext modulus is {plaintext_modulus}")]
    Overflow {
        /// The layer.
        stage: String,
        /// How many values the widest channel takes.
        width: u64,
        /// t.
        plaintext_modulus: u64,
    },
    /// A packing that does not fit.
    #[error("{stage}: {misfit}")]
    Packing {
        /// The layer.
        stage: String,
        /// Why not.
        misfit: Misfit,
    },
    /// Something stated that is not what it should be.
    #[error("{stage}: the plan states {what} {stated}, it is {counted}")]
    Stated {
        /// The layer or key set.
        stage: String,
        /// Which number.
        what: &'static str,
        /// The plan's.
        stated: String,
        /// The one that follows.
        counted: String,
    },
    /// Noise that would drown the result.
    #[error("{stage}: the estimated noise budget is {budget_bits:.2} bits and must not be below 0")]
    Budget {
        /// The layer.
        stage: String,
        /// The budget of the reply.
        budget_bits: f64,
    },
    /// More stages than messages can be told apart by.
    #[error("the plan has {found} server stages, messages can be told apart for {LARGEST_STAGES}")]
    Stages {
        /// Server stages.
        found: usize,
    },
    /// More coefficients than the failure probability allows for.
    #[error("the plan decrypts {found} coefficients, its failure probability holds for {COEFFICIENTS}")]
    TooLarge {
        /// Coefficients of all replies.
        found: usize,
    },
}

/// Server stages that a plan may have: a message counts them in two bytes.
const LARGEST_STAGES: usize = 1 << 16;

/// Checks a plan.
///
/// # Errors
/// [`PlanError`]: the first thing found wrong.
pub fn check(plan: Plan) -> Result<CheckedPlan, PlanError> {
    for name in [&plan.model.file, &plan.weights.file] {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
            return Err(PlanError::FileName(name.clone()));
        }
    }
    stated("security", "what it rests on", &plan.security, &Security::stated())?;
    for (key_set, set) in plan.key_sets.iter().enumerate() {
        parameters::check_keys(key_set, &set.parameters)?;
    }
    let found = plan.server_stages().count();
    if found > LARGEST_STAGES {
        return Err(PlanError::Stages { found });
    }
    meaning::check(&plan)?;
    let mut used: Vec<Option<BTreeSet<u64>>> = vec![None; plan.key_sets.len()];
    let mut stages = Vec::new();
    for stage in plan.server_stages() {
        let (checked, galois) = server_stage(&plan, stage)?;
        used[stage.key_set].get_or_insert_default().extend(galois);
        stages.push(checked);
    }
    for (key_set, (set, used)) in plan.key_sets.iter().zip(used).enumerate() {
        let unused = || PlanError::Parameters { key_set, problem: "no stage uses it".to_owned() };
        let counted: Vec<u64> = used.ok_or_else(unused)?.into_iter().collect();
        stated(&format!("key set {key_set}"), "Galois keys", &set.galois, &counted)?;
    }
    let decrypted = |(_, layout): &(Parameters, Layout)| -> usize {
        (0..layout.outputs()).map(|output| layout.returned_count(output)).sum()
    };
    let found = stages.iter().map(decrypted).sum();
    if found > COEFFICIENTS {
        return Err(PlanError::TooLarge { found });
    }
    Ok(CheckedPlan { plan, stages })
}

/// Checks a stage; returns its parameters and layout, and the automorphisms that it takes.
fn server_stage(plan: &Plan, stage: &ServerStage) -> Result<((Parameters, Layout), BTreeSet<u64>), PlanError> {
    let name = || format!("stage `{}`", stage.layer.name);
    let no_key_set = || PlanError::KeySet { stage: name(), key_set: stage.key_set };
    let wrong = |problem| PlanError::Operator { stage: name(), problem };
    let parameters = plan.parameters(stage).ok_or_else(no_key_set)?;
    let (width, plaintext_modulus) = (stage.layer.width(), parameters.stage.plaintext_modulus);
    if width > plaintext_modulus {
        return Err(PlanError::Overflow { stage: name(), width, plaintext_modulus });
    }
    parameters::check_stage(&parameters, matches!(stage.packing, Packing::Slots(_))).map_err(wrong)?;
    let layout = Layout::new(&stage.layer.operator, stage.packing, parameters.keys.ring_degree)
        .map_err(|misfit| PlanError::Packing { stage: name(), misfit })?;
    let evaluation = Evaluation::new(&stage.layer, &layout);
    if !evaluation.galois.is_empty() && parameters.keys.key_switching_prime.is_none() {
        return Err(wrong("rotations and merges need a key-switching prime".to_owned()));
    }
    stated(&name(), "costs", &stage.cost, &cost::count(&parameters, &layout, &evaluation))?;
    let budget = noise::estimate(&parameters, &evaluation.noise, EncryptionKey::Secret);
    stated(&name(), "budgets", &stage.budget, &budget)?;
    if budget.reply_bits.is_nan() || budget.reply_bits < 0.0 {
        return Err(PlanError::Budget { stage: name(), budget_bits: budget.reply_bits });
    }
    Ok(((parameters, layout), evaluation.galois))
}

fn stated<T: PartialEq + std::fmt::Debug>(
    stage: &str,
    what: &'static str,
    stated: &T,
    counted: &T,
) -> Result<(), PlanError> {
    if stated == counted {
        return Ok(());
    }
    let (stated, counted) = (format!("{stated:?}"), format!("{counted:?}"));
    Err(PlanError::Stated { stage: stage.to_owned(), what, stated, counted })
}
