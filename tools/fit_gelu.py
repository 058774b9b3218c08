#!/usr/bin/env python3
"""Cubics for GELU and its slope (src/engine/backend/cpu/gelu_quarters.h).

Both are f with f(x) + f(-x) = 1: the share of x that GELU lets through, and GELU's derivative.
f(-u) is interpolated at the four Chebyshev nodes of every quarter around u = 0, 1/4, ..., 7 1/2;
from 7 5/8 on it is 0.  Needs mpmath (1.3.0); writes the header to stdout, the largest errors to
stderr.
"""
import struct
import sys

import mpmath as mp

mp.mp.dps = 40
WIDTH = mp.mpf(1) / 4
ENTRIES, TERMS, PER_LINE = 32, 4, 5


def erf_tail(u):
    return mp.erfc(u / mp.sqrt(2)) / 2


def erf_density(u):
    return mp.exp(-u * u / 2) / mp.sqrt(2 * mp.pi)


def tanh_tail(u):
    return 1 / (1 + mp.exp(2 * mp.sqrt(2 / mp.pi) * (u + mp.mpf("0.044715") * u**3)))


def tanh_density(u):
    inner = 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mp.mpf("0.044715") * u**2)
    return inner * tanh_tail(u) * (1 - tanh_tail(u))


FUNCTIONS = {
    "gelu_erf": erf_tail,
    "gelu_tanh": tanh_tail,
    "gelu_erf_slope": lambda u: erf_tail(u) - u * erf_density(u),
    "gelu_tanh_slope": lambda u: tanh_tail(u) - u * tanh_density(u),
}


def single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def literal(x):
    digits = "%.9g" % x
    return digits + ("f," if "." in digits or "e" in digits else ".0f,")


def fit(f, middle):
    nodes = [WIDTH / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * TERMS)) for i in range(TERMS)]
    powers = mp.matrix(TERMS, TERMS)
    values = mp.matrix(TERMS, 1)
    for i, node in enumerate(nodes):
        for j in range(TERMS):
            powers[i, j] = node**j
        values[i] = f(middle + node)
    return [single(c) for c in mp.lu_solve(powers, values)]


def largest_error(f, middle, cubic):
    worst = 0
    for i in range(-32, 33):
        d = WIDTH / 2 * i / 32
        if middle + d >= 0:
            value = mp.fsum(c * d**j for j, c in enumerate(cubic))
            worst = max(worst, abs(value - f(middle + d)))
    return float(worst)


def main():
    print("/* gelu_quarters.h - cubics for vec_gelu.h, written by tools/fit_gelu.py. */")
    print("#ifndef TP_ENGINE_BACKEND_CPU_GELU_QUARTERS_H")
    print("#define TP_ENGINE_BACKEND_CPU_GELU_QUARTERS_H\n")
    print("/* [power][place]: f(-u) for u within 1/8 of place / 4, by powers of the difference. */")
    print("typedef struct {\n    float of[%d][%d];\n} vf_quarters;" % (TERMS, ENTRIES))
    print("\n/* clang-format off */")
    for name, f in FUNCTIONS.items():
        cubics = [fit(f, i * WIDTH) for i in range(ENTRIES - 1)]
        worst = max(largest_error(f, i * WIDTH, c) for i, c in enumerate(cubics))
        print("%s: largest error %.2g" % (name, worst), file=sys.stderr)
        cubics.append([0.0] * TERMS)
        print("\nstatic const vf_quarters vf_%s_quarters = {{" % name)
        for power in range(TERMS):
            print("    {")
            for at in range(0, ENTRIES, PER_LINE):
                print("        " + " ".join(literal(c[power]) for c in cubics[at : at + PER_LINE]))
            print("    },")
        print("}};")
    print("\n/* clang-format on */")
    print("\n#endif")


main()
