"""Models compiled for GPUs, on an emulated machine: the plan, its kernels and its library calls give TensorFlow's
numbers, whatever the order in which a device runs what is not ordered.

  cuda_emulated.py [NAME…]
"""
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from models import PROCESSES, REPLICAS
from support import DISTC, ROOT, TRANSLATE, Checks, Folder, Model, expect, model_names, must, need_emulated_gpu, need_tools, run
from synchronization import accumulates, apart, outvotes, shards, train

sys.path.insert(0, str(ROOT / "test"))
from random_training import BATCH, Graph, full, make_meta_graph  # noqa: E402

TARGET = "--target=cuda:emulated"
# Models, the stage of sharding, replicas and flags; three replicas leave the last one little or nothing of most variables.
SHARDED = [("mlp-adam", 1, 2, []), ("mlp-adam", 2, 4, []), ("mlp-momentum", 2, 2, []), ("convnet-momentum", 2, 3, []), ("mlp-clip", 2, 3, []), ("mlp-float16", 2, 2, []),
           ("mlp-clip", 2, 2, ["--one-process-per-replica"]), ("mlp-adam", 2, 3, ["--one-process-per-replica"])]

# Compressors and aggregators, which devices have as nodes of the graph, and replicas.
EXCHANGES = [("compressor=fp16", 2), ("compressor=fp16_ef", 4), ("compressor=bf16", 1), ("compressor=bf16_ef", 3), ("compressor=top_k,top_k_ratio=0.1", 4),
             ("compressor=power_sgd,power_sgd_rank=2,chunk_size=2", 2), ("compressor=power_sgd", 3), ("compressor=fp16_ef,aggregator=median", 4),
             ("aggregator=trimmed_mean:1", 6), ("aggregator=krum:1", 6), ("aggregator=multi_krum:1,3", 6), ("aggregator=geometric_median", 3)]


def check_model(name, replicas, *flags):
    """Compiles once; runs it from the checkpoint and from its own initializers, each time in another order."""
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, "AllReduce", TARGET, *flags)
        found = []
        for restore in (True, False) if model.case["own_init"] else (True,):
            with Folder() as outputs:
                environment = dict(os.environ, DRT_EMULATED_SEED=str(2 * replicas + restore))
                must(model.run_command(executable, outputs, restore), env=environment)
                start = "from init.ckpt" if restore else "own initializers"
                found += [f"{start}: {d}" for d in model.differences(outputs, replicas)]
        return found


def check_exchange(key, replicas, *flags):
    """Losses and variables of a CPU's replicas, whose runtime compresses and aggregates."""
    with Folder() as folder:
        losses, final = train(folder, f"AllReduce:{key}", replicas, 12, 20)
        got, variables = train(folder, f"AllReduce:{key}", replicas, 12, 20, compiling=[TARGET, *flags])
    found = [] if np.allclose(got, losses, rtol=1e-4) else [f"losses are {got}, on CPUs {losses}"]
    # A gradient between two numbers of bfloat16 may be rounded to either.
    most = 2.0**-9 if "bf16" in key else 1e-3
    return found if apart(variables, final) < most else found + [f"variables are {apart(variables, final):.1e} apart"]


def check_memory(name):
    """A device without memory, whatever it is for: an error that says so, and libraries end before their context does."""
    model, found = Model(name), []
    with Folder() as folder:
        executable = model.compile(folder / "train", 1, "AllReduce", TARGET)
        for call in range(12):
            environment = dict(os.environ, DRT_EMULATED_FAIL=f"cuMemAlloc:2:{call}")
            done = run(model.run_command(executable, folder), env=environment)
            if done.returncode == 0:
                break
            if done.returncode != 1 or "the device has no memory for" not in done.stderr:
                found.append(f"without memory at its allocation {call}: exit status {done.returncode}\n{done.out}")
        if call < 4:
            found.append(f"only {call} allocations")
    return found


