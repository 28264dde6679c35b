//! The command line, as a user meets it: what it prints, what it writes, how it fails.

mod errors;
mod views;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, in which `chococ` runs.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("the folder is writable");
    }

    /// Copies a network of models/ here.
    fn model(&self, name: &str) -> &'static chococ_models::Model {
        let model = chococ_models::named(name).expect("it is part of this repository");
        self.copy(&model.path(), &format!("{name}.onnx"));
        model
    }

    fn copy(&self, from: &Path, name: &str) {
        std::fs::copy(from, self.path(name)).expect("both are readable and writable");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chococ"));
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Runs a command that must succeed; returns what it printed on standard output.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that must fail; returns its exit code and what it printed on standard error.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.stdout.is_empty(), "nothing but errors");
        let code = output.status.code().expect("an exit, not a signal");
        format!("{}exit code {code}", String::from_utf8(output.stderr).expect("text"))
    }

    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).expect("the folder exists");
        let mut names: Vec<String> =
            files.map(|file| file.expect("readable").file_name().into_string().expect("plain names")).collect();
        names.sort();
        names
    }

    /// Compiles the smallest LeNet as any user would.
    fn compiled() -> Desk {
        let desk = Desk::new();
        let model = desk.model("lenet5_small");
        desk.copy(&model.calibration_images(), "calib.npz");
        desk.succeed(&["compile", "lenet5_small.onnx", "--calibrate", "calib.npz"]);
        desk
    }
}
