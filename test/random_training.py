"""Random small training graphs and strategies for them: what tests of distribution share. All follows from the random.Random that is
given. Needs nothing but Python."""
import random
import re
from typing import NamedTuple


class Value(NamedTuple):
    name: str  # in the IR: %name
    type: str
    shape: tuple  # None: the batch's size


def tensor(element, *shape):
    return "tensor<" + "".join(f"{'?' if size is None else size}x" for size in shape) + element + ">"


def shape_of(array):
    return (len(array), *(shape_of(array[0]) if array else ())) if isinstance(array, list) else ()


def full(shape, value):
    """An array, in nested lists, whose elements are `value`, or made by it."""
    if shape:
        return [full(shape[1:], value) for _ in range(shape[0])]
    return value() if callable(value) else value


BATCH = None
LEARNING_RATE = 0.05
ACTIVATIONS = {"relu": "relu_grad", "tanh": "tanh_grad", "sigmoid": "sigmoid_grad"}
DENSE_SLOTS = {"gradient_descent": [], "momentum": [0.0], "adagrad": [0.1], "adam": [0.0, 0.0], "by_hand": [],
               "momentum_by_hand": [0.0], "rms_by_hand": [1.0], "centralized_by_hand": [0.0]}


class Graph:
    """A model of some dense layers and perhaps tables of rows, with backward written out, and an optimizer."""

    def __init__(self, rng):
        self.rng = rng
        self.numbers = random.Random(rng.random())
        self.variables, self.body, self.updates, self.inits, self.counter = [], [], [], [], 0
        self.step = None
        self.trained = {}  # name: shape
        self.sparse = set()
        self.feeds = {}  # name: (element type, function of a number of rows)
        self.optimizer = rng.choice(list(DENSE_SLOTS))
        self.loss_is_sum = rng.random() < 0.3
        self.build()

    # ---- Nodes -----------------------------------------------------------------------------------------

    def node(self, op, operands, result, name=None, attributes=""):
        """A node; its value where `result`, the element type and shape, says that it has one."""
        name = name or f"n{self.counter}"
        self.counter += 1
        value = Value("%" + re.sub(r"\W", "_", name), tensor(*result), tuple(result[1:])) if result else None
        left = f"{value.name} = " if value else ""
        types = ", ".join(operand.type for operand in operands)
        self.body.append(f"  {left}dfg.{op} {', '.join(operand.name for operand in operands)} {attributes} : ({types}) -> "
                         f"{value.type if value else '()'} loc(\"{name}\")")
        return value

    def f32(self, op, operands, *shape, **keywords):
        return self.node(op, operands, ("f32", *shape), **keywords)

    def like(self, op, first, *others, **keywords):
        """A node whose result is as its first operand."""
        return self.f32(op, (first, *others), *first.shape, **keywords)

    def constant(self, value, element="f32", name=None):
        shape = shape_of(value)
        result = (element, *shape)
        name = name or f"n{self.counter}"
        self.counter += 1
        constant = Value("%" + re.sub(r"\W", "_", name), tensor(*result), shape)
        elements = "" if 0 in shape else value
        self.body.append(f"  {constant.name} = dfg.const dense<{elements}> : {constant.type} : {constant.type} loc(\"{name}\")")
        return constant

    def placeholder(self, name, make, element, *shape):
        self.feeds[name] = (element, make)
        sizes = ", ".join("?" if size is BATCH else str(size) for size in shape)
        declared = f"#dfg.shape<[{sizes}]>"
        self.body.append(f"  %{name} = dfg.placeholder {{shape = {declared}}} : () -> {tensor(element, *shape)} loc(\"{name}\")")
        return Value("%" + name, tensor(element, *shape), shape)

    def variable(self, name, initial, element="f32", trained=False):
        """The handle of a variable that begins with the array `initial`."""
        shape = shape_of(initial)
        type_ = tensor(element, *shape)
        self.variables.append(f"dfg.variable @{name} : {type_}" + (" {trainable}" if trained else ""))
        self.body.append(f"  %{name} = dfg.var_handle @{name} : !dfg.ref<{type_}> loc(\"{name}\")")
        handle = Value("%" + name, f"!dfg.ref<{type_}>", shape)
        self.node("assign", (handle, self.constant(initial, element)), None, name=f"{name}/Assign")
        self.inits.append(f"{name}/Assign")
        if trained:
            self.trained[name] = shape
            # TensorFlow's variables look for it.
            self.node("read_variable", (handle,), (element, *shape), name=f"{name}/Read/ReadVariableOp")
        return handle

    def weights(self, name, *shape):
        scale = 0.5 if len(shape) == 1 else shape[0] ** -0.5
        return self.variable(name, full(shape, lambda: self.numbers.gauss(0, scale)), trained=True)

    def read(self, handle, element="f32"):
        return self.node("read_variable", (handle,), (element, *handle.shape))

    def run_update(self, name, op, operands, attributes=""):
        self.node(op, operands, None, name=f"{name}/update", attributes=attributes)
        self.updates.append(f"{name}/update")

    # ---- The model ---------------------------------------------------------------------------------------

    def build(self):
        rng = self.rng
        self.axis = self.constant([0], "i32", name="axis")
        self.make_learning_rate()
        width = rng.randint(1, 6)
        h = x = self.placeholder("x", lambda rows: full((rows, width), lambda: self.numbers.gauss(0, 1)), "f32", BATCH, width)
        tables = []
        for number in range(rng.choice([0, 0, 1, 1, 2])):
            h, table = self.look_up(number, h)
            tables.append(table)
        layers = []
        for number in range(rng.randint(1, 4)):
            h, layer = self.dense(number, h)
            layers.append(layer)
        if rng.random() < 0.2:
            self.average(h)
        e = self.finish(h)
        gradients = []
        for layer in reversed(layers):
            e = self.dense_gradients(layer, e, gradients)
        self.clip(gradients)
        self.prepare_optimizer()
        for name, handle, gradient in gradients:
            self.update(name, handle, gradient)
        self.keep(layers, gradients)
        for table in reversed(tables):
            e = self.update_rows(table, e)
        # By control edges, as TensorFlow's optimizers do: an exported graph has no other order.
        after = "{control = [" + ", ".join(f'"{update}"' for update in self.updates) + "]}"
        if self.optimizer == "adam":
            self.run_update("beta_power", "assign_sub", (self.beta_power, self.constant(0.05)), after)
        if self.step:
            self.run_update("step", "assign_add", (self.step, self.constant(1, "i64")), after)

    def make_learning_rate(self):
        kind = self.rng.choice(["constant", "fed", "schedule"])
        if kind == "fed":
            self.lr = self.placeholder("lr", lambda rows: LEARNING_RATE, "f32")
            return
        self.lr = self.constant(LEARNING_RATE, name="lr" if kind == "constant" else None)
        if kind == "schedule":
            self.step = self.variable("step", 0, "i64")
            count = self.f32("cast", (self.read(self.step, "i64"),))
            self.lr = self.f32("real_div", (self.lr, self.f32("add_v2", (count, self.constant(1.0)))), name="lr")

    def look_up(self, number, h):
        rows, width = self.rng.randint(2, 9), h.shape[1]
        ids = self.placeholder(f"ids{number}", lambda count: full((count,), lambda: self.numbers.randrange(rows)), "i32", BATCH)
        handle = self.weights(f"table{number}", rows, width)
        self.sparse.add(f"table{number}")
        found = self.f32("resource_gather", (handle, ids), BATCH, width)
        return self.like("mul", h, found), (f"table{number}", handle, ids, h, found)

    def dense(self, number, below):
        inner, out = below.shape[1], self.rng.randint(1, 6)
        hw, hb = self.weights(f"w{number}", inner, out), self.weights(f"b{number}", out)
        w, b = self.read(hw), self.read(hb)
        y = self.like("add_v2", self.f32("mat_mul", (below, w), BATCH, out), b)
        activation = self.rng.choice([None, *ACTIVATIONS])
        h = self.like(activation, y) if activation else y
        return h, (number, hw, hb, w, below, activation, h)

    def dense_gradients(self, layer, e, gradients):
        """The gradient of what is below; those of the variables are appended to `gradients`."""
        number, hw, hb, w, below, activation, h = layer
        if activation:
            e = self.like(ACTIVATIONS[activation], *((e, h) if activation == "relu" else (h, e)))
        gw = self.f32("mat_mul", (below, e), *w.shape, attributes="{transpose_a = true}")
        gb = self.f32("sum", (e, self.axis), *hb.shape)
        if self.rng.random() < 0.3:  # weight decay
            gw = self.like("add_v2", gw, self.like("mul", w, self.constant(0.01)))
        gradients += [(f"w{number}", hw, gw), (f"b{number}", hb, gb)]
        return self.f32("mat_mul", (e, w), *below.shape, attributes="{transpose_b = true}")

    def average(self, h):
        """A moving average of a statistic of the batch, as batch normalization keeps them."""
        handle = self.variable("moving", full(h.shape[1:], 0.0))
        mean = self.f32("mean", (h, self.axis), h.shape[1])
        change = self.like("mul", self.like("sub", self.read(handle), mean), self.constant(0.1))
        self.run_update("moving", "assign_sub", (handle, change))

    def finish(self, h):
        """The loss; returns its gradient by `h`."""
        classes = h.shape[1] >= 2 and self.rng.random() < 0.4
        if classes:
            count = h.shape[1]
            labels = self.placeholder("labels", lambda rows: full((rows,), lambda: self.numbers.randrange(count)), "i32", BATCH)
            name, one_each = f"n{self.counter}", tensor("f32", BATCH)
            self.counter += 1
            self.body.append(f"  %{name}:2 = dfg.sparse_softmax_cross_entropy_with_logits {h.name}, {labels.name} : ({h.type}, "
                             f"{labels.type}) -> ({one_each}, {h.type}) loc(\"{name}\")")
            losses, e = Value(f"%{name}#0", one_each, (BATCH,)), Value(f"%{name}#1", h.type, h.shape)
            total, of = self.f32("sum", (losses, self.axis)), losses
        else:
            total, of, e = self.f32("l2_loss", (h,)), h, h
        if self.loss_is_sum:
            scale, op = self.constant(0.05), "mul"
        else:
            scale, op = self.f32("cast", (self.node("size", (of,), ("i32",)),)), "real_div"
        self.f32(op, (total, scale), name="loss")
        return self.like(op, e, scale)

    def clip(self, gradients):
        """Some gradients become smaller by a norm over all of them."""
        if self.rng.random() > 0.4:
            return
        chosen = self.rng.sample(range(len(gradients)), self.rng.randint(1, len(gradients)))
        norms = [self.f32("l2_loss", (gradients[i][2],)) for i in chosen]
        norm = self.f32("sqrt", (self.f32("add_v2", (self.f32("add_n", norms), self.constant(1.0))),))
        for i in chosen:
            name, handle, gradient = gradients[i]
            gradients[i] = (name, handle, self.like("real_div", gradient, norm))

    # ---- Updates -----------------------------------------------------------------------------------------

    def prepare_optimizer(self):
        if self.optimizer == "adam":
            self.beta_power = self.variable("beta_power", 0.9)
            self.power = self.read(self.beta_power)
        self.momentum = self.constant(0.9, name="momentum")
        self.epsilon = self.constant(0.1, name="epsilon")

    def slots(self, name, handle):
        return [self.variable(f"{name}_slot{k}", full(handle.shape, initial))
                for k, initial in enumerate(DENSE_SLOTS[self.optimizer])]

    def update(self, name, handle, gradient):
        slots = self.slots(name, handle)
        if self.optimizer == "by_hand":
            self.run_update(name, "assign_sub", (handle, self.like("mul", gradient, self.lr)))
        elif self.optimizer.endswith("_by_hand"):
            self.update_by_hand(name, handle, slots[0], gradient)
        elif self.optimizer == "adam":
            self.run_update(name, "apply_adam", (handle, *slots, self.power, self.power, self.lr, self.momentum, self.momentum,
                                                 self.epsilon, gradient))
        else:
            last = (self.momentum,) if self.optimizer == "momentum" else ()
            self.run_update(name, f"apply_{self.optimizer}", (handle, *slots, self.lr, gradient, *last))

    def after(self, *names):
        return "{control = [" + ", ".join(f'"{name}"' for name in names) + "]}"

    def update_by_hand(self, name, handle, slot, gradient):
        """Spelled out, as Keras does: assignments of expressions, and several readers of a gradient."""
        if self.optimizer == "centralized_by_hand":
            mean = self.f32("mean", (gradient, self.constant(list(range(len(handle.shape))), "i32")))
            gradient = self.like("sub", gradient, mean)
        squares = self.optimizer == "rms_by_hand"
        old = self.like("mul", self.read(slot), self.momentum)
        self.run_update(f"{name}_slot0", "assign", (slot, self.like("add_v2", old, self.like("square", gradient) if squares else gradient)))
        new = self.node("read_variable", (slot,), ("f32", *slot.shape), attributes=self.after(f"{name}_slot0/update"))
        step = self.like("mul", gradient, self.like("rsqrt", self.like("add_v2", new, self.epsilon))) if squares else new
        self.run_update(name, "assign_sub", (handle, self.like("mul", step, self.lr)), self.after(f"{name}_slot0/update"))

    def keep(self, layers, gradients):
        """Variables that are given what is seen on the way: values of before and behind the update, and of a gradient."""
        for name, handle, gradient in gradients:
            kind = self.rng.choice(["old", "new", "history", "gradient", "norm", *[None] * 7])
            if kind is None:
                continue
            kept = self.variable(f"{name}_{kind}", 0.0 if kind == "norm" else full(handle.shape, 0.0))
            behind = self.after(f"{name}/update")
            if kind in ("old", "history"):
                old = next(layer[3] for layer in layers if layer[1] is handle) if name.startswith("w") else None
                if old is None:
                    kind = "new"
            if kind == "gradient":
                self.run_update(f"{name}_{kind}", "assign", (kept, gradient))
            elif kind == "norm":
                self.run_update(f"{name}_{kind}", "assign", (kept, self.f32("l2_loss", (gradient,))))
            elif kind == "old":
                self.run_update(f"{name}_{kind}", "assign", (kept, old), behind)
            elif kind == "history":
                before = self.variable(f"{name}_before", full(handle.shape, 0.0))
                last = self.read(kept)
                # TensorFlow may run a read that nothing orders behind the update.
                self.run_update(f"{name}_{kind}", "assign", (kept, old), self.after(f"{name}/update", last.name.lstrip("%")))
                self.run_update(f"{name}_before", "assign", (before, last), self.after(f"{name}_{kind}/update"))
            else:
                new = self.node("read_variable", (handle,), ("f32", *handle.shape), attributes=behind)
                self.run_update(f"{name}_new", "assign", (kept, new))

    def update_rows(self, table, e):
        """The update of the rows that were looked up; returns the gradient of what they were multiplied with."""
        name, handle, ids, h, found = table
        rows = self.like("mul", e, h)
        if self.optimizer in ("momentum", "adagrad"):
            distinct, sums = self.sum_rows(ids, rows)
            last = (self.momentum,) if self.optimizer == "momentum" else ()
            self.run_update(name, f"sparse_apply_{self.optimizer}", (handle, *self.slots(name, handle), self.lr, sums, distinct, *last))
        else:
            self.run_update(name, "scatter_sub", (handle, ids, self.like("mul", rows, self.lr)))
        return self.like("mul", e, found)

    def sum_rows(self, ids, rows):
        """Each index once, with the sum of its rows, as optimizers want them."""
        name = f"n{self.counter}"
        self.counter += 1
        self.body.append(f"  %{name}:2 = dfg.unique {ids.name} : ({ids.type}) -> ({ids.type}, {ids.type}) loc(\"{name}\")")
        distinct, which = (Value(f"%{name}#{k}", ids.type, ids.shape) for k in range(2))
        count = self.node("size", (distinct,), ("i32",))
        return distinct, self.like("unsorted_segment_sum", rows, which, count)

    # ---- What tests use ------------------------------------------------------------------------------------

    def print(self):
        def group(names, name):
            control = ", ".join(f'"{before}"' for before in names)
            return f"  dfg.group {{control = [{control}]}} : () -> () loc(\"{name}\")"
        return "\n".join(self.variables + ['dfg.graph attributes {init_op = "init", train_op = "train", loss = "loss:0"} {'] + self.body +
                         [group(self.inits, "init"), group(self.updates, "train"), "}", ""])

    def make_feeds(self, rows):
        """By name: the element type, and nested lists of so many rows."""
        return {name: (element, make(rows)) for name, (element, make) in self.feeds.items()}


