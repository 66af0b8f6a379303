"""Graphs of TensorFlow: losses and variables are those of a session."""
import pytest

tf = pytest.importorskip("tensorflow")

import numpy as np

import distc
import distc.tensorflow

V1 = tf.compat.v1
BATCH, STEPS = 8, 6
RANDOM = np.random.RandomState(0)
DATA = {"x": RANDOM.randn(3 * BATCH, 5).astype(np.float32), "y": RANDOM.randint(0, 4, 3 * BATCH).astype(np.int32)}


class Model:
    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            V1.set_random_seed(1)
            x, y = V1.placeholder(tf.float32, [None, 5], "x"), V1.placeholder(tf.int32, [None], "y")
            hidden = tf.nn.relu(x @ V1.get_variable("w", [5, 16]) + V1.get_variable("b", [16], initializer=V1.zeros_initializer()))
            self.logits = hidden @ V1.get_variable("v", [16, 4])
            self.loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=self.logits))
            self.right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(self.logits, 1, tf.int32), y), tf.float32))
            self.train_op = V1.train.AdamOptimizer(0.05).minimize(self.loss)
            self.init_op = V1.global_variables_initializer()

    def train(self, session):
        """The losses that TensorFlow computes from here on."""
        return [session.run([self.loss, self.train_op], {f"{name}:0": array[i % 3 * BATCH:][:BATCH] for name, array in DATA.items()})[0]
                for i in range(STEPS)]


@pytest.mark.parametrize("strategy,replicas,processes", [("AllReduce", 1, False), ("PartitionedPS", 2, False), ("ShardedUpdate", 4, True)])
def test_training_is_tensorflows(tmp_path, strategy, replicas, processes):
    model = Model()
    with V1.Session(graph=model.graph) as session:
        session.run(model.init_op)
        step = distc.tensorflow.export(model.graph, tmp_path / "graph.meta", loss=model.loss, train_op=model.train_op, init_op=model.init_op,
                                       fetches={"accuracy": model.right, "logits": model.logits}, session=session)
        losses = model.train(session)
        executable = distc.compile(step, strategy=strategy, replicas=replicas, processes=processes, batch=BATCH)
        result = executable.train(DATA, STEPS)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
        assert result.fetches["accuracy"].shape == (STEPS,) and set(result.fetches) == {"accuracy"}
        evaluated = executable.evaluate(DATA, result.state)
        feeds = {f"{name}:0": array for name, array in DATA.items()}
        np.testing.assert_allclose(evaluated["logits"], session.run(model.logits, feeds), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose([evaluated["accuracy"], evaluated["loss"]], session.run([model.right, model.loss], feeds), rtol=1e-5)
        # A session takes what came of it, and both go on alike.
        session.run(model.init_op)
        distc.tensorflow.load_state(model.graph, result.state, session)
        np.testing.assert_allclose(executable.train(DATA, STEPS, result.state).losses, model.train(session), rtol=1e-5)


@pytest.mark.parametrize("named", [True, False])
def test_without_a_session_the_graph_initializes(tmp_path, named):
    model = Model()
    step = distc.tensorflow.export(model.graph, tmp_path / "graph.meta", loss=model.loss, train_op=model.train_op,
                                   init_op=model.init_op if named else None)
    assert [leaf.name for leaf in step.batch] == ["x", "y"] and step.initial is None
    with V1.Session(graph=model.graph) as session:
        session.run(model.init_op)
        losses = model.train(session)
    np.testing.assert_allclose(distc.compile(step, batch=BATCH).train(DATA, STEPS).losses, losses, rtol=1e-5)


def test_what_is_of_another_graph_is_refused(tmp_path):
    model, other = Model(), Model()
    with pytest.raises(ValueError, match="'loss' is no tensor"):
        distc.tensorflow.export(model.graph, tmp_path / "graph.meta", loss=other.loss, train_op=model.train_op)
    with pytest.raises(ValueError, match="another node with the name of the fetch 'w'"):
        distc.tensorflow.export(model.graph, tmp_path / "graph.meta", loss=model.loss, train_op=model.train_op, fetches={"w": model.right})
    with pytest.raises(ValueError, match="expected arrays by name: x, y; got x"):
        step = distc.tensorflow.export(model.graph, tmp_path / "graph.meta", loss=model.loss, train_op=model.train_op)
        distc.compile(step, batch=BATCH).train({"x": DATA["x"]}, 1)
