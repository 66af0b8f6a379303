"""Prints numpy_files.h: files as numpy writes them, for npz_test.cpp."""
import io

import numpy as np


def array(name, data):
    rows = [", ".join(f"0x{b:02x}" for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    print(f"\ninline const unsigned char {name}[] = {{\n    " + ",\n    ".join(rows) + "};")


def saved(save, *arguments, **arrays):
    file = io.BytesIO()
    save(file, *arguments, **arrays)
    return file.getvalue()


def npy(value, version):
    file = io.BytesIO()
    np.lib.format.write_array(file, value, version=version)
    return file.getvalue()


matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
print("""//===- numpy_files.h - Files that numpy wrote -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Made by make_numpy_files.py.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_DATA_NUMPY_FILES_H
#define DISTC_TEST_UNIT_DATA_NUMPY_FILES_H

namespace distc_test {
// clang-format off""")
array("kStored", saved(np.savez, **{"hidden1/kernel": matrix, "step": np.int64(7)}))
array("kDeflated", saved(np.savez_compressed, matrix=np.tile(matrix, (40, 1)), flags=np.array([True, False])))
array("kFortran", npy(np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)), (1, 0)))
array("kVersion2", npy(matrix, (2, 0)))
array("kVersion3", npy(matrix.astype(np.float16), (3, 0)))
array("kBigEndian", npy(matrix.astype(">f4"), (1, 0)))
array("kText", npy(np.array(["one", "two"]), (1, 0)))
array("kFields", npy(np.zeros(2, [("a", "<f4"), ("b", "<i4")]), (1, 0)))
print("""
// clang-format on
} // namespace distc_test
#endif // DISTC_TEST_UNIT_DATA_NUMPY_FILES_H""")
