"""Graphs that parse examples or take them from an iterator, fed from the TFRecord files that TensorFlow writes: the losses are TensorFlow's."""
import numpy as np

from support import DISTC, Checks, Folder, expect, must, need_tensorflow, need_tools, read_losses, run

tf1, tf = need_tensorflow()
BATCH, STEPS, EXAMPLES = 8, 10, 37


def make_examples():
    random = np.random.default_rng(2)
    image = random.integers(0, 256, (EXAMPLES, 12)).astype(np.uint8)
    x = random.standard_normal((EXAMPLES, 3)).astype(np.float32)
    return {"image": image, "x": x, "label": random.integers(0, 4, EXAMPLES)}


def serialize(arrays, i):
    features = tf.train.Features(feature={
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[arrays["image"][i].tobytes()])),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=arrays["x"][i])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[arrays["label"][i]])),
        "path": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"not read"]))})
    return tf.train.Example(features=features).SerializeToString()


def write_records(path, records, compression=""):
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for record in records:
            writer.write(record)


def train(image, x, label):
    features = tf1.concat([tf1.cast(image, tf.float32) / 255., x], axis=1)
    w = tf1.get_variable("w", [15, 4], initializer=tf1.zeros_initializer())
    loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=tf1.matmul(features, w)), name="loss")
    return loss, tf1.train.GradientDescentOptimizer(0.5).minimize(loss, name="train")


def parsed(serialized):
    """As users parse a batch of examples."""
    wanted = {"image": tf.io.FixedLenFeature([], tf.string), "x": tf.io.FixedLenFeature([3], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
    examples = tf.io.parse_example(serialized, wanted)
    image = tf1.reshape(tf.io.decode_raw(examples["image"], tf.uint8), [-1, 12])
    return image, examples["x"], examples["label"]


def batches(records):
    return [[records[i % EXAMPLES] for i in range(k * BATCH, (k + 1) * BATCH)] for k in range(STEPS)]


def losses_of(graph, folder, data, *flags):
    must([DISTC, "compile", graph, "--batch", BATCH, "--loss", "loss:0", "--train-op", "train", "--init-op", "init", "-o", folder / "train", *flags])
    must([folder / "train", "--quiet", "--data", data, "--steps", STEPS, "--log-json", folder / "log"])
    return read_losses(folder / "log")


def parsed_examples(replicas):
    with Folder() as folder, tf1.Graph().as_default() as graph:
        arrays = make_examples()
        records = [serialize(arrays, i) for i in range(EXAMPLES)]
        serialized = tf1.placeholder(tf.string, [None], name="serialized")
        loss, step = train(*parsed(serialized))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            want = [session.run([loss, step], {serialized: batch})[0] for batch in batches(records)]
        tf1.train.export_meta_graph(str(folder / "graph.meta"))
        found = []
        write_records(folder / "plain.tfrecord", records)
        write_records(folder / "packed.gz", records, "GZIP")
        write_records(folder / "packed.z", records, "ZLIB")
        np.savez(folder / "data.npz", **arrays)
        for data in ["plain.tfrecord", "packed.gz", "packed.z", "data.npz"]:
            got = losses_of(folder / "graph.meta", folder, folder / data, "--replicas", replicas)
            if not np.allclose(got, want, rtol=1e-5):
                found.append(f"{data}: losses {got}, not {want}")
        return found


def iterator():
    with Folder() as folder, tf1.Graph().as_default():
        arrays = make_examples()
        records = [serialize(arrays, i) for i in range(EXAMPLES)]
        write_records(folder / "plain.tfrecord", records)
        dataset = tf.data.TFRecordDataset(str(folder / "plain.tfrecord")).repeat().batch(BATCH).map(parsed)
        element = tf1.data.make_one_shot_iterator(dataset).get_next()
        loss, step = train(*element)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            want = [session.run([loss, step])[0] for _ in range(STEPS)]
        tf1.train.export_meta_graph(str(folder / "graph.meta"))
        features = [f"--feature=IteratorGetNext{suffix}={name}" for suffix, name in [("", "image"), (":1", "x"), (":2", "label")]]
        must([DISTC, "compile", folder / "graph.meta", "--batch", BATCH, "--loss", "loss:0", "--train-op", "train", "--init-op", "init", "-o", folder / "train"])
        must([folder / "train", "--quiet", "--data", folder / "plain.tfrecord", "--steps", STEPS, "--log-json", folder / "log", *features])
        got = read_losses(folder / "log")
        return [] if np.allclose(got, want, rtol=1e-5) else [f"losses {got}, not {want}"]


def what_is_refused():
    with Folder() as folder, tf1.Graph().as_default():
        serialized = tf1.placeholder(tf.string, [None], name="serialized")
        examples = tf.io.parse_example(serialized, {"x": tf.io.VarLenFeature(tf.float32)})
        w = tf1.get_variable("w", [], initializer=tf1.zeros_initializer())
        loss = tf1.reduce_mean(tf1.square(examples["x"].values - w), name="loss")
        tf1.train.GradientDescentOptimizer(0.5).minimize(loss, name="train")
        tf1.global_variables_initializer()
        tf1.train.export_meta_graph(str(folder / "graph.meta"))
        return expect(run([DISTC, "compile", folder / "graph.meta", "--batch", BATCH, "--loss", "loss:0", "--train-op", "train", "--init-op", "init", "-o", folder / "train"]),
                      1, "ParseExample")


def main():
    need_tools()
    checks = Checks()
    checks.check("parsed examples, one replica", parsed_examples, 1)
    checks.check("parsed examples, two replicas", parsed_examples, 2)
    checks.check("an iterator", iterator)
    checks.check("what is refused", what_is_refused)
    checks.exit()


if __name__ == "__main__":
    main()
