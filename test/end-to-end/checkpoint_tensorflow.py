"""Checkpoints cross to TensorFlow and back, bit for bit: whole, in slices, and in several data files."""
import numpy as np

import support

TOOL = support.BIN / "checkpoint-tool"  # distc checkpoint, and `slice`
support.need_tools(TOOL)
v1, tf = support.need_tensorflow()


def arrays():
    """Every type that both sides have, shapes with zero to four axes, bits that are no number."""
    random = np.random.default_rng(7)
    made = {
        "hidden1/kernel": random.standard_normal((300, 70)).astype(np.float32),
        "hidden1/kernel/Momentum": random.standard_normal((300, 70)).astype(np.float32),
        "conv/filter": random.standard_normal((3, 3, 5, 70)).astype(np.float32),
        "cube": random.standard_normal((2, 130, 3)),
        "scalar": np.float32(2.5),
        "global_step": np.int64(1 << 40),
        "nothing": np.zeros((0, 4), np.float32),
        "half": random.standard_normal(33).astype(np.float16),
        "flags": random.integers(0, 2, 17).astype(bool),
        "odd": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32),
    }
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.int64):
        made[f"integer/{np.dtype(kind).name}"] = random.integers(0, 100, (9, 2)).astype(kind)
    return made


def check_same(what, got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, f"{what}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    assert got.tobytes() == want.tobytes(), f"{what}: other bits"


def check_tensorflow_reads(prefix, want):
    reader = tf.train.load_checkpoint(str(prefix))
    assert set(reader.get_variable_to_shape_map()) == set(want), prefix
    for name, value in want.items():
        check_same(f"{prefix}: {name}", reader.get_tensor(name), value)
    with tf.Graph().as_default(), v1.Session() as session:  # and into the variables of a graph
        for name, value in want.items():
            v1.get_variable(name, value.shape, tf.as_dtype(value.dtype))
        v1.train.Saver().restore(session, str(prefix))
        for variable in v1.global_variables():
            check_same(f"{prefix}: restored {variable.op.name}", session.run(variable), want[variable.op.name])


def check_tensorflow_reads_slices(prefix, want):
    """Into a graph whose own partitions are others than those that were saved."""
    for axis in (0, 1):
        with tf.Graph().as_default(), v1.Session() as session:
            for name in ("hidden1/kernel", "cube"):
                v1.get_variable(name, want[name].shape, tf.as_dtype(want[name].dtype),
                                partitioner=v1.fixed_size_partitioner(4 if axis == 0 else 3, axis=axis)
                                if want[name].shape[axis] >= 4 else None)
            v1.train.Saver().restore(session, str(prefix))
            for name in ("hidden1/kernel", "cube"):
                parts = [v for v in v1.global_variables() if v.op.name.split("/part_")[0] == name]
                value = np.concatenate(session.run(parts), axis=axis)
                check_same(f"{prefix}: {name} in {len(parts)} parts along axis {axis}", value, want[name])


def check_we_read(prefix, want, folder):
    support.must([TOOL, "list", prefix])
    out = folder / (prefix.name + ".npz")
    support.must([TOOL, "export", prefix, out])
    got = np.load(out)
    assert set(got.files) == set(want), (prefix, got.files)
    for name, value in want.items():
        check_same(f"{out}: {name}", got[name], value)


def tensorflow_saves(prefix, want, partitioner=None):
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in want.items():
            def initial(shape, dtype=None, partition_info=None, value=value):
                return tf.slice(value, partition_info.var_offset, shape) if partition_info else tf.constant(value)
            v1.get_variable(name, value.shape, tf.as_dtype(value.dtype), initializer=initial,
                            partitioner=partitioner if value.ndim > 1 and value.shape[0] > 2 else None)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(prefix), write_meta_graph=False)


def tensorflow_saves_two_files(prefix, want):
    names = sorted(want)
    halves = [names[::2], names[1::2]]
    with tf.Graph().as_default(), v1.Session() as session:
        parts = [f"{prefix}_part{i}" for i in range(2)]
        saves = [tf.raw_ops.SaveV2(prefix=part, tensor_names=half, shape_and_slices=[""] * len(half),
                                   tensors=[tf.constant(want[n]) for n in half]) for part, half in zip(parts, halves)]
        session.run(saves)
        session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(prefix)))


with support.Folder() as folder:
    want = arrays()
    np.savez(folder / "in.npz", **want)
    np.savez_compressed(folder / "packed.npz", **want)

    support.must([TOOL, "import", folder / "in.npz", folder / "whole"])
    check_tensorflow_reads(folder / "whole", want)
    check_we_read(folder / "whole", want, folder)
    support.must([TOOL, "import", folder / "packed.npz", folder / "packed"])
    support.must([TOOL, "diff", folder / "whole", folder / "packed"])

    whole = dict(want)
    del want["half"]  # which TensorFlow cannot put together from slices
    np.savez(folder / "in.npz", **want)
    support.must([TOOL, "slice", folder / "in.npz", folder / "sliced"])
    check_tensorflow_reads(folder / "sliced", want)
    check_tensorflow_reads_slices(folder / "sliced", want)
    check_tensorflow_reads_slices(folder / "whole", want)
    check_we_read(folder / "sliced", want, folder)

    tensorflow_saves(folder / "theirs", whole)
    check_we_read(folder / "theirs", whole, folder)
    for axis in (0, 1):
        prefix = folder / f"theirs-sliced-{axis}"
        tensorflow_saves(prefix, want, v1.fixed_size_partitioner(2, axis=axis))
        check_we_read(prefix, want, folder)
    tensorflow_saves_two_files(folder / "two", want)
    check_we_read(folder / "two", want, folder)
    assert (folder / "two.data-00001-of-00002").exists()

    support.must([TOOL, "export", folder / "whole", folder / "out.safetensors"])
    support.must([TOOL, "import", folder / "out.safetensors", folder / "back"])
    support.must([TOOL, "diff", folder / "whole", folder / "back"])
print("ok")
