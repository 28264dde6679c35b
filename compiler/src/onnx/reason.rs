//! Why a model, or a node of it, cannot be compiled, and what its author can do.

use super::operators;

/// One reason for a refusal. Its `Display` says what was found and what was needed; [`Reason::cure`], what to try.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The protobuf parses but holds no network.
    #[error("the model holds no graph with nodes in it")]
    NoGraph,
    /// More nodes than any network that could be compiled.
    #[error("the graph has {nodes} nodes and initialisers; at most {limit} are read")]
    TooLarge {
        /// Nodes and initialisers.
        nodes: usize,
        /// The most that are read.
        limit: usize,
    },
    /// Not exactly one input.
    #[error("the network has {} inputs ({}) and must have one", names.len(), list(names))]
    Inputs {
        /// Inputs that no initialiser fills.
        names: Vec<String>,
    },
    /// Not exactly one output.
    #[error("the network has {} outputs ({}) and must have one", names.len(), list(names))]
    Outputs {
        /// All outputs.
        names: Vec<String>,
    },
    /// The input does not hold float32.
    #[error("input `{input}`: it holds {found}; only float32 is supported")]
    InputType {
        /// The input.
        input: String,
        /// ONNX's name of the type.
        found: String,
    },
    /// The input's shape is unknown, or has no batch axis and another.
    #[error("input `{input}`: {}", match rank {
        None => "its shape is not known".to_string(),
        Some(rank) => format!("the number of its axes is {rank} and must be at least 2, the batch axis included"),
    })]
    InputRank {
        /// The input.
        input: String,
        /// Axes; none if the model does not say.
        rank: Option<usize>,
    },
    /// Several images at once.
    #[error("input `{input}`: the batch size is {batch} and must be 1")]
    FixedBatch {
        /// The input.
        input: String,
        /// Length of axis 0.
        batch: i64,
    },
    /// An image of unknown size.
    #[error("input `{input}`: the length of axis {axis} (`{symbol}`) is not fixed; only the batch axis may be dynamic")]
    DynamicAxis {
        /// The input.
        input: String,
        /// The axis, the batch axis being 0.
        axis: usize,
        /// Its symbol, or the number that stands for unknown.
        symbol: String,
    },
    /// The output is neither computed nor given.
    #[error("output `{output}`: no node computes it")]
    OutputNotMade {
        /// The output.
        output: String,
    },
    /// The output is the same for all inputs.
    #[error("output `{output}`: it does not depend on the input")]
    OutputConstant {
        /// The output.
        output: String,
    },
    /// Weights in another file.
    #[error("tensor `{tensor}`: its numbers lie in another file; they must be inside the model")]
    ExternalData {
        /// The initialiser.
        tensor: String,
    },
    /// Weights in sparse form.
    #[error("tensor `{tensor}`: sparse initialisers are not supported")]
    SparseTensor {
        /// The initialiser.
        tensor: String,
    },
    /// A tensor whose numbers do not fill its shape.
    #[error("tensor `{tensor}`: shape {dims:?} does not fit the {found} numbers of type {data_type} that are there")]
    TensorLength {
        /// The initialiser, or the attribute that holds it.
        tensor: String,
        /// Its shape.
        dims: Vec<i64>,
        /// ONNX's name of its type.
        data_type: String,
        /// Numbers that are there.
        found: usize,
    },
    /// An operator that no stage computes.
    #[error("the operator is not supported")]
    Operator,
    /// An operator that another library defines.
    #[error("operators of domain `{domain}` are not supported")]
    Domain {
        /// The domain.
        domain: String,
    },
    /// A node that reads a tensor that nobody defines.
    #[error("its input `{tensor}` is neither computed by a node nor stored in the model")]
    MissingTensor {
        /// The tensor.
        tensor: String,
    },
    /// A node before the one that it needs.
    #[error("its input `{tensor}` is computed by a later node; nodes must come after what they read")]
    OutOfOrder {
        /// The tensor.
        tensor: String,
    },
    /// Two definitions of one tensor.
    #[error("its output `{tensor}` is defined twice")]
    DefinedTwice {
        /// The tensor.
        tensor: String,
    },
    /// Weights that depend on the input.
    #[error("its input `{tensor}` depends on the network's input and must be constant")]
    NotConstant {
        /// The tensor.
        tensor: String,
    },
    /// An output beside the main one is used.
    #[error("its output `{tensor}` is used; only the first output is supported")]
    SecondOutput {
        /// The tensor.
        tensor: String,
    },
    /// An attribute with a value that has no meaning, or none here.
    #[error("{attribute} = {found} is not supported; {needed}")]
    Attribute {
        /// The attribute.
        attribute: String,
        /// Its value.
        found: String,
        /// What its value may be.
        needed: String,
    },
    /// A convolution or pooling that is not over images.
    #[error("the number of its spatial axes is {axes} and must be 2")]
    SpatialAxes {
        /// The axes.
        axes: usize,
    },
    /// A tensor that is not float32.
    #[error("it computes in {found}; only float32 is supported")]
    DataType {
        /// The type.
        found: String,
    },
    /// A batch norm or dropout that is still learning.
    #[error("it is in training mode")]
    Training,
    /// A window larger than the image, or one that lies outside.
    #[error(
        "a window of {kernel:?}, dilated by {dilations:?}, with padding {pads:?} does not meet an image of {image:?} \
         everywhere"
    )]
    Window {
        /// Window height and width.
        kernel: [usize; 2],
        /// Distance between its taps.
        dilations: [usize; 2],
        /// Top, left, bottom, right.
        pads: [usize; 4],
        /// Image height and width.
        image: [usize; 2],
    },
    /// An average over windows that count padding on one side only.
    #[error("count_include_pad with padding {pads:?}: the padding behind the image must equal the padding before it")]
    UnevenPadding {
        /// Top, left, bottom, right.
        pads: [usize; 4],
    },
    /// Channels that do not divide into groups.
    #[error("{channels} channels do not divide into {groups} groups")]
    Groups {
        /// Channels in or out.
        channels: usize,
        /// The groups.
        groups: usize,
    },
    /// A matrix product with more than one matrix.
    #[error(
        "it multiplies parts of a tensor of shape {shape:?} by matrices of their own; only one matrix is supported"
    )]
    ManyMatrices {
        /// Shape of the tensor that depends on the input.
        shape: Vec<usize>,
    },
    /// A constant that differs inside a channel.
    #[error("its constant of shape {constant:?} is not one number, or one a channel, of {shape:?}")]
    NotPerChannel {
        /// Shape of the constant.
        constant: Vec<usize>,
        /// Shape of what it meets.
        shape: Vec<usize>,
    },
    /// A transpose that moves the batch axis.
    #[error("it moves the batch axis: shape {from:?} to {to:?}")]
    MovesData {
        /// Shape before.
        from: Vec<usize>,
        /// Shape after.
        to: Vec<usize>,
    },
    /// Axis 0 is no longer the batch axis.
    #[error("it reads a tensor of shape {shape:?}, whose first axis is not a batch axis of length 1")]
    BatchLost {
        /// The tensor's shape.
        shape: Vec<usize>,
    },
    /// A tensor with more axes than a plan's may have.
    #[error("`{tensor}` has shape {shape:?}; at most {most} axes beside the batch are supported")]
    Axes {
        /// The node that makes it.
        tensor: String,
        /// Its shape without the batch axis.
        shape: Vec<usize>,
        /// How many there may be.
        most: usize,
    },
    /// A softmax over several axes.
    #[error("softmax over axes {axes:?} of a tensor of shape {shape:?}; only one axis is supported")]
    SoftmaxAxes {
        /// The axes.
        axes: Vec<usize>,
        /// Shape of what it reads.
        shape: Vec<usize>,
    },
    /// Weights that are not numbers.
    #[error("its weights hold infinities or NaN")]
    NotFinite,
    /// A result without elements.
    #[error("its result has shape {shape:?}, which is empty")]
    Empty {
        /// The shape.
        shape: Vec<usize>,
    },
    /// More numbers than any network that could be compiled.
    #[error("it asks for up to {elements} numbers; at most {limit} are supported")]
    Elements {
        /// A bound on the numbers of its result, or of all computed constants so far.
        elements: u64,
        /// The most that are supported.
        limit: u64,
    },
    /// A shape that could not be worked out.
    #[error("its shape could not be worked out: {message}")]
    Shape {
        /// What the shape analysis said.
        message: String,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

impl Reason {
    /// Says what to try, for a node with this operator.
    pub fn cure(&self, operator: &str) -> &'static str {
        match self {
            Reason::NoGraph => "export the network again; this file may hold only a function library",
            Reason::TooLarge { .. } => "simplify the model before (onnxsim, or constant folding in the exporter)",
            Reason::Inputs { .. } => "export a network of one image; make every other input a constant",
            Reason::Outputs { .. } => "export the network with the one output that the client needs",
            Reason::InputType { .. } => "export with a float32 input (pixels divided by 255, for instance)",
            Reason::DataType { .. } => "export the network in float32, without casts",
            Reason::InputRank { .. } => "export with a fixed input shape such as [1, channels, height, width]",
            Reason::FixedBatch { .. } => "export with batch size 1, or with a dynamic batch axis",
            Reason::DynamicAxis { .. } => "fix the image's size at export; leave only axis 0 in `dynamic_axes`",
            Reason::OutputNotMade { .. } | Reason::MissingTensor { .. } => {
                "export again with all weights stored (`export_params=True` in PyTorch)"
            }
            Reason::OutputConstant { .. } => "check that the exported function uses its argument",
            Reason::ExternalData { .. } => "save with `onnx.save(onnx.load(path), one_file)`, which stores them inside",
            Reason::SparseTensor { .. } => "store the weights densely",
            Reason::TensorLength { .. } => "export again; the file is damaged",
            Reason::Operator => operators::cure(operator),
            Reason::Domain { .. } => "export with standard operators only (domain `ai.onnx`)",
            Reason::OutOfOrder { .. } | Reason::DefinedTwice { .. } => {
                "check the file with `onnx.checker`, and export again"
            }
            Reason::NotConstant { .. } => "store it as an initialiser; attention and dynamic weights are not supported",
            Reason::SecondOutput { .. } => "leave the second output unused",
            Reason::Attribute { .. } => "change the layer before export, or write it as supported ones",
            Reason::SpatialAxes { .. } => {
                "use layers over images or signals: [1, channels, height, width] or [1, channels, length]"
            }
            Reason::Training => "export in evaluation mode (`model.eval()` in PyTorch)",
            Reason::Window { .. } => "make the window smaller, or the image larger",
            Reason::UnevenPadding { .. } => "set count_include_pad to 0, or pad evenly",
            Reason::Groups { .. } => "export again; such a layer is not valid ONNX",
            Reason::ManyMatrices { .. } => "write it as a Conv with a 1x1 kernel, in groups",
            Reason::NotPerChannel { .. } => "use one constant a channel, as a bias or a batch norm does",
            Reason::MovesData { .. } => "keep the batch axis first",
            Reason::BatchLost { .. } => "keep axis 0 as the batch axis (Flatten with axis 1, Reshape to [1, -1])",
            Reason::Axes { .. } => "reshape so that neighbouring axes become one, or use SpaceToDepth or DepthToSpace",
            Reason::SoftmaxAxes { .. } => "export with opset 13 or later, or flatten to [1, features] before it",
            Reason::NotFinite => "train again; the network has diverged",
            Reason::Empty { .. } => "make the image larger, or the windows smaller",
            Reason::Elements { .. } => "check the shapes in the model; use smaller images",
            Reason::Shape { .. } => {
                "check the file with `onnx.checker` and `onnx.shape_inference`, or export with opset 13 to 18"
            }
        }
    }
}