def check_tuning(name):
    """Times are kept, and taken again: no product is chosen anew, and the numbers are TensorFlow's with whatever algorithm."""
    model, found = Model(name), []
    with Folder() as folder:
        executable = model.compile(folder / "train", 2, "AllReduce", TARGET)
        kept = []
        for count in range(2):
            must([*model.run_command(executable, folder), "--tune", folder / "tuned"], env=dict(os.environ, DRT_EMULATED_COUNTS=str(folder / f"counts{count}")))
            found += model.differences(folder, 2)
            kept.append((folder / "tuned").read_text())
        calls = [dict(line.split() for line in (folder / f"counts{count}").read_text().splitlines()) for count in range(2)]
        products = kept[0].splitlines()[1:]
        if not products or any("cuBLASLt" not in line or len(line.split("\t")) != 5 for line in products):
            found.append(f"the file is:\n{kept[0]}")
        if kept[0] != kept[1] or "cublasLtMatmulAlgoGetHeuristic" in calls[1]:
            found.append("the second run has chosen again")
        if "cublasLtMatmulAlgoGetHeuristic" not in calls[0] or int(calls[0]["cublasLtMatmul"]) <= int(calls[1]["cublasLtMatmul"]):
            found.append("the first run has timed nothing")
        # What another chip or library has chosen is not taken; a file of something else is no such file.
        (folder / "tuned").write_text(kept[0].replace("cuBLASLt ", "cuBLASLt 1"))
        must([*model.run_command(executable, folder), "--tune", folder / "tuned"])
        if len((folder / "tuned").read_text().splitlines()) != 2 * len(products) + 1:
            found.append("another library's algorithms were taken, or lost")
        (folder / "tuned").write_text(kept[0] + "x\n")
        found += expect(run([*model.run_command(executable, folder), "--tune", folder / "tuned"]), 2, f"line {len(products) + 2} is not what a run writes there")
        model.compile(folder / "cpu", 2)
        found += expect(run([*model.run_command(folder / "cpu", folder), "--tune", folder / "tuned"]), 2, "--tune times the algorithms of GPUs")
    return found


class ManyRows(Graph):
    """Tables by more indices than a block sorts, some of which most examples name; sums of rows by an optimizer, of equal ones without, and dense."""

    TABLES = {"cold": 500, "warm": 40, "hot": 2}
    BATCH_SIZE, STEPS = 9000, 2

    def build(self):
        self.lr, self.optimizer, zero = self.constant(0.01, name="lr"), "adagrad", self.constant(0, "i32")
        self.axes = self.constant([0, 1], "i32")
        self.momentum = self.constant(0.9, name="momentum")
        x = self.placeholder("x", lambda rows: full((rows, 4), lambda: round(self.numbers.gauss(0, 1), 3)), "f32", BATCH, 4)
        terms, updates = [x], []
        for name, rows in self.TABLES.items():
            ids = self.placeholder(f"{name}_ids", lambda count, rows=rows: full((count,), lambda: int(rows * self.numbers.random() ** 4)), "i32", BATCH)
            for kind in ("distinct", "each", "dense"):
                handle = self.weights(f"{name}_{kind}", rows, 4)
                found = self.f32("gather", (self.read(handle), ids), BATCH, 4)
                terms.append(self.f32("mul", (found, self.constant(0.1)), BATCH, 4))
                updates.append((f"{name}_{kind}", kind, handle, ids, rows))
        error = self.f32("add_n", terms, BATCH, 4)
        self.f32("mul", (self.f32("sum", (self.like("square", error), self.axes)), self.constant(0.0001)), name="loss")
        gradient = self.f32("mul", (error, self.constant(0.0002)), BATCH, 4)
        for name, kind, handle, ids, rows in updates:
            # As TensorFlow makes it: a tensor for each lookup.
            own = self.f32("reshape", (gradient, self.node("shape", (gradient,), ("i32", 2))), BATCH, 4)
            if kind == "distinct":
                distinct, sums = self.sum_rows(ids, own)
                self.run_update(name, "sparse_apply_adagrad", (handle, *self.slots(name, handle), self.lr, sums, distinct))
            elif kind == "each":
                self.run_update(name, "scatter_sub", (handle, ids, own))
            else:
                sums = self.f32("unsorted_segment_sum", (own, ids, self.constant(rows, "i32")), rows, 4)
                self.run_update(name, "apply_gradient_descent", (handle, self.lr, sums))


