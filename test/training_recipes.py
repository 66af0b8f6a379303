"""Random recipes of training graphs: what tests of training share. A recipe is data (dictionaries, lists, numbers, names): it says which
variables a model has and what one training step does to them, in order. `draw` makes one of a random.Random, `reductions` gives the
smaller ones next to it, `training_graphs.py` makes TensorFlow's graph of it. Needs nothing but Python.

A recipe:
  seed, batch, features, steps   of the numbers; rows of a batch and their width; steps that are trained
  loss                           kind, and sum: whether it is a sum over the batch, not a mean
  constant_data                  data is constants of the graph, not fed
  along_batch                    whether a layer's rows may see each other: then batches cannot be parted
  blocks                         layers, from the features to the loss; each has a name, and l2, a factor of its variables' l2 loss; a
                                 dense one may compute in another type than its variables have
  statements                     what a step does when it has the gradients: optimizers and other updates, one after another
"""
import copy

SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257, 1000)
ACTIVATIONS = ("tanh", "sigmoid", "elu", "softplus", None)

TF1 = {
    "GradientDescent": [{}],
    "Momentum": [{"momentum": 0.9}, {"momentum": 0.9, "use_nesterov": True}],
    "Adam": [{}, {"beta1": 0.8, "epsilon": 1e-3}],
    "RMSProp": [{"epsilon": 1e-3}, {"momentum": 0.9, "epsilon": 1e-3}, {"centered": True, "epsilon": 1e-2}],
    "Adagrad": [{}],
    "AdagradDA": [{}, {"l1_regularization_strength": 0.001, "l2_regularization_strength": 0.01}],
    "Adadelta": [{"epsilon": 1e-3}],
    "Ftrl": [{}, {"l1_regularization_strength": 0.01}, {"l2_regularization_strength": 0.1}, {"learning_rate_power": -0.3}],
    "ProximalGradientDescent": [{}, {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.1}],
    "ProximalAdagrad": [{}, {"l1_regularization_strength": 0.01}],
}
# tf_keras.optimizers.legacy
KERAS_LEGACY = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}],
    "RMSprop": [{"epsilon": 1e-3}, {"momentum": 0.9, "epsilon": 1e-3}, {"centered": True, "epsilon": 1e-2}],
    "Adam": [{"epsilon": 1e-3}, {"amsgrad": True, "epsilon": 1e-3}],
    "Nadam": [{"epsilon": 1e-3}],
    "Adamax": [{"epsilon": 1e-3}],
    "Adagrad": [{}],
    "Adadelta": [{"epsilon": 1e-3}],
    "Ftrl": [{}, {"l2_regularization_strength": 0.1}],
}
# tf_keras.optimizers: updates in a tf.function
KERAS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"clipnorm": 0.1}, {"global_clipnorm": 0.1}, {"weight_decay": 0.01}],
    "RMSprop": [{"epsilon": 1e-3}, {"momentum": 0.9, "epsilon": 1e-3}, {"centered": True, "epsilon": 1e-2}],
    "Adam": [{"epsilon": 1e-3}, {"amsgrad": True, "epsilon": 1e-3}, {"global_clipnorm": 0.1}, {"clipvalue": 0.05, "epsilon": 1e-3},
             {"use_ema": True, "epsilon": 1e-3}],
    "AdamW": [{"epsilon": 1e-3}],
    "Adamax": [{"epsilon": 1e-3}],
    "Adagrad": [{}],
    "Adadelta": [{"epsilon": 1e-3}],
    "Ftrl": [{}],
    "Adafactor": [{}],
    "Lion": [{}],
}
WRITTEN = ("sgd", "sgd_assign", "momentum", "momentum_assign", "nesterov", "adam", "adamw", "lion", "rmsprop", "centered", "adagrad", "lars",
           "adafactor", "adadelta", "heavy_ball", "average_gradient", "scatter_sgd", "lamb", "yogi", "adan", "rprop", "quasi_hyperbolic", "barzilai_borwein")
