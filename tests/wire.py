"""Reads the messages in tests/vectors/ by docs/wire.md alone, and compares what it finds with what the runtime finds.

A second implementation of the wire format: headers, packed numbers, seeds, which coefficients travel. With the secret
keys of the vectors it also decrypts: requests to the message that was packed, replies to the results, Galois keys to
small errors. So the vectors hold what the document says, and the document says enough.

Python 3.9 or later, standard library only. Command: python3 tests/wire.py; exits 1 on a mismatch.
"""

import copy
import hashlib
import json
import pathlib
import struct
import sys

VECTORS = pathlib.Path(__file__).parent / "vectors"
DOCUMENT = pathlib.Path(__file__).parent.parent / "docs" / "wire.md"
VERSION, GALOIS_KEYS, REQUEST, REPLY = 2, 1, 2, 3
LARGEST_ERROR = 21
checks = 0


def check(what, found, expected):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"{what}\n  found    {found}\n  expected {expected}")


def listed(numbers):
    """Numbers as the vectors have them."""
    first = "".join(f"{number} " for number in numbers[:4])
    digest = hashlib.sha256(struct.pack(f"<{len(numbers)}Q", *numbers)).hexdigest()[:16]
    return f"{len(numbers)} numbers: {first}... SHA-256 {digest}..."


# Bytes to numbers.


def bits_of(modulus):
    return (modulus - 1).bit_length()


