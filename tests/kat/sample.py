"""Known answers for sampling: ChaCha20 with an all-7 key, expanded by the documented rules.

The stream is ChaCha20's key stream with a zero 64-bit nonce and a 64-bit block counter from 0.

Tool: Python 3.11, standard library only. Command: python3 tests/kat/sample.py > tests/kat/sample.json
Checked inside: the first block against the key stream of RFC 7539, A.1, test vector 1, for the all-0 key.
"""

import itertools
import json
import platform
import struct


def rotate(x, k):
    return (x << k | x >> (32 - k)) & 0xFFFFFFFF


def quarter(s, a, b, c, d):
    for x, y, z, k in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        s[z] = rotate(s[z] ^ s[x], k)


def block(key, counter):
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    s = start[:]
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(s, a, b, c, d)
    return struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(s, start)))


def stream(key):
    for counter in itertools.count():
        yield from block(key, counter)


def words(key, width):
    source = stream(key)
    while True:
        yield int.from_bytes(bytes(itertools.islice(source, width)), "little")


def uniform(key, p, count):
    bits = p.bit_length()
    kept = (w & (1 << bits) - 1 for w in words(key, 4 if bits <= 32 else 8))
    return list(itertools.islice((w for w in kept if w < p), count))


def ternary(key, count):
    digits = (byte // 3**k % 3 - 1 for byte in stream(key) if byte < 243 for k in range(5))
    return list(itertools.islice(digits, count))


def error(key, count):
    source, result = words(key, 8), []
    ones = lambda x: bin(x).count("1")
    while len(result) < count:
        u, v = next(source), next(source)
        low, high = (1 << 42) - 1, (1 << 21) - 1
        result += [ones(u & low) - 21, ones(v & low) - 21, ones(u >> 42 & high) + ones(v >> 42 & high) - 21]
    return result[:count]


if __name__ == "__main__":
    assert block(bytes(32), 0).hex().startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    key = bytes([7] * 32)
    lines = [f'"tool": "Python {platform.python_version()}"', '"command": "python3 tests/kat/sample.py > tests/kat/sample.json"']
    uniforms = [{"p": p, "values": uniform(key, p, 40)} for p in (12289, 1073692673, 4294828033, 1125899906826241)]
    lines += ['"uniform": [\n  ' + ",\n  ".join(map(json.dumps, uniforms)) + "\n]"]
    lines += [f'"ternary": {ternary(key, 64)}', f'"error": {error(key, 64)}']
    print("{" + ",\n".join(lines) + "}")