# Layers in which the rows of a batch see each other.
ALONG_BATCH = ("center", "softmax", "cumsum", "reverse", "roll", "shift", "permute", "sort", "maximum", "segments", "attention", "halves", "first_row",
               "strides", "normalize", "normalize_by_moving", "fused_normalize", "number", "condition", "chosen")
TRANSFORMS = ("clip_by_value", "clip_by_norm", "clip_by_global_norm", "centralize", "decay", "normalize", "scale", "standardize", "adaptive_clip",
              "smooth", "optimistic", "symmetric", "maximum")
RATES = ("constant", "constant", "fed", "exponential", "polynomial", "piecewise", "cosine", "inverse_time", "warmup", "variable")
PIECES = ("old", "new", "history", "swap", "decay", "project", "ema", "ema_written", "polyak", "loss", "norm", "gradient", "lookahead", "scatter",
          "count", "statistics", "delta", "norm_of_update", "update_when", "shadow", "alternate", "accumulate", "sharpness", "steps_in_loop",
          "parts", "histogram", "queue", "metric", "step_in_loop_of_updates", "plateau")


def draw(rng):
    batch = rng.choice([4, 8, 8, 8, 12])
    recipe = {
        "seed": rng.randrange(10 ** 6),
        "batch": batch,
        "features": rng.choice([1, 2, 3, 5, 8]),
        "steps": rng.choice([3, 5, 6]),
        "loss": {"kind": rng.choice(["square", "square", "softmax", "huber", "logistic", "l2"]), "sum": rng.random() < 0.3},
        "constant_data": rng.random() < 0.05,
        "along_batch": rng.random() < 0.3,
        "blocks": [],
        "statements": [],
    }
    for number in range(rng.choice([1, 1, 1, 2, 2, 3, 4, 6])):
        recipe["blocks"].append(draw_block(rng, number, recipe["blocks"]))
    if recipe["along_batch"]:
        for number in range(rng.choice([1, 1, 2])):
            block = {"kind": "along_batch", "name": f"along_batch{number}", "what": rng.choice(ALONG_BATCH)}
            recipe["blocks"].insert(rng.randint(0, len(recipe["blocks"])), block)
    names = variable_names(recipe)
    recipe["statements"] = draw_statements(rng, names)
    recipe["older_control_flow"] = rng.random() < 0.4  # Switch and Merge
    return recipe


def draw_block(rng, number, before):
    kind = rng.choice(["vector", "vector", "dense", "dense", "dense", "table", "table", "pair", "scalar", "layer_norm", "tied"])
    tables = [block["name"] for block in before if block["kind"] == "table"]
    if kind == "tied" and not tables:
        kind = "vector"
    block = {"kind": kind, "name": f"{kind}{number}", "l2": rng.choice([None, None, None, 0.01])}
    if kind == "vector":
        block["size"] = rng.choice(SIZES)
    elif kind == "dense":
        block.update(units=rng.choice([1, 2, 4, 5, 16, 17, 64]), bias=rng.random() < 0.6, activation=rng.choice(ACTIVATIONS),
                     compute=rng.choice([None, None, None, "float64"]))
    elif kind == "table":
        block.update(rows=rng.choice([1, 3, 8, 17, 40]), width=rng.choice([1, 2, 4, 8, 17]), lookups=rng.choice([1, 1, 2]),
                     several=rng.choice([None, None, 3]))
    elif kind == "pair":
        block.update(rows=rng.sample([3, 5, 8, 17, 40], 2), width=rng.choice([1, 3, 8]), same=rng.random() < 0.2, scaled=rng.random() < 0.3)
    elif kind == "tied":
        block["table"] = rng.choice(tables)
    return block


def variable_names(recipe):
    """The trained variables."""
    found = []
    for block in recipe["blocks"]:
        suffixes = {"dense": ["/w", "/b"] if block.get("bias") else ["/w"], "layer_norm": ["/gamma", "/beta"], "pair": ["/a", "/b"],
                    "tied": [], "along_batch": []}.get(block["kind"], ["/w"])
        found += [block["name"] + suffix for suffix in suffixes]
    return found


