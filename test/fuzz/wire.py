"""Protocol buffers as trees, without a library: enough of TensorFlow's messages to change a graph's structure.

A message is a list of fields [number, value]; a value is an int (varint), bytes, a Fixed, or, where SCHEMA knows the field, a
message.
"""


class Fixed(bytes):
    """A field of 4 or 8 bytes: a float, a double."""


# message -> field number -> message of that field
SCHEMA = {
    "MetaGraphDef": {2: "GraphDef"},
    "GraphDef": {1: "NodeDef", 2: "Library"},
    "Library": {1: "FunctionDef"},
    "FunctionDef": {1: "OpDef", 3: "NodeDef", 4: "StringEntry"},
    "OpDef": {2: "ArgDef", 3: "ArgDef"},
    "ArgDef": {},
    "StringEntry": {},
    "NodeDef": {5: "AttrEntry"},
    "AttrEntry": {2: "AttrValue"},
    "AttrValue": {1: "ListValue", 7: "Shape", 8: "Tensor", 10: "NameAttrList"},
    "ListValue": {7: "Shape", 8: "Tensor"},
    "NameAttrList": {},
    "Shape": {2: "Dim"},
    "Dim": {},
    "Tensor": {2: "Shape"},
}


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def write_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data, message):
    fields, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            length, at = read_varint(data, at)
            value = bytes(data[at:at + length])
            at += length
            inner = SCHEMA[message].get(number)
            if inner:
                value = decode(value, inner)
        else:
            size = 8 if kind == 1 else 4
            value = Fixed(data[at:at + size])
            at += size
        fields.append([number, value])
    return fields


def encode(fields):
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += write_varint(number << 3) + write_varint(value)
        elif isinstance(value, Fixed):
            out += write_varint(number << 3 | (1 if len(value) == 8 else 5)) + value
        else:
            body = encode(value) if isinstance(value, list) else value
            out += write_varint(number << 3 | 2) + write_varint(len(body)) + body
    return bytes(out)


def get(fields, number):
    """The values of a field, in order."""
    return [value for field, value in fields if field == number]
