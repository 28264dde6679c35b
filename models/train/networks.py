"""The networks, as PyTorch modules, and how long each is trained.

Names of attributes become names of ONNX nodes (`conv1` gives `/conv1/Conv`), so they are part of what is published.
Every network takes 1 x 28 x 28, or the same widened to 3 x 32 x 32, and gives ten logits.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad


class LogisticRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)
        self.flat = nn.Flatten()

    def forward(self, x):
        return self.fc(self.flat(x))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 32)
        self.fc3 = nn.Linear(32, 10)
        self.relu = nn.ReLU()
        self.flat = nn.Flatten()

    def forward(self, x):
        x = self.relu(self.fc1(self.flat(x)))
        return self.fc3(self.relu(self.fc2(x)))


class CryptoNet(nn.Module):
    """The shape of CryptoNets, with ReLU where that squares: one strided convolution, two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, 5, stride=2, padding=1)
        self.fc1 = nn.Linear(5 * 13 * 13, 100)
        self.fc2 = nn.Linear(100, 10)
        self.relu = nn.ReLU()
        self.flat = nn.Flatten()

    def forward(self, x):
        x = self.flat(self.relu(self.conv1(x)))
        return self.fc2(self.relu(self.fc1(x)))


class LeNetSmall(nn.Module):
    """LeNet-5, with ReLU and max pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 4 * 4, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU()
        self.flat = nn.Flatten()

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flat(self.pool(self.relu(self.conv2(x))))
        x = self.relu(self.fc1(x))
        return self.fc3(self.relu(self.fc2(x)))


class LeNetLarge(nn.Module):
    """CHOCO's LeNet-5-Large: the same idea, with 32 and 64 channels and 512 neurons."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.fc2 = nn.Linear(512, 10)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU()
        self.flat = nn.Flatten()
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flat(x)))
        return self.fc2(self.drop(x))


def conv_norm_relu(inputs, outputs, kernel, stride=1, padding=0, groups=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class MobileNetMini(nn.Module):
    """A 3 x 3 convolution, then five blocks of MobileNet v1: 3 x 3 depthwise, 1 x 1 across channels."""

    def __init__(self):
        super().__init__()
        channels = 16
        layers = [conv_norm_relu(1, channels, 3, padding=1)]
        for outputs, stride in ((32, 2), (32, 1), (64, 2), (64, 1), (128, 1)):
            layers.append(conv_norm_relu(channels, channels, 3, stride, padding=1, groups=channels))
            layers.append(conv_norm_relu(channels, outputs, 1))
            channels = outputs
        self.body = nn.Sequential(*layers)
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        return self.fc(self.flat(self.gap(self.body(x))))


class Fire(nn.Module):
    """Squeezes the channels by 1 x 1, then expands them by 1 x 1 and 3 x 3, half each."""

    def __init__(self, inputs, squeezed, outputs):
        super().__init__()
        self.sq = conv_norm_relu(inputs, squeezed, 1)
        self.e1 = conv_norm_relu(squeezed, outputs // 2, 1)
        self.e3 = conv_norm_relu(squeezed, outputs // 2, 3, padding=1)

    def forward(self, x):
        x = self.sq(x)
        return torch.cat([self.e1(x), self.e3(x)], 1)


class SqueezeNet(nn.Module):
    """CHOCO's SqueezeNet for 3 x 32 x 32: a convolution, four fires, and ten channels to average."""

    def __init__(self):
        super().__init__()
        self.c1 = conv_norm_relu(3, 64, 3, padding=1)
        self.f1 = Fire(64, 32, 128)
        self.f2 = Fire(128, 32, 128)
        self.f3 = Fire(128, 32, 256)
        self.f4 = Fire(256, 32, 256)
        self.c10 = nn.Conv2d(256, 10, 1)
        self.pool = nn.MaxPool2d(2)
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.flat = nn.Flatten()

    def forward(self, x):
        x = self.pool(self.c1(x))
        x = self.f4(self.f3(self.pool(self.f2(self.f1(x)))))
        return self.flat(self.gap(self.c10(x)))


class Basic(nn.Module):
    """Two 3 x 3 convolutions, and what they read added to what they give; through 1 x 1 where shapes differ."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a = conv_norm_relu(inputs, outputs, 3, stride, padding=1)
        self.b = conv_norm_relu(outputs, outputs, 3, padding=1)[:2]
        self.relu = nn.ReLU()
        same = inputs == outputs and stride == 1
        self.sc = nn.Identity() if same else conv_norm_relu(inputs, outputs, 1, stride)[:2]

    def forward(self, x):
        return self.relu(self.b(self.a(x)) + self.sc(x))


class ResNet20(nn.Module):
    """ResNet-20 for 1 x 28 x 28, with 8 channels where the original has 16."""

    def __init__(self):
        super().__init__()
        channels = 8
        self.c1 = conv_norm_relu(1, channels, 3, padding=1)
        blocks = []
        for outputs, stride in ((8, 1), (16, 2), (32, 2)):
            for first in (True, False, False):
                blocks.append(Basic(channels, outputs, stride if first else 1))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        return self.fc(self.flat(self.gap(self.blocks(self.c1(x)))))


class Recipe(NamedTuple):
    """How a network is trained: on which images, how often it sees them all, and the highest learning rate."""

    network: type
    images: str
    epochs: int
    rate: float
    input_shape: tuple = (1, 28, 28)


RECIPES = {
    "logreg": Recipe(LogisticRegression, "mnist", 20, 0.05),
    "mlp": Recipe(Mlp, "mnist", 30, 0.05),
    "cryptonet_small": Recipe(CryptoNet, "mnist", 25, 0.05),
    "lenet5_small": Recipe(LeNetSmall, "mnist", 25, 0.08),
    "lenet5_large": Recipe(LeNetLarge, "mnist", 10, 0.06),
    "mobilenet_fashion": Recipe(MobileNetMini, "fashion", 4, 0.12),
    "resnet20_fashion": Recipe(ResNet20, "fashion", 3, 0.15),
    "squeezenet_fashion": Recipe(SqueezeNet, "fashion", 2, 0.10, (3, 32, 32)),
}


def to_input(images, shape):
    """Turns n x 28 x 28 bytes into a network's input: floats of 0 to 1, in a frame of zeros, for each channel again."""
    channels, height, width = shape
    inputs = torch.tensor(images).float().div(255).unsqueeze(1)
    down, right = (height - inputs.shape[2]) // 2, (width - inputs.shape[3]) // 2
    return pad(inputs, (right, right, down, down)).repeat(1, channels, 1, 1)


@torch.no_grad()
def logits(network, inputs, batch=250):
    """Evaluates `network` as it will be used, without dropout and with the averages of its batch norms."""
    network.eval()
    return torch.cat([network(part) for part in inputs.split(batch)])


def accuracy(outputs, labels):
    """Gives the share of rows whose largest logit is at the label."""
    return (outputs.argmax(1).numpy() == labels).mean()
