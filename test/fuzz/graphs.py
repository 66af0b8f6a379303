"""Graphs that are wrong in their structure: one to three changes of a sound one, drawn from a generator of random numbers."""
import copy

import wire

INTEGERS = [0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 255, 1000, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62,
            (1 << 63) - 1, -1, -2, -3, -5, -100, -(1 << 31), -(1 << 63)]
SMALL = [-3, -2, -1, 0, 1, 2, 3, 4]
FLOATS = [b"\0\0\0\0", b"\0\0\x80\x3f", b"\0\0\x80\xbf", b"\0\0\x80\x7f", b"\0\0\xc0\x7f", b"\0\0\x80\xff", b"\xff\xff\x7f\x7f"]
TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 17, 18, 19, 20, 21, 22, 23, 24, 29, 33, 34, 100, 101, 103, 120, 999]
STRINGS = [b"", b"SAME", b"VALID", b"EXPLICIT", b"NHWC", b"NCHW", b"x", b"loc:@nothing", b"\xc3\xa4", b"a" * 300]

NAME, OP, INPUT, DEVICE, ATTR = 1, 2, 3, 4, 5  # of a NodeDef


def load(path):
    return wire.decode(path.read_bytes(), "MetaGraphDef")


def graph_of(meta):
    return wire.get(meta, 2)[0]


def functions_of(meta):
    return [f for library in wire.get(graph_of(meta), 2) for f in wire.get(library, 1)]


def attributes(node):
    """[name, AttrValue] of each attribute, the value as the tree holds it."""
    return [(wire.get(entry, 1)[0], wire.get(entry, 2)[0]) for entry in wire.get(node, ATTR) if len(wire.get(entry, 2))]


