"""Writes the node tests of ONNX's own backend suite as networks of one image, for tests/onnx_nodes.rs to run.

A case of the suite is a small model, its inputs, and the outputs that ONNX says it has. Chococ reads a network with one
float32 input whose axis 0 is a batch axis of length 1, so a case is changed before it is written:

- The first input stays one; the others become initialisers, with the numbers that the case gives them.
- Only the first output is compared; others are no longer outputs of the model, but stay outputs of their nodes.
- An element-wise case whose axis 0 is not of length 1, or that has fewer than two axes, gets one more axis in front.
- Any other case whose axis 0 is longer than 1 is asked sample by sample. Where its samples cannot be told apart, it
  gets an axis in front as well, and what names axes or shapes is moved one on.

No change may change what the case says: ONNX's checker must accept the changed model, and ONNX's reference evaluator
must find the case's own output with it, for every sample. Or else the case is left out, and the reason counted.

The suite has few linear layers. So what follows one in a real network, pooling and batch norm, is written once more
behind a convolution that changes nothing, as conv_then_...

Writes FOLDER/<name>/model.onnx, and input.npy and output.npy, whose axis 0 counts samples.

Needs Python 3.11 or later, and onnx and numpy in the versions that .ci/run names.
Command: python3 tests/onnx_nodes.py FOLDER; cases that an earlier run wrote there go.
"""

import collections
import pathlib
import sys
import warnings

import numpy
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

OPERATORS = pathlib.Path(__file__).parent.parent / "compiler" / "src" / "onnx" / "operators.txt"

# A number of the output depends on the numbers in the same place of the inputs, and an axis in front changes nothing.
ELEMENTWISE = set(
    "Abs Add Cast Ceil Celu Clip Div Dropout Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity LeakyRelu Log Max "
    "Mean Min Mish Mul Neg PRelu Reciprocal Relu Round Selu Sigmoid Sign Softplus Softsign Sqrt Sub Sum Swish Tanh "
    "ThresholdedRelu".split()
)

BEHIND_A_CONVOLUTION = {"AveragePool", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"}

# Which input of an operator lists axes.
AXES = {"Slice": 3, "Squeeze": 1, "Unsqueeze": 1} | {
    f"Reduce{what}": 1 for what in ("L1", "LogSum", "Max", "Mean", "Min", "Prod", "Sum")
}


class LeftOut(Exception):
    """A case that chococ cannot be asked; says why."""


def families():
    """The operators that chococ knows, each with its family, as the compiler lists them."""
    return dict(line.split()[:2] for line in OPERATORS.read_text().splitlines())


def on_input(graph):
    """The nodes that compute on numbers of the first input; others compute constants, with whatever operator."""
    known, variable, nodes = families(), {graph.input[0].name}, []
    for node in graph.node:
        if variable & set(node.input) and known.get(node.op_type) != "shapes":
            nodes.append(node)
            variable |= set(filter(None, node.output))
    return nodes


def is_tensor(value):
    return isinstance(value, (numpy.ndarray, numpy.generic, int, float))


def is_floats(value):
    return isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype == numpy.float32


def with_constants(case):
    """The case with one input and one output, and the numbers of both."""
    inputs, outputs = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    if len(graph.input) == 0:
        raise LeftOut("it has no input")
    if not is_floats(inputs[0]):
        raise LeftOut("its first input is not a float32 tensor")
    if not is_floats(outputs[0]):
        raise LeftOut("its first output is not a float32 tensor")
    if any(node.domain not in ("", "ai.onnx") for node in graph.node):
        raise LeftOut("it has an operator of another domain")
    if not {node.op_type for node in on_input(graph)} <= families().keys():
        raise LeftOut("it has an operator that is not supported")
    if graph.output[0].name not in {name for node in on_input(graph) for name in node.output}:
        raise LeftOut("its first output does not depend on its first input")
    for declared, value in zip(graph.input[1:], inputs[1:]):
        if not is_tensor(value):
            raise LeftOut("an input is not a tensor")
        # Numbers of rank 0 come as Python's or numpy's own, not always of the type that the model declares.
        value = numpy.asarray(value)
        if value.ndim == 0:
            value = value.astype(onnx.helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type))
        graph.initializer.append(onnx.numpy_helper.from_array(value, declared.name))
    del graph.input[1:], graph.output[1:], graph.value_info[:]
    return model, numpy.asarray(inputs[0]), numpy.asarray(outputs[0])