class LargeSums(Graph):
    """Reductions over so many elements that they are made in parts: of columns, two over the same elements, and of all."""

    BATCH_SIZE, STEPS, WIDTH = 6000, 2, 24

    def build(self):
        self.optimizer, width = "gradient_descent", self.WIDTH
        self.lr = self.constant(0.01, name="lr")
        rows, all_axes = self.constant([0], "i32"), self.constant([0, 1], "i32")
        x = self.placeholder("x", lambda count: full((count, width), lambda: round(self.numbers.gauss(0.2, 1), 3)), "f32", BATCH, width)
        handles = [self.weights(name, width) for name in ("sums", "squares", "maxima", "norms")]
        scaled = self.like("add", x, self.f32("mul", (x, self.read(handles[0])), BATCH, width))
        square = self.like("square", scaled)
        norm = self.f32("sum", (square, all_axes))
        found = [self.f32("sum", (scaled, rows), width), self.f32("sum", (square, rows), width), self.f32("max", (scaled, rows), width),
                 self.f32("mul", (self.read(handles[3]), norm), width)]
        self.f32("mul", (norm, self.constant(0.0001)), name="loss")
        for name, handle, gradient in zip(("sums", "squares", "maxima", "norms"), handles, found):
            gradient = self.f32("mul", (gradient, self.constant(0.0001)), width)
            self.run_update(name, "apply_gradient_descent", (handle, self.lr, gradient))


def check_against_cpu(graph, replicas):
    """As on a CPU, by devices; and the same bits in any order of what is not ordered."""
    with Folder() as folder:
        graph.loss_is_sum = True
        (folder / "graph.mlir").write_text(graph.print())
        text = must([TRANSLATE, "--export-graphdef", "--text", folder / "graph.mlir"]).stdout
        (folder / "graph.meta").write_text(make_meta_graph(graph, text))
        np.savez(folder / "feeds.npz", **{name: np.array(rows, {"f32": np.float32, "i32": np.int32}[element]) for name, (element, rows) in
                                          graph.make_feeds(graph.BATCH_SIZE * graph.STEPS).items()})

        def train(name, replicas, *flags, seeds=(0,)):
            must([DISTC, "compile", folder / "graph.meta", "--strategy", "AllReduce", "--replicas", replicas, "--batch", graph.BATCH_SIZE, "-o",
                  folder / name, *flags])
            for seed in seeds:
                must([folder / name, "--data", folder / "feeds.npz", "--steps", graph.STEPS, "--export-npz", folder / "final.npz"],
                     env=dict(os.environ, DRT_EMULATED_SEED=str(seed)))
                yield dict(np.load(folder / "final.npz"))

        want, = train("cpu", 1)
        one, again = train("one", 1, TARGET, seeds=(1, 2))
        found = [f"{name} has other bits in another run" for name in want if not np.array_equal(one[name], again[name])]
        results = [("one device", one)] + [(f"{count} devices", next(train(f"{count}", count, TARGET))) for count in replicas]
        for devices, got in results:
            found += [f"{name} on {devices}: {np.abs(got[name] - want[name]).max():.1e} apart" for name in want
                      if not np.allclose(got[name], want[name], rtol=1e-4, atol=1e-5)]
        return found


def main():
    need_tools()
    need_emulated_gpu()
    checks = Checks(share=0.4)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in sys.argv[1:] or model_names():
            batch = Model(name).case["batch"]
            # Models of many operations show what their kernels compute; one and two replicas have the same.
            for replicas in REPLICAS[:2] if name.startswith("ops-") else REPLICAS:
                if batch and batch % replicas:
                    continue
                pool.submit(checks.check, f"{name} x{replicas}", check_model, name, replicas)
                if name in PROCESSES and replicas == 2:
                    pool.submit(checks.check, f"{name} --one-process-per-replica", check_model, name, replicas,
                                "--one-process-per-replica")
        if not sys.argv[1:]:
            pool.submit(checks.check, "many rows", check_against_cpu, ManyRows(random.Random("many rows")), (2,))
            pool.submit(checks.check, "large sums", check_against_cpu, LargeSums(random.Random("large sums")), ())
            pool.submit(checks.check, "several batches an update x2", accumulates, 2, [TARGET])
            pool.submit(checks.check, "a device without memory", check_memory, "convnet-momentum")
            pool.submit(checks.check, "products that are timed", check_tuning, "mlp-adam")
            for name, stage, replicas, flags in SHARDED:
                pool.submit(checks.check, f"{name}, sharded in stage {stage} x{replicas} {' '.join(flags)}", shards, name, stage, replicas,
                            [TARGET, *flags])
            for key, replicas in EXCHANGES:
                pool.submit(checks.check, f"{key} x{replicas}", check_exchange, key, replicas)
            pool.submit(checks.check, "top_k, processes", check_exchange, "compressor=top_k,top_k_ratio=0.1", 3, "--one-process-per-replica")
            pool.submit(checks.check, "a median outvotes garbage", outvotes, "median", True, [TARGET])
            pool.submit(checks.check, "several batches of sparse gradients an update x2", accumulates, 2, [TARGET], "embedding-adagrad")
    checks.exit()


if __name__ == "__main__":
    main()
