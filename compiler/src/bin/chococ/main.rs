//! `chococ`: compiles ONNX networks to client-aided homomorphic-encryption plans, and shows what is in a plan.

mod check;
mod compile;
mod failure;
mod inspect;
mod ops;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// Compiles ONNX networks to client-aided homomorphic-encryption plans.
#[derive(Parser)]
#[command(name = "chococ", version, after_help = failure::EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile an ONNX network to a plan, with its weights in a file beside it
    Compile(compile::Arguments),
    /// List every node of an ONNX network that cannot be compiled, with reason and cure
    Check(check::Arguments),
    /// List the ONNX operators that are supported, and where each runs
    Ops,
    /// Show a plan: what each stage computes, what it costs, how much noise budget is left
    Inspect(inspect::Arguments),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Ops => ops::run(),
        Command::Inspect(arguments) => inspect::run(&arguments),
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