def reshaped(model, input_shape, output_shape):
    """A copy of the model that declares these shapes of its input and its output."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for value, shape in ((changed.graph.input[0], input_shape), (changed.graph.output[0], output_shape)):
        made = onnx.helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, shape)
        value.CopyFrom(made)
    return changed


def moved(axis):
    """An axis after there is one more in front; those counted from the end stay."""
    return axis + 1 if axis >= 0 else axis


def moved_on(model, rank):
    """A copy of a model of one node, on tensors of this rank, that leaves an axis in front alone."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    [node] = graph.node
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Split" and "axis" not in attributes:
        node.attribute.append(onnx.helper.make_attribute("axis", 1))
    if node.op_type == "Transpose" and "perm" not in attributes:
        node.attribute.append(onnx.helper.make_attribute("perm", [0, *range(rank, 0, -1)]))
    if "axis" in attributes:
        attributes["axis"].i = moved(attributes["axis"].i)
    if "axes" in attributes:
        attributes["axes"].ints[:] = map(moved, attributes["axes"].ints)
    if "perm" in attributes:
        attributes["perm"].ints[:] = [0, *map(moved, attributes["perm"].ints)]
    for stored in graph.initializer:
        numbers, place = onnx.numpy_helper.to_array(stored), list(node.input).index(stored.name)
        if node.op_type == "Concat":
            numbers = numbers[None]
        elif node.op_type == "Reshape":
            numbers = numpy.concatenate(([1], numbers))
        elif place == AXES.get(node.op_type):
            numbers = numpy.array([moved(axis) for axis in numbers], numpy.int64)
        stored.CopyFrom(onnx.numpy_helper.from_array(numbers, stored.name))
    return changed


def says(case, model, samples, answers):
    """Whether ONNX's reference evaluator finds these answers, one for each sample."""
    name = model.graph.input[0].name
    try:
        # The evaluator computes some models that are not ONNX: a Gemm of three axes, for instance.
        onnx.checker.check_model(model, full_check=True)
        with numpy.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(model)
            found = [evaluator.run(None, {name: sample[None]})[0] for sample in samples]
    except Exception:  # They raise whatever numpy does, for shapes that do not fit.
        return False
    return all(
        one.shape == (1, *other.shape) and numpy.allclose(one, other, case.rtol, case.atol, equal_nan=True)
        for one, other in zip(found, answers)
    )


def of_one_image(case):
    """The case as chococ can be asked it: a model, and its samples and answers, which axis 0 counts."""
    model, x, y = with_constants(case)
    if x.ndim >= 2 and x.shape[0] == 1:
        return reshaped(model, x.shape, y.shape), x, y[None]
    if all(node.op_type in ELEMENTWISE for node in on_input(model.graph)):
        ways = [(model, numpy.atleast_1d(x)[None], numpy.atleast_1d(y)[None])]
    elif x.ndim < 2:
        raise LeftOut("its input has fewer than two axes, and it is not element-wise")
    else:
        ways = [(model, x, y)] if y.ndim > 0 and x.shape[0] == y.shape[0] > 0 else []
        ways.append((model, x[None], y[None]))
        if len(model.graph.node) == 1:
            ways.append((moved_on(model, x.ndim), x[None], y[None]))
    for way, samples, answers in ways:
        changed = reshaped(way, (1, *samples.shape[1:]), (1, *answers.shape[1:]))
        if says(case, changed, samples, answers):
            return changed, samples, answers
    raise LeftOut("it says something else of one sample, or with an axis in front")


def behind_a_convolution(model):
    """The model with a convolution in front that changes nothing."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    name = graph.input[0].name
    channels = graph.input[0].type.tensor_type.shape.dim[1].dim_value
    for node in graph.node:
        node.input[:] = ["same" if tensor == name else tensor for tensor in node.input]
    graph.node.insert(0, onnx.helper.make_node("Conv", [name, "identity"], ["same"], name="conv"))
    identity = numpy.eye(channels, dtype=numpy.float32).reshape(channels, channels, 1, 1)
    graph.initializer.append(onnx.numpy_helper.from_array(identity, "identity"))
    return changed


def write(folder, model, x, y):
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    numpy.save(folder / "input.npy", numpy.ascontiguousarray(x))
    numpy.save(folder / "output.npy", numpy.ascontiguousarray(y))


def main():
    if len(sys.argv) != 2:
        sys.exit("command: python3 tests/onnx_nodes.py FOLDER")
    out = pathlib.Path(sys.argv[1])
    for old in out.glob("*/model.onnx"):
        for name in ("model.onnx", "input.npy", "output.npy"):
            (old.parent / name).unlink()
        old.parent.rmdir()
    warnings.filterwarnings("ignore")
    cases = collect_testcases(None)
    written, first_of_several, behind, left_out = 0, 0, 0, collections.Counter()
    for case in cases:
        try:
            model, x, y = of_one_image(case)
        except LeftOut as reason:
            left_out[str(reason)] += 1
            continue
        write(out / case.name, model, x, y)
        written += 1
        first_of_several += len(case.model.graph.output) > 1
        operators = {node.op_type for node in model.graph.node}
        if len(operators) == 1 and operators <= BEHIND_A_CONVOLUTION and x.ndim == 4:
            write(out / f"conv_then_{case.name}", behind_a_convolution(model), x, y)
            behind += 1
    print(f"{len(cases)} cases, {written} written; of {first_of_several}, the first of several outputs")
    print(f"{behind} written once more, behind a convolution that changes nothing")
    for reason, count in left_out.most_common():
        print(f"{count} left out: {reason}")


if __name__ == "__main__":
    main()