class Mutator:
    """Changes `meta` in place."""

    def __init__(self, meta, random):
        self.meta = meta
        self.random = random

    def mutate(self):
        """What was done, in words."""
        done = []
        for _ in range(self.random.choice([1, 1, 1, 1, 2, 3])):
            owner, field = self.block()
            nodes = [entry for entry in owner if entry[0] == field]
            if not nodes:
                continue
            change = self.random.choices(
                [self.change_inputs, self.change_attribute, self.change_constant, self.change_shape, self.change_node, self.change_function],
                [4, 5, 4, 3, 2, 1])[0]
            node = self.random.choice(nodes)[1]
            name = (wire.get(node, NAME) or [b"?"])[0].decode(errors="replace")
            done.append(f"{change.__name__} of {name}: {change(owner, field, node)}")
        return "; ".join(done)

    def block(self):
        """The nodes to change: the graph's, sometimes a function's."""
        functions = functions_of(self.meta)
        if functions and self.random.random() < 0.4:
            return self.random.choice(functions), 3
        return graph_of(self.meta), 1

    def integer(self):
        return self.random.choice(self.random.choice([INTEGERS, SMALL]))

    # ---- Inputs -------------------------------------------------------------------------

    def change_inputs(self, owner, field, node):
        inputs = [entry for entry in node if entry[0] == INPUT]
        others = [wire.get(n, NAME)[0] for number, n in owner if number == field and wire.get(n, NAME)]
        kind = self.random.choice(["drop", "twice", "swap", "replace", "output", "control", "dangling", "all"])
        if kind == "all":
            node[:] = [entry for entry in node if entry[0] != INPUT]
        elif kind == "drop" and inputs:
            node.remove(self.random.choice(inputs))
        elif kind == "twice" and inputs:
            node.append([INPUT, self.random.choice(inputs)[1]])
        elif kind == "swap" and len(inputs) > 1:
            a, b = self.random.sample(inputs, 2)
            a[1], b[1] = b[1], a[1]
        elif kind == "replace" and inputs and others:
            entry = self.random.choice(inputs)
            entry[1] = self.random.choice(others) + (b":output:0" if field == 3 and self.random.random() < 0.7 else b"")
        elif kind == "output" and inputs:
            entry = self.random.choice(inputs)
            entry[1] = entry[1].split(b":")[0] + b":" + self.random.choice([b"0", b"1", b"2", b"7", b"-1", b"y:0", b"y:1", b"4294967297", b""])
        elif kind == "control" and others:
            node.append([INPUT, b"^" + self.random.choice(others)])
        elif kind == "dangling":
            node.append([INPUT, self.random.choice([b"^nothing", b"nothing", b"", b":", b"^"])])
        return kind

    # ---- Attributes -----------------------------------------------------------------------

    def change_attribute(self, owner, field, node):
        entries = [entry for entry in node if entry[0] == ATTR]
        if not entries:
            return "none"
        entry = self.random.choice(entries)
        kind = self.random.choice(["value", "value", "value", "drop", "other", "rename", "empty"])
        if kind == "drop":
            node.remove(entry)
        elif kind == "other":
            other = self.random.choice([e for n, other in owner if n == field for e in other if e[0] == ATTR] or [entry])
            entry[1] = [[1, wire.get(entry[1], 1)[0]]] + [[2, copy.deepcopy(v)] for v in wire.get(other[1], 2)]
        elif kind == "rename":
            entry[1][0][1] = self.random.choice([b"T", b"N", b"dtype", b"shape", b"axis", b"unheard_of", b"_private"])
        elif kind == "empty":
            entry[1] = [f for f in entry[1] if f[0] == 1]
        else:
            for value in wire.get(entry[1], 2):
                self.change_value(value)
        return kind + " " + (wire.get(entry[1], 1) or [b"?"])[0].decode(errors="replace")

    def change_value(self, value):
        for entry in value:
            if entry[0] == 6 and isinstance(entry[1], int):
                entry[1] = self.random.choice(TYPES)
            elif entry[0] == 3 and isinstance(entry[1], int):
                entry[1] = self.integer()
            elif entry[0] == 5 and isinstance(entry[1], int):
                entry[1] ^= 1
            elif entry[0] == 4:
                entry[1] = wire.Fixed(self.random.choice(FLOATS))
            elif entry[0] in (2, 9):
                entry[1] = self.random.choice(STRINGS)
            elif entry[0] == 7:
                self.change_sizes(entry[1])
            elif entry[0] == 8:
                self.change_tensor(entry[1])
            elif entry[0] == 1:
                self.change_list(entry[1])
            elif entry[0] == 10:
                entry[1][:] = [f for f in entry[1] if f[0] != 1] + [[1, self.random.choice([b"", b"nothing"] + self.function_names())]]

    def function_names(self):
        return [name for f in functions_of(self.meta) for signature in wire.get(f, 1) for name in wire.get(signature, 1)]

    def change_list(self, fields):
        kind = self.random.choice(["drop", "twice", "value", "clear", "packed"])
        if kind == "clear" or not fields:
            fields.clear()
        elif kind == "drop":
            fields.remove(self.random.choice(fields))
        elif kind == "twice":
            fields.append(copy.deepcopy(self.random.choice(fields)))
        else:
            entry = self.random.choice(fields)
            if isinstance(entry[1], bytes) and entry[0] in (3, 6):  # packed
                pool = TYPES if entry[0] == 6 else INTEGERS + SMALL * 4
                entry[1] = b"".join(wire.write_varint(self.random.choice(pool)) for _ in range(self.random.choice([1, 2, 3, 4, 4, 4, 5, 8])))
            elif isinstance(entry[1], list):
                (self.change_sizes if entry[0] == 7 else self.change_tensor)(entry[1])
            elif isinstance(entry[1], int):
                entry[1] = self.integer()

    # ---- Constants and shapes ---------------------------------------------------------------

    def change_sizes(self, shape):
        dims = [entry for entry in shape if entry[0] == 2]
        kind = self.random.choice(["size", "size", "size", "drop", "add", "rank", "clear", "many"])
        if kind == "rank":
            shape.append([3, 1])
        elif kind == "clear":
            shape.clear()
        elif kind == "drop" and dims:
            shape.remove(self.random.choice(dims))
        elif kind == "add":
            shape.insert(0, [2, [[1, self.integer()]]])
        elif kind == "many":
            shape.extend([2, [[1, 1]]] for _ in range(self.random.choice([5, 9, 40, 300])))
        elif dims:
            self.random.choice(dims)[1][:] = [[1, self.integer()]]
        return kind

    def change_tensor(self, tensor):
        kind = self.random.choice(["type", "shape", "bytes", "bytes", "value", "value"])
        if kind == "type":
            tensor[:] = [f for f in tensor if f[0] != 1] + [[1, self.random.choice(TYPES)]]
        elif kind == "shape":
            for shape in wire.get(tensor, 2):
                self.change_sizes(shape)
        else:
            contents = [f for f in tensor if f[0] == 4 and isinstance(f[1], bytes) and f[1]]
            values = [f for f in tensor if f[0] in (7, 10)]
            if contents and (kind == "bytes" or not values):
                entry = self.random.choice(contents)
                width = 8 if len(entry[1]) % 8 == 0 and self.random.random() < 0.3 else 4
                at = self.random.randrange(0, max(1, len(entry[1]) // width)) * width
                data = bytearray(entry[1])
                data[at:at + width] = (self.integer() & ((1 << 8 * width) - 1)).to_bytes(width, "little")
                entry[1] = bytes(data)
            elif values:
                entry = self.random.choice(values)
                entry[1] = self.integer() if isinstance(entry[1], int) else wire.write_varint(self.integer())
        return kind

    def change_constant(self, owner, field, node):
        constants = [n for number, n in owner if number == field and wire.get(n, OP) == [b"Const"]]
        if not constants:
            return "none"
        node = self.random.choice(constants)
        for name, value in attributes(node):
            if name == b"value":
                for tensor in wire.get(value, 8):
                    return wire.get(node, NAME)[0].decode(errors="replace") + " " + self.change_tensor(tensor)
        return "none"

    def change_shape(self, owner, field, node):
        shapes = [(n, s) for number, n in owner if number == field for name, v in attributes(n) for s in wire.get(v, 7)]
        if not shapes:
            return "none"
        node, shape = self.random.choice(shapes)
        return wire.get(node, NAME)[0].decode(errors="replace") + " " + self.change_sizes(shape)

    # ---- Nodes and functions ------------------------------------------------------------------

    def change_node(self, owner, field, node):
        nodes = [entry for entry in owner if entry[0] == field]
        other = self.random.choice(nodes)[1]
        kind = self.random.choice(["drop", "twice", "rename", "same", "op", "op", "strange", "device"])
        if kind == "drop":
            owner[:] = [entry for entry in owner if entry[1] is not node]
        elif kind == "twice":
            again = copy.deepcopy(node)
            again[:] = [f for f in again if f[0] != NAME] + [[NAME, b"again"]]
            owner.append([field, again])
        elif kind in ("rename", "same"):
            new = wire.get(other, NAME) if kind == "same" else [self.random.choice([b"", b"/", b"a b", b"^a", b"x:0", b"\xff"])]
            node[:] = [f for f in node if f[0] != NAME] + [[NAME, n] for n in new]
        elif kind == "op":
            node[:] = [f for f in node if f[0] != OP] + [[OP, n] for n in wire.get(other, OP)]
        elif kind == "strange":
            node[:] = [f for f in node if f[0] != OP] + [[OP, self.random.choice([b"", b"Mystery", b"_Arg", b"NoOp", b"Merge", b"Switch"])]]
        else:
            node.append([DEVICE, self.random.choice([b"/job:worker/task:9999999999", b"nowhere", b"/gpu:-1"])])
        return kind

    def change_function(self, owner, field, node):
        functions = functions_of(self.meta)
        if not functions:
            return "none"
        function = self.random.choice(functions)
        kind = self.random.choice(["drop", "ret", "argument", "type", "clear", "name"])
        signature = (wire.get(function, 1) or [[]])[0]
        args = [f for f in signature if f[0] in (2, 3)]
        if kind == "drop":
            for library in wire.get(graph_of(self.meta), 2):
                library[:] = [f for f in library if f[1] is not function]
        elif kind == "ret":
            for entry in self.random.sample(wire.get(function, 4), min(1, len(wire.get(function, 4)))):
                entry[-1][1] = self.random.choice([b"", b"nothing:0", b"x", entry[-1][1] + b":9"])
        elif kind == "argument" and args:
            signature.remove(self.random.choice(args))
        elif kind == "type" and args:
            args = self.random.choice(args)[1]
            args[:] = [f for f in args if f[0] != 3] + [[3, self.random.choice(TYPES)]]
        elif kind == "clear":
            function[:] = [f for f in function if f[0] != 3]
        elif kind == "name":
            names = self.function_names()
            signature[:] = [f for f in signature if f[0] != 1] + [[1, self.random.choice(names + [b"", b"MatMul"])]]
        return kind


def mutant(path, random):
    """(bytes, what was done)."""
    meta = load(path)
    what = Mutator(meta, random).mutate()
    return wire.encode(meta), what
