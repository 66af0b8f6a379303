"""What the tests share that run distc's exports, and the graphs that they were made of, with stock TensorFlow."""
import importlib.util
import multiprocessing

import numpy as np

from support import DISTC, ROOT, must, need_tensorflow

# Tasks: what a test says of them, and what distc is told.
ONE_TASK = ("2 replicas in one task", ["--replicas", 2])
TWO_WORKERS = ("2 workers", ["--replicas", 2, "--one-process-per-replica"])
TWO_WORKERS_TWO_SERVERS = ("2 workers and 2 servers", ["--replicas", 2, "--ps", 2, "--one-process-per-replica"])
ONE_TASK_TWO_SERVERS = ("2 replicas in one task and 2 servers", ["--replicas", 2, "--ps", 2])
FOUR_IN_ONE_TASK = ("4 replicas in one task", ["--replicas", 4])


def load_runner():
    """tools/run_in_tensorflow.py as a module."""
    spec = importlib.util.spec_from_file_location("run_in_tensorflow", ROOT / "tools" / "run_in_tensorflow.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hosts(folder, count):
    """Tasks on hosts of their own: to distc; TensorFlow runs them here."""
    folder.write_text("nodes:\n" + "".join(f"- {{address: 10.0.0.{i + 1}, chief: {str(i == 0).lower()}, cpus: [0]}}\n" for i in range(count)))
    return ["--resources", folder]


def apart(function, *arguments):
    """A process of its own for what a process cannot do that has had a session: a session starts threads, and tasks are forked from this
    one. What it is forked from has imported TensorFlow, and done nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tensorflow"])
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def make_apart(write, *arguments):
    """Whether `write` has written a graph, in a process of its own."""
    process = apart(write, *arguments)
    process.join()
    return process.exitcode == 0


def train_apart(folder, data, steps):
    """The losses of an export by tools/run_in_tensorflow.py, in a process of its own."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = apart(send_losses, there, folder, data, steps)
    there.close()
    try:
        losses = here.recv()
    except EOFError:
        losses = None
    process.join()
    if losses is None:
        raise AssertionError(f"the export in {folder} does not train: exit status {process.exitcode}")
    return losses


def send_losses(pipe, folder, data, steps):
    pipe.send(load_runner().train(folder, data, steps))


def export(folder, model, strategy, tasks, batch):
    batched = ["--batch", batch] if batch else []
    must([DISTC, "compile", model.graph, "--strategy", strategy, *tasks, *batched, "--emit=graphdef", "-o", folder])


class Original:
    """A model's own graph in a session on one device."""

    def __init__(self, model):
        self.tf1, tf = need_tensorflow()
        self.tf1.disable_eager_execution()
        self.case = model.case
        with np.load(model.feeds) as feeds:
            self.data = {name: feeds[name] for name in feeds.files}
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.saver = self.tf1.train.import_meta_graph(str(model.graph))
            self.variables = {variable.op.name: variable for variable in self.tf1.global_variables()}

    def train(self, prefix, first, count):
        """Steps from a checkpoint on: the losses, and the variables before the last one."""
        element = self.graph.as_graph_element
        losses, variables = [], {}
        with self.tf1.Session(graph=self.graph) as session:  # a new one: random numbers begin anew
            if self.case["init_op"]:
                session.run(element(self.case["init_op"]))  # what no checkpoint has
            self.saver.restore(session, str(prefix))
            for number in range(first, first + count):
                if number == first + count - 1:
                    variables = session.run(self.variables)
                fed = {element(f"{name}:0"): self.rows(element(f"{name}:0"), array, number) for name, array in self.data.items()}
                losses.append(session.run([element(self.case["loss"]), element(self.case["train_op"])], fed)[0])
        return np.array(losses), variables

    def rows(self, tensor, array, number):
        if array.ndim == 0:
            return array
        count = self.case["batch"] or tensor.shape[0]
        return array[np.arange(number * count, (number + 1) * count) % len(array)]


def serve(pipe):
    originals = {}
    while True:
        try:
            model, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            if model.feeds not in originals:
                originals[model.feeds] = Original(model)
            pipe.send((True, originals[model.feeds].train(*arguments)))
        except Exception as error:  # whoever asked tells of it
            pipe.send((False, f"{type(error).__name__}: {error}"))


class Originals:
    """Trains models' own graphs in a process of its own: a session starts threads, and tasks are forked from this process."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there,), daemon=True)
        self.process.start()
        there.close()
        self.wanted = {}

    def train(self, model, prefix, first, count):
        """See Original.train."""
        self.pipe.send((model, prefix, first, count))
        worked, result = self.pipe.recv()
        if not worked:
            raise AssertionError(result)
        return result

    def differences(self, model, prefix, steps, draws=False):
        """What the original graph restores from a checkpoint written after so many steps, and its next step, against
        what it has trained itself: a list of sentences. `draws`: the next step's loss depends on random numbers."""
        key = (model.feeds, steps)
        if key not in self.wanted:
            self.wanted[key] = self.train(model, model.checkpoint, 0, steps + 1)
        (*_, want), expected = self.wanted[key]
        (got,), restored = self.train(model, prefix, steps, 1)
        found = []
        if not draws and not abs(got - want) <= model.case["loss_rtol"] * abs(want):
            found.append(f"the original graph's next loss after restoring is {got}, not {want}")
        for name, value in expected.items():
            found += [f"restored: {problem}" for problem in model.variable_differences(name, restored, value)]
        return found
