"""TensorFlow's update operations as data: each with its slots, its settings and what is rarely asked of it, dense and by rows, of resources and of
references. `programs` makes of each a training program (training_programs.py) with a variable a form, so that a wrong one has a name."""
import itertools

import tensorflow as tf

tf1 = tf.compat.v1

# Operation: initial values of its slots, its operands (numbers; a list where each is tried), its attributes (all values are tried).
OPTIMIZERS = {
    "GradientDescent": ({}, {"alpha": 0.3}, {}),
    "Momentum": ({"accum": 0.1}, {"lr": 0.2, "momentum": 0.8}, {"use_nesterov": (False, True)}),
    "KerasMomentum": ({"accum": 0.1}, {"lr": 0.2, "momentum": 0.8}, {"use_nesterov": (False, True)}),
    "Adagrad": ({"accum": 0.2}, {"lr": 0.3}, {"update_slots": (True, False)}),
    "AdagradV2": ({"accum": 0.1}, {"lr": 0.3, "epsilon": 1e-3}, {"update_slots": (True, False)}),
    "RMSProp": ({"ms": 0.5, "mom": 0.1}, {"lr": 0.05, "rho": [0.9, 0.0], "momentum": [0.5, 0.0], "epsilon": 1e-3}, {}),
    "CenteredRMSProp": ({"mg": 0.1, "ms": 0.5, "mom": 0.1}, {"lr": 0.05, "rho": 0.9, "momentum": [0.5, 0.0], "epsilon": 1e-2}, {}),
    "Adadelta": ({"accum": 0.1, "accum_update": 0.2}, {"lr": 0.7, "rho": [0.9, 0.5], "epsilon": 1e-3}, {}),
    "Ftrl": ({"accum": 0.2, "linear": 0.1}, {"lr": 0.3, "l1": [0.0, 0.05], "l2": [0.0, 0.1], "lr_power": [-0.5, -0.7, -0.0]},
             {"multiply_linear_by_lr": (False, True)}),
    "FtrlV2": ({"accum": 0.2, "linear": 0.1}, {"lr": 0.3, "l1": [0.0, 0.05], "l2": 0.1, "l2_shrinkage": [0.0, 0.2], "lr_power": [-0.5, -0.7]},
               {"multiply_linear_by_lr": (False, True)}),
    "ProximalAdagrad": ({"accum": 0.2}, {"lr": 0.3, "l1": [0.0, 0.05], "l2": [0.0, 0.1]}, {}),
    "ProximalGradientDescent": ({}, {"alpha": 0.3, "l1": [0.0, 0.05], "l2": [0.0, 0.1]}, {}),
    "AdagradDA": ({"gradient_accumulator": 0.0, "gradient_squared_accumulator": 0.1},
                  {"lr": 0.3, "l1": [0.0, 0.01], "l2": [0.0, 0.1], "global_step": "step"}, {}),
    "Adam": ({"m": 0.1, "v": 0.2}, {"beta1_power": "beta1", "beta2_power": "beta2", "lr": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3},
             {"use_nesterov": (False, True)}),
    "AdamWithAmsgrad": ({"m": 0.1, "v": 0.2, "vhat": 0.3},
                        {"beta1_power": "beta1", "beta2_power": "beta2", "lr": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}, {}),
    "AdaMax": ({"m": 0.1, "v": 0.2}, {"beta1_power": "beta1", "lr": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}, {}),
    "AddSign": ({"m": 0.1}, {"lr": 0.05, "alpha": 1.0, "sign_decay": 0.9, "beta": 0.8}, {}),
    "PowerSign": ({"m": 0.1}, {"lr": 0.05, "logbase": 1.0, "sign_decay": 0.9, "beta": 0.8}, {}),
}
ROWS, COLUMNS = 11, 3
DTYPES = ("float32", "float64")


def forms(name):
    """(operation, whether by rows, whether of a resource, operands, attributes) of an optimizer."""
    _, operands, attributes = OPTIMIZERS[name]
    numbers = [dict(zip(operands, chosen)) for chosen in itertools.product(*(value if isinstance(value, list) else [value] for value in operands.values()))]
    settings = [dict(zip(attributes, chosen)) for chosen in itertools.product(*attributes.values())]
    for by_rows, resource in itertools.product((False, True), repeat=2):
        operation = ("Resource" if resource else "") + ("Sparse" if by_rows else "") + "Apply" + name
        if hasattr(tf.raw_ops, operation):
            for at, (chosen, setting) in enumerate(itertools.product(numbers, settings)):
                yield f"{'rows' if by_rows else 'dense'}_{'resource' if resource else 'reference'}_{at}", operation, by_rows, resource, chosen, setting


def optimizer_program(name, dtype):
    slots, _, _ = OPTIMIZERS[name]

    def train(make):
        def variable(label, value, resource):
            return tf1.get_variable(label, initializer=tf.cast(value, dtype), trainable=False, use_resource=resource)

        changing = {"step": tf1.get_variable("step", initializer=tf.constant(0, tf.int64), trainable=False, use_resource=True),
                    "beta1": variable("beta1", 0.8, True), "beta2": variable("beta2", 0.9, True)}
        losses, parts = [], []
        for label, operation, by_rows, resource, operands, attributes in forms(name):
            initial = make.numbers.normal(0, 0.5, (ROWS, COLUMNS) if by_rows else (6, COLUMNS))
            weights = variable(label, initial, resource)
            state = {slot: variable(f"{label}/{slot}", tf.fill(weights.shape, value), resource) for slot, value in slots.items()}
            seen = tf.gather(weights, make.words) if by_rows else tf.linalg.matmul(tf.cast(make.x, dtype), weights)
            losses.append(tf.reduce_mean(tf.square(seen - tf.reshape(tf.cast(make.y, dtype), [-1] + [1] * (len(seen.shape) - 1)))))
            parts.append((operation, weights, state, operands, attributes, by_rows, resource, tf1.gradients(losses[-1], weights)[0]))
        updates = []
        for operation, weights, state, operands, attributes, by_rows, resource, gradient in parts:
            def number(value):
                if value == "step":
                    return changing["step"] + 1
                return changing[value].read_value() if isinstance(value, str) else tf.constant(value, dtype)
            arguments = {"var": weights.handle if resource else weights._ref()}
            arguments |= {slot: of.handle if resource else of._ref() for slot, of in state.items()}
            arguments |= {operand: number(value) for operand, value in operands.items()} | attributes
            gradient_name = "delta" if not by_rows and "GradientDescent" in name else "grad"
            if not by_rows:
                arguments |= {gradient_name: tf.convert_to_tensor(gradient)}
            else:
                arguments |= {gradient_name: gradient.values, "indices": gradient.indices}
            updates.append(getattr(tf.raw_ops, operation)(**arguments))
        with tf.control_dependencies([update if isinstance(update, tf.Operation) else update.op for update in updates]):
            updates += [changing["step"].assign_add(1).op, changing["beta1"].assign(changing["beta1"] * tf.cast(0.8, dtype)).op,
                        changing["beta2"].assign(changing["beta2"] * tf.cast(0.9, dtype)).op]
        return tf.cast(tf.add_n(losses), tf.float32), tf.group(*updates)
    return train


def programs():
    for name in OPTIMIZERS:
        for dtype in DTYPES:
            yield f"{name}_{dtype}", optimizer_program(name, getattr(tf, dtype))
