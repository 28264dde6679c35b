//! The contexts of a plan: one a server stage, and transforms once a key set.

use chococ_plans::check::CheckedPlan;

use crate::bfv::context::Context;
use crate::error::Error;

/// One context for each server stage of a plan; those of one key set share their transforms.
pub struct Contexts {
    /// In the order of the stages.
    stages: Vec<Context>,
    /// For each key set, the first stage that uses it.
    first: Vec<usize>,
}

impl Contexts {
    /// Prepares the contexts of a plan.
    ///
    /// # Errors
    /// [`Error::Parameters`], where a plan's parameters are beyond what this library computes with.
    pub fn new(plan: &CheckedPlan) -> Result<Contexts, Error> {
        let mut first: Vec<Option<usize>> = vec![None; plan.plan().key_sets.len()];
        let mut stages: Vec<Context> = Vec::new();
        for (index, checked) in plan.server_stages().enumerate() {
            let key_set = checked.stage.key_set;
            let context = match first[key_set] {
                Some(other) => stages[other].of_stage(checked.parameters.stage),
                None => Context::new(checked.parameters),
            };
            first[key_set].get_or_insert(index);
            stages.push(context.map_err(|problem| Error::Parameters { key_set, problem })?);
        }
        let first = first.into_iter().map(|first| first.expect("a checked plan uses each of its key sets")).collect();
        Ok(Contexts { stages, first })
    }

    /// The context of server stage `index`.
    ///
    /// # Panics
    /// When the plan has fewer stages.
    pub fn stage(&self, index: usize) -> &Context {
        &self.stages[index]
    }

    /// A context for making and reading the keys of each key set, in order.
    pub fn key_sets(&self) -> impl Iterator<Item = &Context> {
        self.first.iter().map(|&stage| &self.stages[stage])
    }
}
