#!/usr/bin/env python3
"""Writes tensorflow_numbers.h: random numbers as TensorFlow's CPU kernels give them.

Run with a Python that has tensorflow, when a case is added; the header is committed.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
raw = tf.raw_ops
KINDS = {
    "UNIFORM": (raw.RandomUniform, raw.StatelessRandomUniform),
    "NORMAL": (raw.RandomStandardNormal, raw.StatelessRandomNormal),
    "TRUNCATED_NORMAL": (raw.TruncatedNormal, raw.StatelessTruncatedNormal),
    "UNIFORM_INT": (raw.RandomUniformInt, raw.StatelessRandomUniformInt),
}
TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
# seed, seed2, count; the large ones are checked at some places and by their sum.
STATEFUL = [(11, 22, 1), (87654321, 7, 37), (0, 5, 100003), (-3, 1 << 40, 66)]
STATELESS = [(1, 2, 3), (-5, 1 << 33, 38), (123456789, 0, 100003)]
RANGES = {"I32": [(-7, 100), (-(1 << 31), (1 << 31) - 1)], "I64": [(-7, 100), (-(1 << 62), 1 << 61)]}


def numbers(operation, calls):
    with tf.Session() as session:
        return [session.run(operation) for _ in range(calls)]


def row(kind, name, seed, seed2, call, bounds, values):
    count = len(values)
    places = range(count) if count <= 16 else [0, 1, 2, 3, 4, count // 3, count // 2, count - 3, count - 2, count - 1]
    if count > 1000:
        places = [*places, 16383, 16384, 65535, 65537]
    bits = values.view(np.uint32 if values.dtype.itemsize == 4 else np.uint64)
    samples = ", ".join(f"{{{p}, {int(bits[p]):#x}u}}" for p in places)
    total = float(np.sum(values.astype(np.float64)))
    return (f"    {{DRT_{name}, DRT_RANDOM_{kind}, {seed}, {seed2}, {count}, {call}, {bounds[0]}, {bounds[1]}, "
            f"{total!r}, {{{samples}}}}},\n")


def rows():
    for kind, (stateful, stateless) in KINDS.items():
        for name, dtype in TYPES.items():
            integers = kind == "UNIFORM_INT"
            if integers != (name in RANGES):
                continue
            for low, high in RANGES.get(name, [(0, 0)]):
                arguments = {"minval": dtype(low), "maxval": dtype(high)} if integers else {"dtype": dtype}
                literals = [f"INT64_C({low})" if low != -(1 << 31) else "INT32_MIN", f"INT64_C({high})"]
                for seed, seed2, count in STATEFUL:
                    with tf.Graph().as_default():
                        operation = stateful(shape=[count], seed=seed, seed2=seed2, **arguments)
                        for call, values in enumerate(numbers(operation, 2)):
                            yield row(kind, name, seed, seed2, call, literals, values)
                for seed, seed2, count in STATELESS:
                    with tf.Graph().as_default():
                        seeds = np.array([seed, seed2], np.int64)
                        operation = stateless(shape=[count], seed=seeds, **arguments)
                        yield row(kind, name, seed, seed2, -1, literals, numbers(operation, 1)[0])


HEAD = """\
//===- tensorflow_numbers.h - Random numbers as TensorFlow gives them -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
// Written by make_tensorflow_numbers.py with TensorFlow {version}; do not edit.
//
//===----------------------------------------------------------------------===//
// clang-format off
#ifndef TEST_UNIT_RANDOM_TENSORFLOW_NUMBERS_H
#define TEST_UNIT_RANDOM_TENSORFLOW_NUMBERS_H

#include "drt/drt.h"

#include <cstdint>
#include <utility>
#include <vector>

struct TensorFlowNumbers {{
  int32_t dtype, distribution;
  int64_t seed, seed2, count;
  int call; // how many runs of the operation came before; -1 for a stateless one
  int64_t minval, maxval;
  double sum;
  std::vector<std::pair<int64_t, uint64_t>> samples; // (place, bits of the element)
}};

inline const std::vector<TensorFlowNumbers> &tensorflowNumbers() {{
  static const std::vector<TensorFlowNumbers> numbers = {{
"""
TAIL = """\
  };
  return numbers;
}

#endif // TEST_UNIT_RANDOM_TENSORFLOW_NUMBERS_H
"""

if __name__ == "__main__":
    target = pathlib.Path(__file__).with_name("tensorflow_numbers.h")
    target.write_text(HEAD.format(version=tf.__version__) + "".join(rows()) + TAIL)
