//! `chococ inspect`: what is in a plan.

mod dot;
mod noise;
mod report;
mod stages;
mod summary;
pub mod table;

use std::path::PathBuf;

use chococ_plans::file::read_plan;

use crate::failure::{EXIT_CODES, Failure};
use crate::print;

/// What to show.
#[derive(clap::Args)]
#[command(after_help = format!("A kB is 1000 bytes; log2 q and log2 t are in bits.\n\n{EXIT_CODES}"))]
pub struct Arguments {
    /// The plan, a .ron file
    plan: PathBuf,
    #[command(flatten)]
    view: View,
}

/// At most one of these; otherwise a summary that fits a screen.
#[derive(clap::Args)]
#[group(multiple = false)]
struct View {
    /// Noise budgets of each stage in bits: after encryption, after evaluation, in the reply
    #[arg(long)]
    noise: bool,
    /// A row a stage: packing, parameters, ciphertexts, bytes, operations, budget, what it won against
    #[arg(long)]
    stages: bool,
    /// One JSON document; sizes in bytes, budgets in bits
    #[arg(long)]
    json: bool,
    /// A graph for Graphviz: client and server stages, shapes and bytes on its edges
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
