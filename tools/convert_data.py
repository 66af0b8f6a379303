#!/usr/bin/env python3
"""Converts tables (CSV, Parquet, Arrow) and arrays (.npy, .npz) to what executables read: .npy, .npz or TFRecord.

    convert_data.py INPUT... -o OUTPUT [--feed NAME=COLUMN[,COLUMN...][:TYPE]]... [--shards N]

OUTPUT is a folder (one NAME.npy a feed), FILE.npz, or FILE.tfrecord, with .gz behind it compressed. --shards N makes N files,
FILE-00000-of-N.tfrecord and so on (folders likewise); a run takes them by the pattern 'FILE-*.tfrecord'.

--feed says what an array is made of: one column gives one number an example (or as many as its lists have), several give a
row of them. Without --feed every column is an array of its own name and type. TYPE is a NumPy type, such as float32.
Of CSV, which has no types, a column is int64 where the first rows are whole numbers, else float32.

Several inputs are read one after the other, a few thousand rows at a time, so they may be larger than memory.
Parquet and Arrow need pyarrow (pip install pyarrow).
"""
import argparse
import csv
import gzip
import pathlib
import shutil
import struct
import sys
import zipfile
import zlib

import numpy as np

BLOCK = 8192  # rows


class Refused(Exception):
    """What is wrong with the input or the command line."""


# ---- Tables: an iterator of dictionaries from columns to arrays, a block of rows each --------------------------


def typed(text, path, first_row, column, dtype):
    """A column of text as numbers; dtype None: what the text looks like."""
    for wanted in [dtype] if dtype else [np.dtype(np.int64), np.dtype(np.float32)]:
        try:
            return np.array(text).astype(wanted) if wanted.kind == "f" else np.array([int(value) for value in text]).astype(wanted)
        except (ValueError, OverflowError):
            continue
    for i, value in enumerate(text):
        try:
            np.array(value).astype(dtype) if dtype and dtype.kind == "f" else int(value) if dtype else float(value)
        except (ValueError, OverflowError):
            raise Refused(f"{path}: row {first_row + i}: column '{column}' is '{value}', which is no {dtype or 'number'}; encode text as "
                          f"numbers{', or say --feed NAME=' + column + ':float32' if dtype else ''}") from None
    raise Refused(f"{path}: column '{column}' has numbers that no {dtype or 'float32'} holds")