def make_meta_graph(graph, graph_def):
    """The text of a MetaGraphDef, from that of the graph's GraphDef: with the collections that TensorFlow's training graphs have."""
    def collection(key, kind, values):
        return f"collection_def {{ key: \"{key}\" value {{ {kind} {{ {' '.join(f'value: {chr(34)}{value}{chr(34)}' for value in values)} }} }} }}\n"

    def variable_def(name):
        fields = {1: f"{name}:0", 2: f"{name}/Assign", 3: f"{name}/Read/ReadVariableOp:0"}
        wire = b"".join(bytes([number << 3 | 2, len(text)]) + text.encode() for number, text in fields.items()) + b"\x28\x01"
        return "".join(f"\\{byte:03o}" for byte in wire)
    variables = [variable_def(name) for name in graph.trained]
    return (f"graph_def {{\n{graph_def}}}\n" + collection("trainable_variables", "bytes_list", variables) +
            collection("variables", "bytes_list", variables) + collection("train_op", "node_list", ["train"]) +
            collection("init_op", "node_list", ["init"]) + collection("losses", "node_list", ["loss:0"]))


def random_strategy(rng, graph, servers=0, synchronous=False):
    """The text of a right strategy: groups, shards and sharded updates, and servers where there are any, as they come. `synchronous`: replicas compute
    what one does."""
    sync = synchronous or rng.random() < 0.7
    return "\n".join(random_entry(rng, name, shape, name in graph.sparse, servers, sync, not synchronous) for name, shape in graph.trained.items())