class Message:
    """The payload of a message, read from the front."""

    def __init__(self, data, kind, stage, count, plan):
        self.data = data
        header = struct.pack("<4sBBHI4s", b"CHOC", VERSION, kind, stage, count, plan)
        check("header", self.take(16), header)

    def take(self, size):
        if size > len(self.data):
            sys.exit("a message is too short")
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def numbers(self, count, width, bound):
        whole = int.from_bytes(self.take((count * width + 7) // 8), "little")
        if whole >> count * width:
            sys.exit("padding that is not zero")
        numbers = [whole >> i * width & (1 << width) - 1 for i in range(count)]
        if max(numbers, default=0) >= bound:
            sys.exit(f"a number that is not below {bound}")
        return numbers

    def end(self):
        check("bytes left over", len(self.data), 0)


# Seeds to residues.


def quarter(s, a, b, c, d):
    for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        z_xor = s[z] ^ s[x]
        s[z] = (z_xor << left | z_xor >> (32 - left)) & 0xFFFFFFFF


def chacha20_block(seed, counter, stream):
    start = struct.unpack("<16I", b"expand 32-byte k" + seed + struct.pack("<QQ", counter, stream))
    s = list(start)
    for _ in range(10):
        for i in range(4):
            quarter(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(s, start)))


class Stream:
    """The key stream of a seed and a stream number."""

    def __init__(self, seed, stream):
        self.seed, self.stream, self.counter, self.rest = seed, stream, 0, b""

    def take(self, size):
        while len(self.rest) < size:
            self.rest += chacha20_block(self.seed, self.counter, self.stream)
            self.counter += 1
        taken, self.rest = self.rest[:size], self.rest[size:]
        return int.from_bytes(taken, "little")

    def uniform(self, prime, count):
        bits, numbers = prime.bit_length(), []
        while len(numbers) < count:
            candidate = self.take(4 if bits <= 32 else 8) & (1 << bits) - 1
            if candidate < prime:
                numbers.append(candidate)
        return numbers


# Values of polynomials.


class Transform:
    """Values at index i are those at psi^(2 bitrev(i) + 1), psi the smallest primitive 2N-th root of unity."""

    def __init__(self, n, prime):
        self.n, self.prime = n, prime
        candidates = (pow(x, (prime - 1) // (2 * n), prime) for x in range(2, prime))
        root = next(x for x in candidates if pow(x, n, prime) == prime - 1)
        psi = min(pow(root, odd, prime) for odd in range(1, 2 * n, 2))
        reverse = lambda i: int(format(i, f"0{n.bit_length() - 1}b")[::-1], 2)
        self.powers = [pow(psi, reverse(i), prime) for i in range(n)]

    def values(self, coefficients):
        v, p, half, blocks = list(coefficients), self.prime, self.n // 2, 1
        while half:
            for block in range(blocks):
                power, first = self.powers[blocks + block], 2 * half * block
                for i in range(first, first + half):
                    a, b = v[i], v[i + half] * power
                    v[i], v[i + half] = (a + b) % p, (a - b) % p
            half, blocks = half // 2, 2 * blocks
        return v

    def coefficients(self, values):
        v, p, half, blocks = list(values), self.prime, 1, self.n // 2
        while blocks:
            for block in range(blocks):
                power, first = pow(self.powers[blocks + block], -1, p), 2 * half * block
                for i in range(first, first + half):
                    a, b = v[i], v[i + half]
                    v[i], v[i + half] = (a + b) % p, (a - b) * power % p
            half, blocks = 2 * half, blocks // 2
        over_n = pow(self.n, -1, p)
        return [x * over_n % p for x in v]


def automorphism(poly, g):
    """X -> X^g."""
    n, image = len(poly), [0] * len(poly)
    for i, c in enumerate(poly):
        exponent = i * g % (2 * n)
        image[exponent % n] = c if exponent < n else -c
    return image


# Which coefficients travel.


def ceil(a, b):
    return -(-a // b)


class Windows:
    """What the windows of an operator read. Pairs are (vertical, horizontal)."""

    def __init__(self, operator):
        if "Dense" in operator:
            dense = operator["Dense"]
            self.size, self.output, self.offsets, phases = (1, 1), (1, 1), ([0], [0]), 1
            self.channels_in, self.channels_out = dense["inputs"], dense["outputs"]
            return
        conv = operator["Conv"]
        reach = [[k * conv["dilations"][a] - conv["pads_before"][a] for k in range(conv["kernel"][a])] for a in (0, 1)]
        stride = conv["strides"]
        self.offsets = [sorted({r // stride[a] for r in reach[a]}) for a in (0, 1)]
        phases = [len({r % stride[a] for r in reach[a]}) for a in (0, 1)]
        self.size = [ceil(conv["input"][a + 1], stride[a]) for a in (0, 1)]
        self.output = conv["output"][1:]
        self.channels_in, self.channels_out = conv["input"][0] * phases[0] * phases[1], conv["output"][0]


class Slots:
    """All coefficients of every ciphertext travel."""

    def __init__(self, operator, packing, n):
        w = Windows(operator)
        lengths = []
        for size, output, offsets in zip(w.size, w.output, w.offsets):
            redundant = packing["alignment"] == "Rotational"
            before, after = (max(0, -offsets[0]), max(0, offsets[-1])) if redundant else (0, 0)
            lengths.append(max(size + before, output + after))
        block = 1 << (lengths[0] * lengths[1] - 1).bit_length()
        columns = 2 * (n // 2 // block)
        self.n, self.inputs, self.outputs = n, ceil(w.channels_in, columns), ceil(w.channels_out, columns)

    def sent(self, _):
        return list(range(self.n))

    returned = sent


class Coefficients:
    """Of c0, what some result is summed from travels up, and results travel down."""

    def __init__(self, operator, packing, n):
        w, self.n, self.packing = Windows(operator), n, packing
        self.tile, self.interleave, self.output = packing["tile"], packing["interleave"], w.output
        self.channels_in, self.channels_out = w.channels_in, w.channels_out
        first, spread = [o[0] for o in w.offsets], [o[-1] - o[0] for o in w.offsets]
        self.window = [t + s for t, s in zip(self.tile, spread)]
        self.grid = [ceil(o, t) for o, t in zip(w.output, self.tile)]
        beyond = max(0, self.window[1] + first[1] - w.size[1])
        shared = min(max(0, -first[1]), beyond) if self.grid[1] == 1 else 0
        self.pitch = self.window[1] - min(shared, self.window[1] - 1)
        pixels = []
        for top in range(0, w.output[0], self.tile[0]):
            for left in range(0, w.output[1], self.tile[1]):
                rows = [r for r in range(self.window[0]) if 0 <= top + r + first[0] < w.size[0]]
                columns = [c for c in range(self.window[1]) if 0 <= left + c + first[1] < w.size[1]]
                pixels += [r * self.pitch + c for r in rows for c in columns]
        reach = spread[0] * self.pitch + spread[1]
        results = (self.tile[0] - 1) * self.pitch + self.tile[1]
        lowest, highest = min(pixels, default=results + reach), max(pixels, default=0)
        self.block = max(highest + 1, results + reach - lowest, results, reach + 1)
        self.channel_groups = ceil(self.channels_in, self.interleave)
        self.output_groups = ceil(self.channels_out, packing["stack"] * packing["merge"])
        tile_groups = ceil(self.grid[0] * self.grid[1], packing["tiles_at_once"])
        self.inputs, self.outputs = tile_groups * self.channel_groups, tile_groups * self.output_groups

    def tiles(self, group):
        at_once = self.packing["tiles_at_once"]
        return [(group * at_once + i, i * self.block) for i in range(at_once)
                if group * at_once + i < self.grid[0] * self.grid[1]]

    def sent(self, ciphertext):
        tile_group, channel_group = divmod(ciphertext, self.channel_groups)
        channels = min(self.interleave, self.channels_in - channel_group * self.interleave)
        cells, stack = self.n // self.interleave, self.packing["stack"]
        distance = self.packing["tiles_at_once"] * self.block
        met = {(begin + r * self.pitch + c + k * distance) % cells
               for _, begin in self.tiles(tile_group) for r in range(self.window[0]) for c in range(self.window[1])
               for k in range(1 - stack, stack)
               if r + 1 == self.window[0] or c < self.pitch}
        return [cell * self.interleave + channel for cell in sorted(met) for channel in range(channels)]

    def returned(self, ciphertext):
        tile_group, output_group = divmod(ciphertext, self.output_groups)
        stack, merge, positions = self.packing["stack"], self.packing["merge"], []
        distance = self.packing["tiles_at_once"] * self.block
        for base in range(merge):
            for place in range(stack):
                if (output_group * merge + base) * stack + place >= self.channels_out:
                    continue
                for tile, begin in self.tiles(tile_group):
                    top, left = tile // self.grid[1] * self.tile[0], tile % self.grid[1] * self.tile[1]
                    for r in range(min(self.tile[0], self.output[0] - top)):
                        for c in range(min(self.tile[1], self.output[1] - left)):
                            cell = place * distance + begin + r * self.pitch + c
                            positions.append(cell * self.interleave + base * (self.interleave // merge))
        return positions


def layout_of(operator, packing, n):
    (family, choice), = packing.items()
    return {"Slots": Slots, "Coefficients": Coefficients}[family](operator, choice, n)


# Messages.


class KeySet:
    """Parameters, their transforms, and the secret key."""

    def __init__(self, parameters, secret):
        self.__dict__.update(parameters)
        self.secret = [byte // 3**i % 3 - 1 for byte in bytes.fromhex(secret) for i in range(5)][: self.ring_degree]
        self.q = self.ciphertext_primes
        self.all_primes = self.q + ([self.key_switching_prime] if self.key_switching_prime else [])
        self.transforms = {prime: Transform(self.ring_degree, prime) for prime in self.all_primes}

    def with_stage(self, parameters):
        """The same keys, for a stage with parameters of its own."""
        stage = copy.copy(self)
        stage.__dict__.update(parameters)
        return stage

    def secret_values(self, prime, g=1):
        """The values of s(X^g)."""
        return self.transforms[prime].values(s % prime for s in automorphism(self.secret, g))


def restored(residues, primes):
    """The number below the product of the primes that has these residues."""
    whole = 1
    for prime in primes:
        whole *= prime
    return sum(r * pow(whole // p, -1, p) % p * (whole // p) for r, p in zip(residues, primes)) % whole


def read_galois_keys(data, plan, key_sets, fingerprint):
    message = Message(data, GALOIS_KEYS, 0, sum(len(key_set["galois"]) for key_set in plan["key_sets"]), fingerprint)
    sets = []
    for key_set, elements in zip(key_sets, (key_set["galois"] for key_set in plan["key_sets"])):
        sets.append([])
        seed = message.take(32) if elements else b""
        for stream, element in enumerate(elements):
            uniform, digits = Stream(seed, stream), []
            for residue, prime in enumerate(key_set.q):
                for digit in range(ceil(bits_of(prime), key_set.digit_bits)):
                    n, primes = key_set.ring_degree, key_set.all_primes
                    b = [message.numbers(n, bits_of(p), p) for p in primes]
                    a = [uniform.uniform(p, n) for p in primes]
                    check_key(key_set, element, (residue, digit), b, a)
                    digits.append({"b": listed(sum(b, [])), "a": listed(sum(a, []))})
            sets[-1].append({"element": element, "digits": digits})
    message.end()
    return sets


def check_key(key_set, element, digit, b, a):
    """b + a s(X^(1/g)) is a small error, and P 2^(w j) s more in the residue of the digit."""
    inverse = pow(element, -1, 2 * key_set.ring_degree)
    errors = set()
    for i, prime in enumerate(key_set.all_primes):
        weight = key_set.key_switching_prime << key_set.digit_bits * digit[1] if i == digit[0] else 0
        source, secret = key_set.secret_values(prime, inverse), key_set.secret_values(prime)
        values = [(y + x * s - weight * t) % prime for y, x, s, t in zip(b[i], a[i], source, secret)]
        error = key_set.transforms[prime].coefficients(values)
        errors.add(tuple(e if e <= prime // 2 else e - prime for e in error))
    check(f"key {element}, digit {digit}: one error under all primes", len(errors), 1)
    check(f"key {element}, digit {digit}: errors are small", max(map(abs, errors.pop())) <= LARGEST_ERROR, True)


def read_request(data, stage, key_set, layout, fingerprint):
    message = Message(data, REQUEST, stage, layout.inputs, fingerprint)
    seed, dropped, found = message.take(32), key_set.request_dropped_bits, []
    for ciphertext in range(layout.inputs):
        sent, uniform = layout.sent(ciphertext), Stream(seed, ciphertext)
        c0 = []
        for prime in key_set.q:
            kept = message.numbers(len(sent), bits_of(prime) - dropped, (prime - 1 >> dropped) + 1)
            c0.append([((x << dropped) + (1 << dropped) // 2) % prime for x in kept])
        c1 = [uniform.uniform(prime, key_set.ring_degree) for prime in key_set.q]
        found.append({
            "positions": listed(sent), "c0": listed(sum(c0, [])), "c1": listed(sum(c1, [])),
            "message": listed(decrypted_request(key_set, sent, c0, c1)),
        })
    message.end()
    return found


def decrypted_request(key_set, sent, c0, c1):
    """round(t (c0 + c1 s) / q) modulo t."""
    t, q, phases = key_set.plaintext_modulus, 1, []
    for prime, x0, x1 in zip(key_set.q, c0, c1):
        product = [x * s for x, s in zip(x1, key_set.secret_values(prime))]
        product = key_set.transforms[prime].coefficients(product)
        phases.append([(x + product[position]) % prime for x, position in zip(x0, sent)])
        q *= prime
    return [(2 * t * restored(x, key_set.q) + q) // (2 * q) % t for x in zip(*phases)]


def read_reply(data, stage, key_set, layout, fingerprint):
    message = Message(data, REPLY, stage, layout.outputs, fingerprint)
    p, dropped, found = key_set.reply_modulus, key_set.reply_dropped_bits, []
    for ciphertext in range(layout.outputs):
        returned = layout.returned(ciphertext)
        c0 = message.numbers(len(returned), bits_of(p) - dropped, (p - 1 >> dropped) + 1)
        c1 = message.numbers(key_set.ring_degree, bits_of(p), p)
        found.append({
            "positions": listed(returned), "c0": listed(c0), "c1": listed(c1),
            "results": listed(decrypted_reply(key_set, returned, c0, c1)),
        })
    message.end()
    return found


def decrypted_reply(key_set, returned, c0, c1):
    """round(t x / p) modulo t, for x = c0 + c1 s, where of c0 the middle of what it may be counts."""
    t, p, dropped = key_set.plaintext_modulus, key_set.reply_modulus, key_set.reply_dropped_bits
    transform = Transform(key_set.ring_degree, p)
    secret = transform.values(s % p for s in key_set.secret)
    product = transform.coefficients([x * s for x, s in zip(c1, secret)])
    phases = [((x << dropped) + (1 << dropped >> 1) + product[k]) % p for x, k in zip(c0, returned)]
    return [(2 * t * x + p) // (2 * p) % t for x in phases]


def check_positions(path):
    """Which coefficients travel, for many a packing."""
    lines = path.read_text().splitlines()
    for line in lines:
        expected = json.loads(line)
        layout = layout_of(expected["operator"], expected["packing"], expected["ring_degree"])
        found = {
            "inputs": layout.inputs,
            "outputs": layout.outputs,
            "sent": listed([position for i in range(layout.inputs) for position in layout.sent(i)]),
            "returned": listed([position for i in range(layout.outputs) for position in layout.returned(i)]),
        }
        check(f"{path}: {line}", found, {name: expected[name] for name in found})
    print(f"{len(lines)} packings: ciphertexts, positions")


class Given:
    """The positions of the document's example."""

    def __init__(self, example):
        self.inputs, self.outputs = 1, 1
        self.sent, self.returned = lambda _: example["sent"], lambda _: example["returned"]


def check_example(document):
    """The example of the document, whose numbers are few enough to follow by hand."""
    example = json.loads(document.read_text().split("```json\n")[1].split("```")[0])
    key_set, fingerprint = KeySet(example["parameters"], example["secret"]), bytes.fromhex(example["plan"])
    for kind, read in (("request", read_request), ("reply", read_reply)):
        found = read(bytes.fromhex(example[kind]), example["stage"], key_set, Given(example), fingerprint)
        check(f"{document}: {kind}", found, [{name: listed(list_) for name, list_ in example[f"{kind}_holds"].items()}])
    print(f"{document.name}: the example")


def main():
    check_example(DOCUMENT)
    check_positions(VECTORS / "positions.jsonl")
    folders = sorted(path for path in VECTORS.iterdir() if path.is_dir())
    check("folders of vectors", [folder.name for folder in folders], ["coefficients", "slots"])
    for folder in folders:
        expected = json.loads((folder / "found.json").read_text())
        plan = json.loads((folder / "plan.json").read_text())
        fingerprint = hashlib.sha256((folder / "plan.ron").read_bytes()).digest()[:4]
        sets = [KeySet(s["parameters"], secret) for s, secret in zip(plan["key_sets"], expected["secrets"])]
        found = read_galois_keys((folder / "galois_keys.bin").read_bytes(), plan, sets, fingerprint)
        check(f"{folder}: Galois keys", found, expected["galois_keys"])
        print(f"{folder.name}: {sum(map(len, found))} Galois keys in {len(sets)} key sets: b, a, errors")
        servers = [stage["Server"] for stage in plan["stages"] if "Server" in stage]
        for index, (stage, numbers) in enumerate(zip(servers, expected["stages"])):
            key_set = sets[stage["key_set"]].with_stage(stage["parameters"])
            layout = layout_of(stage["layer"]["operator"], stage["packing"], key_set.ring_degree)
            for kind, read, decrypted in (("request", read_request, "message"), ("reply", read_reply, "results")):
                path = folder / f"{kind}_{index}.bin"
                size = stage["cost"]["bytes_up" if kind == "request" else "bytes_down"]
                data = path.read_bytes()
                check(f"{path}: bytes, as the plan counts them", len(data), size)
                check(f"{path}", read(data, index, key_set, layout, fingerprint), numbers[kind])
                count = f"{len(numbers[kind])} ciphertexts, {size} bytes"
                print(f"{folder.name}: {kind} {index}, {count}: positions, c0, c1, {decrypted}")
    print(f"{checks} comparisons, no mismatch")


if __name__ == "__main__":
    main()
