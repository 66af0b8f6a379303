"""Writes OpSignatures.inc: what TensorFlow's registry says of every operation.

    python dialects/dfg/tensorflow/make_op_signatures.py > dialects/dfg/tensorflow/OpSignatures.inc

needs TensorFlow. A line of the table is an operation; OpSignatures.h describes it.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

HEADER = """//===- OpSignatures.inc - TensorFlow's operations: inputs, outputs, attributes -----------===//
//
// Derived from the operation registry of TensorFlow {version}, Copyright The TensorFlow Authors,
// licensed under the Apache License, Version 2.0. Made by make_op_signatures.py; not edited by hand.
//
//===----------------------------------------------------------------------===//
R"(producer {producer}
"""


def type_name(number):
    return tf.dtypes.as_dtype(number).name


def argument(arg):
    kind = type_name(arg.type) if arg.type else ""
    if arg.type_list_attr:
        kind = "*" + arg.type_list_attr
    elif arg.type_attr:
        kind = "$" + arg.type_attr
    if arg.number_attr:
        kind = arg.number_attr + "*" + kind
    return arg.name + ":" + ("&" if arg.is_ref else "") + kind


def values(attr, value):
    """The values of types and integers, on which the number and types of inputs and outputs depend, and allowed strings."""
    kind = value.WhichOneof("value")
    if kind == "type":
        return type_name(value.type)
    if kind == "i":
        return str(value.i)
    if kind == "list":
        entries = [type_name(t) for t in value.list.type] + [s.decode() for s in value.list.s]
        return ",".join(entries)
    return ""


def attribute(attr):
    text = attr.name + ":" + attr.type
    if attr.has_minimum:
        text += ">=" + str(attr.minimum)
    if attr.HasField("allowed_values"):
        text += "{" + values(attr, attr.allowed_values) + "}"
    if attr.HasField("default_value"):
        isText = attr.type in ("string", "list(string)")
        text += "=" + ("" if isText else values(attr, attr.default_value))
    return text


def line(op):
    parts = [op.name + ("!" if op.is_stateful else ""), *map(argument, op.input_arg), "->", *map(argument, op.output_arg)]
    if op.attr:
        parts += [";", *map(attribute, op.attr)]
    return " ".join(parts)


def main():
    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer)).op
    sys.stdout.write(HEADER.format(version=tf.version.VERSION, producer=tf.version.GRAPH_DEF_VERSION))
    for op in sorted(ops, key=lambda op: op.name):
        if ">" not in op.name and "Test" not in op.name:
            sys.stdout.write(line(op) + "\n")
    sys.stdout.write(')"\n')


if __name__ == "__main__":
    main()