def draw_statements(rng, names):
    statements = []
    groups = [names]
    if len(names) > 1 and rng.random() < 0.35:
        cut = rng.randrange(1, len(names))
        mixed = rng.sample(names, len(names))
        groups = [mixed[:cut], mixed[cut:]]
    if rng.random() < 0.1:
        groups.append(rng.sample(names, rng.randint(1, len(names))))  # again, by another optimizer
    for group in groups:
        statements.append(draw_optimizer(rng, group))
    if len(groups) == 2 and not set(groups[0]) & set(groups[1]) and rng.random() < 0.5:
        statements[1]["beside"] = True  # the one before, not behind it
    for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2, 3])):
        statements.insert(rng.randint(0, len(statements)), draw_piece(rng, names))
    # What came between may be of the same variables.
    for before, statement in zip(statements, statements[1:]):
        if before["kind"] != "optimizer":
            statement.pop("beside", None)
    return statements


def draw_optimizer(rng, names):
    family = rng.choice(["tf1", "tf1", "keras_legacy", "keras", "written", "written"])
    table = {"tf1": TF1, "keras_legacy": KERAS_LEGACY, "keras": KERAS}.get(family)
    name = rng.choice(WRITTEN if table is None else sorted(table))
    statement = {"kind": "optimizer", "family": family, "name": name, "settings": {} if table is None else dict(rng.choice(table[name])),
                 "of": list(names), "rate": "constant" if family.startswith("keras") and rng.random() < 0.6 else rng.choice(RATES),
                 "transforms": [{"kind": rng.choice(TRANSFORMS), "early": rng.random() < 0.5} for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2]))],
                 "dense": rng.random() < 0.3}
    if family == "keras":
        statement["rate"] = "constant"
    if family == "written" and rng.random() < 0.3:
        statement["function"] = True
    return statement


def draw_piece(rng, names):
    kind = rng.choice(PIECES)
    piece = {"kind": kind, "of": [rng.choice(names)], "form": rng.randrange(4)}
    if kind in ("norm", "ema") and rng.random() < 0.7:
        piece["of"] = rng.sample(names, rng.randint(1, len(names)))
    return piece


# ---- Smaller recipes -------------------------------------------------------------------------------------


PLAIN = {"bias": False, "compute": None, "activation": None, "l2": None, "several": None, "lookups": 1, "settings": {}, "rate": "constant", "dense": True,
         "function": False, "form": 0, "early": False, "constant_data": False, "sum": False, "beside": False, "steps": 2, "size": 17, "rows": 3,
         "width": 2, "units": 2, "features": 2}


def reductions(recipe):
    """Recipes that differ from this one by one part that is gone, or plainer; what takes away most comes first."""
    yield from reduce_at(recipe, recipe, ())


def reduce_at(recipe, part, path):
    if isinstance(part, list):
        for index in range(len(part)):
            if path[-1:] != ("blocks",) or len(part) > 1:
                yield changed(recipe, path, lambda whole, index=index: whole.pop(index))
        for index, element in enumerate(part):
            yield from reduce_at(recipe, element, path + (index,))
    elif isinstance(part, dict):
        for key in ("blocks", "statements", "loss", "transforms", "of"):
            if key in part:
                yield from reduce_at(recipe, part[key], path + (key,))
        for key, plain in PLAIN.items():
            if key in part and part[key] != plain and not (key == "dense" and part[key] is True):
                yield changed(recipe, path, lambda whole, key=key, plain=plain: whole.__setitem__(key, plain))
        if part.get("kind") == "optimizer" and (part["family"], part["name"]) != ("tf1", "GradientDescent"):
            def plain_optimizer(whole):
                whole.update(family="tf1", name="GradientDescent", settings={}, function=False)
            yield changed(recipe, path, plain_optimizer)
        if part.get("kind") in ("softmax", "huber", "logistic", "l2"):
            yield changed(recipe, path, lambda whole: whole.__setitem__("kind", "square"))
        if part.get("kind") in ("dense", "table", "pair", "layer_norm", "scalar", "tied"):
            yield changed(recipe, path, lambda whole: whole.update(kind="vector", size=17))


def changed(recipe, path, change):
    new = copy.deepcopy(recipe)
    part = new
    for key in path:
        part = part[key]
    change(part)
    return new
