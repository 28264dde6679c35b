//! `chococ inspect`: what is in a plan.

mod dot;
mod noise;
mod report;
mod stages;
mod summary;
pub mod table;

use std::path::PathBuf;

use chococ_plans::file::read_plan;

use crate::failure::Failure;
use crate::print;

/// What to show.
#[derive(clap::Args)]
pub struct Arguments {
    /// The plan
    plan: PathBuf,
    #[command(flatten)]
    view: View,
}

/// At most one of these; otherwise a summary that fits a screen.
#[derive(clap::Args)]
#[group(multiple = false)]
struct View {
    /// Noise budgets of each stage, step by step
    #[arg(long)]
    noise: bool,
    /// Everything about each stage, a row each
    #[arg(long)]
    stages: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
    /// A graph of the stages for Graphviz
    #[arg(long)]
    dot: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let checked = read_plan(&arguments.plan)?;
    let View { noise, stages, json, dot } = arguments.view;
    print(&match () {
        () if noise => noise::show(&checked),
        () if stages => stages::show(&checked),
        () if json => report::show(&checked),
        () if dot => dot::show(&checked),
        () => summary::show(&checked),
    })
}