def random_entry(rng, name, shape, sparse, servers, sync, may_be_stale):
    stage = 0 if sparse else rng.choice([0, 0, 0, 1, 2])
    serves = servers and rng.random() < 0.6
    staleness = rng.choice([0, 0, 2]) if sync and may_be_stale else 0
    proxy = str(rng.random() < 0.3).lower()

    def synchronizer():
        if serves:
            return (f'PSSynchronizer {{ reduction_destination: "ps:{rng.randrange(servers)}" sync: {str(sync).lower()} '
                    f'staleness: {staleness} local_replication: {proxy} }}')
        group = 10 * (3 if sparse else stage) + rng.randint(0, 2)  # of one kind of gradients and updates
        return f"AllReduceSynchronizer {{ group: {group} sharded_stage: {stage} }}"
    axes = [axis for axis, size in enumerate(shape) if size > 1 and (axis == 0 or not sparse)]
    if not axes or rng.random() < 0.6:
        return f'node_config {{ var_name: "{name}" {synchronizer()} }}'
    axis = rng.choice(axes)
    count = rng.randint(2, shape[axis])
    partitioner = ",".join(str(count if i == axis else 1) for i in range(len(shape)))
    parts = " ".join(f'part_config {{ var_name: "{name}/part_{k}" {synchronizer()} }}' for k in range(count))
    return f'node_config {{ var_name: "{name}" partitioner: "{partitioner}" {parts} }}'


