"""Makes ONNX files of trained networks and compares each with onnxruntime on all test images.

usage: export.py WEIGHTS MODELS       reads WEIGHTS/NAME.pt, writes MODELS/NAME.onnx and
                                      MODELS/data/reference_logits.npz
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from images import SETS
from networks import RECIPES, accuracy, logits, to_input

REFERENCES = 16  # test images whose logits are published
TOLERANCE = 1e-4  # of a logit; PyTorch and onnxruntime add up in different orders


class Export(NamedTuple):
    """One ONNX file: of which network, and in which of the forms that exporters leave."""

    network: str
    opset: int = 13
    dynamic_batch: bool = False
    by_torch_export: bool = False  # PyTorch's newer exporter; the older one traces
    fold_batch_norm: bool = True


EXPORTS = {
    "logreg": Export("logreg"),
    "mlp": Export("mlp", dynamic_batch=True),
    "cryptonet_small": Export("cryptonet_small"),
    "lenet5_small": Export("lenet5_small"),
    "lenet5_small_dyn": Export("lenet5_small", opset=18, dynamic_batch=True, by_torch_export=True),
    "lenet5_large": Export("lenet5_large"),
    "mobilenet_fashion": Export("mobilenet_fashion"),
    "mobilenet_fashion_bn": Export("mobilenet_fashion", opset=17, dynamic_batch=True, fold_batch_norm=False),
    "resnet20_fashion": Export("resnet20_fashion", opset=17, dynamic_batch=True),
    "squeezenet_fashion": Export("squeezenet_fashion"),
}


def main(weights, models):
    torch.set_num_threads(1)
    (models / "data").mkdir(parents=True, exist_ok=True)
    images = {name: read() for name, read in SETS.items()}
    references = {}
    for name, form in EXPORTS.items():
        recipe = RECIPES[form.network]
        network = recipe.network()
        network.load_state_dict(torch.load(weights / f"{form.network}.pt"))
        network.eval()
        if form.fold_batch_norm:
            fold_batch_norm(network)
        path = models / f"{name}.onnx"
        write(network, form, recipe.input_shape, path)
        inputs = to_input(images[recipe.images].test, recipe.input_shape)
        labels = images[recipe.images].test_labels
        expected, found = logits(network, inputs), run(path, form, inputs)
        difference = (expected - found).abs().max().item()
        if difference > TOLERANCE:
            sys.exit(f"{path}: onnxruntime's logits differ from PyTorch's by {difference}")
        references[name] = found[:REFERENCES].numpy()
        print(f"{name}: {accuracy(found, labels):.2%} of {len(labels)} test images, {macs(network, recipe.input_shape)} multiplications")
    np.savez_compressed(models / "data/reference_logits.npz", **references)


def fold_batch_norm(network):
    """Replaces, in place, each convolution that batch norm follows by one convolution with bias."""
    for sequence in list(network.modules()):
        if not isinstance(sequence, nn.Sequential):
            continue
        for i in range(len(sequence) - 1):
            conv, norm = sequence[i], sequence[i + 1]
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                sequence[i], sequence[i + 1] = folded(conv, norm), nn.Identity()


@torch.no_grad()
def folded(conv, norm):
    """Gives the convolution that computes `norm` of `conv`, which has no bias."""
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    channels = conv.in_channels, conv.out_channels
    one = nn.Conv2d(*channels, conv.kernel_size, conv.stride, conv.padding, groups=conv.groups)
    one.weight.copy_(conv.weight * factor.view(-1, 1, 1, 1))
    one.bias.copy_(norm.bias - norm.running_mean * factor)
    return one


def write(network, form, input_shape, path):
    """Exports `network`, without anything that tells of the machine that did it."""
    file = str(path)
    options = dict(opset_version=form.opset, input_names=["image"], output_names=["logits"])
    if form.by_torch_export:
        # An example batch of one would be taken for a constant.
        example = (torch.zeros(2, *input_shape),)
        shapes = {"x": {0: torch.export.Dim("batch")}}
        torch.onnx.export(network, example, file, dynamo=True, external_data=False, dynamic_shapes=shapes, **options)
    else:
        if not form.fold_batch_norm:  # or the exporter would fold it
            options.update(training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
        axes = {"image": {0: "batch"}, "logits": {0: "batch"}} if form.dynamic_batch else None
        torch.onnx.export(network, (torch.zeros(1, *input_shape),), file, dynamo=False, dynamic_axes=axes, **options)
    model = onnx.load(file)
    graph = model.graph
    # The exporters note stack traces, with the paths of files.
    described = [graph.node, graph.value_info, graph.input, graph.output, graph.initializer, model.functions]
    for part in [model, graph, *(part for parts in described for part in parts)]:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, file)


def run(path, form, inputs):
    """Evaluates the file by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    parts = inputs.split(100 if form.dynamic_batch else 1)
    return torch.cat([torch.tensor(session.run(None, {"image": part.numpy()})[0]) for part in parts])


@torch.no_grad()
def macs(network, input_shape):
    """Counts the multiplications of one inference: weights times the places at which each is used."""
    counts = []

    def count(layer, _, output):
        places = output[0, 0].numel() if isinstance(layer, nn.Conv2d) else 1
        counts.append(layer.weight.numel() * places)

    layers = [layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    network(torch.zeros(1, *input_shape))
    for hook in hooks:
        hook.remove()
    return sum(counts)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
