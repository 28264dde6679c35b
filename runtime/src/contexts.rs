//! The contexts of a plan: one a server stage, and transforms once a key set.

use chococ_plans::check::CheckedPlan;

use crate::bfv::context::Context;
use crate::error::Error;

/// One context for each server stage of a plan; those of one key set share their transforms.
pub struct Contexts {
    /// In the order of the stages.
    stages: Vec<Context>,
    /// For each key set, the stage whose replies are the widest.
    widest: Vec<usize>,
}

impl Contexts {
    /// Prepares the contexts of a plan.
    ///
    /// # Errors
    /// [`Error::Parameters`], where a plan's parameters are beyond what this library computes with.
    pub fn new(plan: &CheckedPlan) -> Result<Contexts, Error> {
        let in_set = |key_set| {
            let stages = plan.server_stages().enumerate();
            let stages = stages.filter(move |(_, checked)| checked.stage.key_set == key_set);
            let widest = stages.max_by_key(|(_, checked)| checked.parameters.stage.reply_bits);
            widest.expect("a checked plan uses each of its key sets").0
        };
        let widest: Vec<usize> = (0..plan.plan().key_sets.len()).map(in_set).collect();
        let wrong = |key_set| move |problem| Error::Parameters { key_set, problem };
        let firsts = widest.iter().enumerate().map(|(key_set, &stage)| {
            let checked = plan.server_stages().nth(stage).expect("it was found among them");
            Context::new(checked.parameters).map_err(wrong(key_set))
        });
        let firsts = firsts.collect::<Result<Vec<_>, _>>()?;
        let of_stage = |checked: chococ_plans::check::CheckedStage<'_>| {
            let key_set = checked.stage.key_set;
            firsts[key_set].of_stage(checked.parameters.stage).map_err(wrong(key_set))
        };
        let stages = plan.server_stages().map(of_stage).collect::<Result<_, _>>()?;
        Ok(Contexts { stages, widest })
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
        self.widest.iter().map(|&stage| &self.stages[stage])
    }
}