def mutate(rng, text):
    """The text with some mistakes, which may be none."""
    if rng.random() < 0.7:  # of meaning, not of form
        for _ in range(rng.randint(1, 3)):
            tokens = list(re.finditer(r'"[^"]*"|(?<= )(\d+|true|false)(?= )|node_config .*', text))
            if not tokens:
                break
            token = rng.choice(tokens)
            word = token.group()
            others = ([word, "", word + "\n" + word] if word.startswith("node_config") else
                      ['""', '"w0"', '"b0"', '"table0"', '"ps:0"', '"ps:9"', '"nowhere:CPU:0"', '"2,1"', '"1,2"', '"2"', '"9,9"', '"x"',
                       '"0"', '"1,1,2"'] if word.startswith('"') else
                      ["true", "false"] if word in ("true", "false") else ["-1", "0", "1", "2", "3", "7", "2147483647"])
            text = text[:token.start()] + rng.choice(others) + text[token.end():]
        extra = ["accumulate_steps: -1", "accumulate_steps: 2", "replicas_to_aggregate: 1", 'graph_config { replicas: "a" }']
        return text + ("\n" + rng.choice(extra) if rng.random() < 0.3 else "")
    for _ in range(rng.randint(1, 4)):
        tokens = list(re.finditer(r'"[^"]*"|[\w.]+|[{}:]', text)) or [re.match("", text)]
        token = rng.choice(tokens)
        others = ["-1", "0", "7", "1000000000000", "1e30", '""', '"w0"', '"ps:9"', '"nowhere:CPU:0"', '"2,1"', '"0,0"', '"9999999"', "{", "}",
                  "true", "sync", "AllReduceSynchronizer", "aggregator { kind: KRUM f: 1 }", "compressor: PowerSGDCompressor",
                  "accumulate_steps: 2", 'graph_config { replicas: "a" }', "\0", rng.choice(tokens).group()]
        kind = rng.random()
        if kind < 0.5:
            text = text[:token.start()] + rng.choice(others) + text[token.end():]
        elif kind < 0.7:
            text = text[:token.start()] + text[token.end():]
        elif kind < 0.9:
            text = text[:token.start()] + rng.choice(others) + " " + text[token.start():]
        else:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
    return text
