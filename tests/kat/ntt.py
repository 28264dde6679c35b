"""Known answers for the negacyclic transform, straight from its definition.

Writes, for some (N, p): psi, the smallest primitive 2N-th root of unity modulo p, and the values at
psi^(2 bitrev(i) + 1) of the polynomial with coefficients (i^2 + 7 i + 3)^3 mod p; all of them for small N, every
(N/8)-th and the last one for large N.

Tool: Python 3.11, standard library only. Command: python3 tests/kat/ntt.py > tests/kat/ntt.json
"""

import json
import platform

CASES = [
    (8, 12289), (8, 1073741441), (16, 1125899906841697), (16, 2305843009213693921),
    (64, 12289), (64, 1073740033), (64, 1125899906840833), (64, 288230376151710593),
    (1024, 12289), (4096, 1073692673), (8192, 1125899906826241),
]


def is_prime(n):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if n % base == 0:
            return n == base
        x = pow(base, d, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(s - 1)):
            return False
    return True


def next_prime_below(start, n):
    """The largest prime up to start that is 1 modulo 2n."""
    p = start - (start - 1) % (2 * n)
    while not is_prime(p):
        p -= 2 * n
    return p


def smallest_root(n, p):
    """The smallest x with x^n = -1: all of them are the odd powers of one."""
    base = next(x for x in range(2, p) if pow(x, (p - 1) // 2, p) == p - 1)
    root = pow(base, (p - 1) // (2 * n), p)
    assert pow(root, n, p) == p - 1
    return min(pow(root, k, p) for k in range(1, 2 * n, 2))


def bitrev(i, n):
    return int(format(i, f"0{n.bit_length() - 1}b")[::-1], 2)


def value(coefficients, x, p):
    result = 0
    for c in reversed(coefficients):
        result = (result * x + c) % p
    return result


def case(n, start):
    p = next_prime_below(start, n)
    psi = smallest_root(n, p)
    coefficients = [(i * i + 7 * i + 3) ** 3 % p for i in range(n)]
    indices = range(n) if n <= 64 else [*range(0, n, n // 8), n - 1]
    values = [value(coefficients, pow(psi, 2 * bitrev(i, n) + 1, p), p) for i in indices]
    return {"n": n, "p": p, "psi": psi, "indices": list(indices), "values": values}


if __name__ == "__main__":
    cases = ",\n".join("  " + json.dumps(case(n, p)) for n, p in CASES)
    print('{"tool": "Python %s", "command": "python3 tests/kat/ntt.py > tests/kat/ntt.json", "cases": [' % platform.python_version())
    print(cases)
    print("]}")
