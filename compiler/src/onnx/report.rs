//! What is wrong with a model: every problem, in one list.

use std::collections::HashSet;
use std::fmt;

use super::reason::Reason;

/// Problems that a report prints before it only counts them.
const PRINTED: usize = 20;

/// All that keeps a model from being compiled; nothing, if it can be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Nodes of the ONNX graph.
    pub nodes: usize,
    /// The problems: those of the model as a whole first, then by node.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Says whether the model can be compiled.
    pub fn compiles(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.problems.iter().take(PRINTED).map(Problem::to_string).collect();
        f.write_str(&shown.join("\n"))?;
        match self.problems.len().saturating_sub(PRINTED) {
            0 => Ok(()),
            more => write!(f, "\n... and {more} more problems"),
        }
    }
}

/// One thing that cannot be compiled, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The node that it is about; none if it is about the model.
    pub node: Option<Label>,
    /// What was found and what was needed.
    pub reason: Reason,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match &self.node {
            Some(label) => {
                write!(f, "{label}: ")?;
                label.operator.as_str()
            }
            None => "",
        };
        write!(f, "{}\n  try: {}", self.reason, self.reason.cure(operator))
    }
}

/// How people find a node in their model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name; where ONNX has none, its first output; where that is empty too, its index.
    pub name: String,
    /// Its operator, with the domain where that is not ONNX's own.
    pub operator: String,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}` ({})", self.name, self.operator)
    }
}

/// Collects problems: any number about the model, one about each node, the first found.
#[derive(Default)]
pub(super) struct Problems {
    labels: Vec<Label>,
    model: Vec<Problem>,
    by_node: Vec<(usize, Problem)>,
    refused: HashSet<usize>,
}

impl Problems {
    /// Starts an empty collection over the nodes with these labels.
    pub(super) fn new(labels: Vec<Label>) -> Problems {
        Problems { labels, ..Problems::default() }
    }

    /// Adds a problem of the model as a whole.
    pub(super) fn model(&mut self, reason: Reason) {
        self.model.push(Problem { node: None, reason });
    }

    /// Adds a problem of a node, unless the node has one already: what follows from a first is noise.
    pub(super) fn node(&mut self, index: usize, reason: Reason) {
        if self.refused.insert(index) {
            self.by_node.push((index, Problem { node: Some(self.labels[index].clone()), reason }));
        }
    }

    /// Says whether a node has a problem.
    pub(super) fn has(&self, index: usize) -> bool {
        self.refused.contains(&index)
    }

    /// Says whether the model as a whole has a problem.
    pub(super) fn has_model(&self) -> bool {
        !self.model.is_empty()
    }

    /// Says whether there is no problem at all.
    pub(super) fn is_empty(&self) -> bool {
        self.model.is_empty() && self.by_node.is_empty()
    }

    /// Names a node in the plan.
    pub(super) fn name(&self, index: usize) -> &str {
        &self.labels[index].name
    }

    /// Ends the collection.
    pub(super) fn report(mut self) -> Report {
        self.by_node.sort_by_key(|(index, _)| *index);
        let problems = self.model.into_iter().chain(self.by_node.into_iter().map(|(_, problem)| problem)).collect();
        Report { nodes: self.labels.len(), problems }
    }
}