def csv_blocks(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as file:
        reader = csv.reader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
        names = [name.strip() for name in next(reader, [])]
        if not names:
            raise Refused(f"{path} is empty: its first line names the columns")
        types, row, lines = {}, 1, []

        def block():
            columns = {}
            for name, values in zip(names, zip(*lines)):
                columns[name] = typed(values, path, row, name, types.get(name))
                types[name] = columns[name].dtype
            return columns

        for line in reader:
            if not line:
                continue
            if len(line) != len(names):
                raise Refused(f"{path}: row {row + len(lines)} has {len(line)} values, but there are {len(names)} columns")
            lines.append(line)
            if len(lines) == BLOCK:
                yield block()
                row, lines = row + len(lines), []
        if lines:
            yield block()


def arrow_column(path, name, array, row):
    import pyarrow as pa
    if array.null_count:
        first = next(i for i, valid in enumerate(array.is_valid().to_pylist()) if not valid)
        raise Refused(f"{path}: row {row + first}: column '{name}' has no value; fill it, or leave the row out")
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        lengths = {len(value) for value in array}
        if len(lengths) != 1:
            raise Refused(f"{path}: column '{name}' has lists of {min(lengths)} to {max(lengths)} numbers; examples need equal ones")
        return arrow_column(path, name, array.flatten(), row * lengths.copy().pop()).reshape(len(array), *lengths)
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "fiub":
        raise Refused(f"{path}: column '{name}' is {array.type}; encode it as numbers")
    return values


def arrow_blocks(path):
    try:
        import pyarrow.dataset
    except ImportError:
        raise Refused(f"{path}: Parquet and Arrow are read by pyarrow, which this Python does not have: pip install pyarrow") from None
    kind = "parquet" if path.suffix == ".parquet" else "ipc"
    row = 1
    try:
        for batch in pyarrow.dataset.dataset(path, format=kind).to_batches(batch_size=BLOCK):
            if batch.num_rows:
                yield {name: arrow_column(path, name, column, row) for name, column in zip(batch.schema.names, batch.columns)}
            row += batch.num_rows
    except pyarrow.ArrowException as error:
        raise Refused(f"{path}: {error}") from None


def array_blocks(path):
    arrays = {path.stem: np.load(path, mmap_mode="r")} if path.suffix == ".npy" else dict(np.load(path))
    rows = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(rows) != 1 or 0 in rows:
        raise Refused(f"{path}: arrays have " + ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
                      + "; the first axis must be the examples of all")
    for first in range(0, rows.pop(), BLOCK):
        yield {name: np.asarray(array[first:first + BLOCK]) for name, array in arrays.items()}


def blocks_of(path):
    if not path.exists():
        raise Refused(f"there is no {path}")
    name = path.name.removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        return csv_blocks(path)
    if path.suffix in (".parquet", ".arrow", ".feather", ".ipc"):
        return arrow_blocks(path)
    if path.suffix in (".npy", ".npz"):
        return array_blocks(path)
    raise Refused(f"{path}: its kind is told by its name, which must end in .csv, .csv.gz, .parquet, .arrow, .feather, .npy or .npz")


# ---- Feeds --------------------------------------------------------------------------------------------------


class Feed:
    """An array that is made of columns."""

    def __init__(self, name, columns, dtype=None):
        self.name, self.columns, self.dtype = name, columns, dtype

    @staticmethod
    def parse(text):
        name, equals, rest = text.partition("=")
        columns, _, dtype = rest.partition(":")
        if not name or not equals or not columns:
            raise Refused(f"--feed {text} is not of the form NAME=COLUMN[,COLUMN...][:TYPE]")
        try:
            return Feed(name, columns.split(","), np.dtype(dtype) if dtype else None)
        except TypeError:
            raise Refused(f"--feed {text}: '{dtype}' is no NumPy type") from None

    def of(self, block, path):
        missing = [column for column in self.columns if column not in block]
        if missing:
            raise Refused(f"{path} has no column '{missing[0]}' for the feed '{self.name}'; it has {', '.join(block)}")
        parts = [block[column] for column in self.columns]
        rows = parts[0] if len(parts) == 1 else np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
        if self.dtype is None or self.dtype == rows.dtype:
            return rows
        converted = rows.astype(self.dtype)
        if self.dtype.kind in "iub" and not np.array_equal(converted, rows):
            raise Refused(f"{path}: the feed '{self.name}' has numbers that no {self.dtype} holds")
        return converted


# ---- Outputs: write(dictionary of arrays), then close() or discard(). What is not whole has another name ----------


def part_of(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + ".part")


class NpyFile:
    """A .npy file that grows; its header has room for any number of rows."""
    HEADER = 192

    def __init__(self, path):
        self.path, self.file, self.rows, self.kind = path, open(path, "wb"), 0, None
        self.file.write(b"\0" * self.HEADER)

    def write(self, rows):
        kind = (rows.dtype.newbyteorder("<"), rows.shape[1:])
        if self.kind not in (None, kind):
            raise Refused(f"{self.path}: rows are {kind[0]}{kind[1]}, but those before were {self.kind[0]}{self.kind[1]}; say a type by --feed")
        self.kind = kind
        self.file.write(np.ascontiguousarray(rows, kind[0]).data)
        self.rows += len(rows)

    def close(self):
        text = repr({"descr": np.lib.format.dtype_to_descr(self.kind[0]), "fortran_order": False, "shape": (self.rows, *self.kind[1])})
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\1\0" + struct.pack("<H", self.HEADER - 10) + text.encode().ljust(self.HEADER - 11) + b"\n")
        self.file.close()


class NpyFolder:
    def __init__(self, path):
        if path.exists():
            raise Refused(f"{path} is there already: remove it, or name another folder")
        self.path, self.folder, self.files = path, part_of(path), {}
        self.folder.mkdir(exist_ok=True)

    def write(self, arrays):
        for name, rows in arrays.items():
            if name not in self.files:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                self.files[name] = NpyFile(self.folder / f"{name}.npy")
            self.files[name].write(rows)

    def close(self):
        for file in self.files.values():
            file.close()
        self.folder.rename(self.path)

    def discard(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class NpzFile:
    """Stored, so that executables map it; the arrays are gathered in files of a folder beside it."""

    def __init__(self, path):
        self.path, self.part = path, part_of(path)
        self.arrays = NpyFolder(part_of(path.with_name(path.name + ".arrays")))
        self.write = self.arrays.write

    def close(self):
        self.arrays.close()
        with zipfile.ZipFile(self.part, "w", zipfile.ZIP_STORED) as archive:
            for name in self.arrays.files:
                archive.write(self.arrays.path / f"{name}.npy", name + ".npy")
        shutil.rmtree(self.arrays.path)
        self.part.rename(self.path)

    def discard(self):
        self.arrays.discard()
        shutil.rmtree(self.arrays.path, ignore_errors=True)
        self.part.unlink(missing_ok=True)


def crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table


CRC_TABLE = crc_table()


def masked_crcs(rows):
    """TFRecord's checksum (masked CRC-32C) of each row of a matrix of bytes."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = CRC_TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    return ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, contents):
    return bytes([number << 3 | 2]) + varint(len(contents)) + contents


def feature(row):
    """A row as a tensorflow.Feature: float32 as floats, integers as integers, anything else (and uint8) as its bytes."""
    if row.dtype == np.float32:
        return field(2, field(1, row.tobytes()))
    if row.dtype.kind in "iub" and row.dtype not in (np.uint8, np.uint64):
        return field(3, field(1, b"".join(varint(int(value)) for value in row.reshape(-1))))
    return field(1, field(1, row.tobytes()))


def serialize(arrays):
    """The rows of arrays as tensorflow.Examples."""
    keys = {name: field(1, name.encode()) for name in arrays}
    count = len(next(iter(arrays.values())))
    for i in range(count):
        yield field(1, b"".join(field(1, keys[name] + field(2, feature(np.asarray(rows[i])))) for name, rows in arrays.items()))


def frame(records):
    """Records as TFRecord files hold them. Checksums are made of all records of one length at a time."""
    heads = np.frombuffer(b"".join(struct.pack("<Q", len(record)) for record in records), np.uint8).reshape(-1, 8)
    crcs = np.zeros(len(records), np.uint32)
    lengths = np.array([len(record) for record in records])
    for length in np.unique(lengths):
        where = np.flatnonzero(lengths == length)
        crcs[where] = masked_crcs(np.frombuffer(b"".join(records[i] for i in where), np.uint8).reshape(len(where), length))
    for record, head, head_crc, crc in zip(records, heads, masked_crcs(heads), crcs):
        yield head.tobytes() + struct.pack("<I", head_crc) + record + struct.pack("<I", crc)


class RecordFile:
    def __init__(self, path):
        self.path, self.part = path, part_of(path)
        self.file = gzip.open(self.part, "wb", compresslevel=6) if path.suffix == ".gz" else open(self.part, "wb")

    def write(self, arrays):
        self.file.write(b"".join(frame(list(serialize(arrays)))))

    def close(self):
        self.file.close()
        self.part.rename(self.path)

    def discard(self):
        self.file.close()
        self.part.unlink(missing_ok=True)


def open_output(path):
    name = path.name.removesuffix(".gz")
    if name.endswith((".tfrecord", ".tfrecords")):
        return RecordFile(path)
    if path.suffix == ".npz":
        return NpzFile(path)
    if path.suffix in ("", ".npy"):
        return NpyFolder(path)
    raise Refused(f"{path}: what is written is told by its name: a folder (of .npy files), .npz, .tfrecord or .tfrecord.gz")


def shard_paths(path, shards):
    if shards == 1:
        return [path]
    stem, dot, rest = path.name.partition(".")
    return [path.with_name(f"{stem}-{k:05}-of-{shards:05}{dot}{rest}") for k in range(shards)]


def convert(inputs, output, feeds=(), shards=1):
    """Rows go to the shards in turns, a block each. Returns how many there were."""
    outputs, rows, turn = [], 0, 0
    try:
        for path in shard_paths(output, shards):
            outputs.append(open_output(path))
        for path in inputs:
            for block in blocks_of(path):
                arrays = {feed.name: feed.of(block, path) for feed in feeds or [Feed(name, [name]) for name in block]}
                outputs[turn % shards].write(arrays)
                rows, turn = rows + len(next(iter(arrays.values()))), turn + 1
        if turn < shards:
            raise Refused(f"{rows} rows are too few for {shards} files, which take {BLOCK} at a time" + ("; say fewer --shards" if shards > 1 else ""))
        for made in outputs:
            made.close()
    except BaseException:
        for made in outputs:
            made.discard()
        raise
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=pathlib.Path, metavar="INPUT")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=COLUMN[,COLUMN...][:TYPE]")
    parser.add_argument("--shards", type=int, default=1)
    arguments = parser.parse_args()
    try:
        if arguments.shards < 1:
            raise Refused("--shards must be at least 1")
        rows = convert(arguments.inputs, arguments.output, [Feed.parse(text) for text in arguments.feed], arguments.shards)
    except (Refused, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        sys.exit(f"error: {error}")
    print(f"{rows} examples in {', '.join(str(path) for path in shard_paths(arguments.output, arguments.shards))}")


if __name__ == "__main__":
    main()
