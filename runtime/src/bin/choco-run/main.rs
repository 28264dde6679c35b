//! `choco-run`: carries a plan out, client and server in one process, under encryption or in the clear.

mod evaluate;
mod failure;
mod run;
mod sides;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::Failure;

/// Carries a plan out: a client and a server in one process, with nothing but bytes between them.
#[derive(Parser)]
#[command(
    name = "choco-run",
    version,
    after_help = failure::EXIT_CODES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Option<run::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the accuracy of the float network, the quantised one and the encrypted one
    Evaluate(evaluate::Arguments),
}

/// Who computes the linear layers, and how.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// Under encryption, in software
    Bfv,
    /// On the same integers, in the clear
    Plain,
}

/// What both commands take.
#[derive(clap::Args)]
struct Common {
    /// The plan; its weights lie beside it
    plan: PathBuf,
    /// Draw keys and errors from this seed instead of the operating system: for tests only, it gives the secrets away
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Threads of the server [default: as many as there are cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let arguments = Arguments::parse();
    let result = match (&arguments.command, &arguments.run) {
        (Some(Command::Evaluate(arguments)), _) => evaluate::run(arguments),
        (None, Some(arguments)) => run::run(arguments),
        (None, None) => unreachable!("clap asks for the plan"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&format!("error: {failure}\n"));
            failure.exit_code()
        }
    }
}

/// Prints to standard output; a reader that has gone away, as `head` does, is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Prints to standard error; where that is closed, nobody is left to be told so.
fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
