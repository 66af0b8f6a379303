"""What --emit=graphdef writes of strategies that do not compute what one device computes, trained by stock TensorFlow: asynchronous
and stale ones, compressors, aggregators.

  graphdef_relaxed_tensorflow.py [MODEL…]
"""
import sys

import numpy as np

from support import Checks, Folder, Model, need_tensorflow, need_tools
from tensorflow_runs import (FOUR_IN_ONE_TASK, ONE_TASK_TWO_SERVERS, TWO_WORKERS, TWO_WORKERS_TWO_SERVERS, export,
                             load_runner)

CONVERGING = [
    ("mlp-adam", "PSLoadBalancing:sync=false", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing:sync=false", ONE_TASK_TWO_SERVERS),
    ("mlp-momentum", "PSLoadBalancing:staleness=2", TWO_WORKERS_TWO_SERVERS),
]
CONVERGING += [("mlp-sgd", f"{name}:aggregator={rule}", tasks) for name, rule, tasks in (
    ("AllReduce", "trimmed_mean:1", FOUR_IN_ONE_TASK), ("AllReduce", "krum:0", FOUR_IN_ONE_TASK),
    ("AllReduce", "multi_krum:0,2", FOUR_IN_ONE_TASK), ("AllReduce", "geometric_median", TWO_WORKERS),
    ("PSLoadBalancing", "median", TWO_WORKERS_TWO_SERVERS))]
CONVERGING += [("mlp-sgd", f"AllReduce:compressor={name}", TWO_WORKERS) for name in ("fp16", "fp16_ef", "bf16", "bf16_ef")]
STEPS_TO_CONVERGE = 30


def one_batch(model):
    with np.load(model.feeds) as feeds:
        return {key: feeds[key][:model.case["batch"]] if feeds[key].ndim else feeds[key] for key in feeds.files}


def converges(runner, model, strategy, tasks):
    with Folder() as folder:
        export(folder / "graphs", model, strategy, tasks, model.case["batch"])
        try:
            losses = runner.train(folder / "graphs", one_batch(model), STEPS_TO_CONVERGE, restore=model.checkpoint, timeout=60)
        except runner.TaskError as error:
            return [error]
    return [] if losses[-1] < 0.9 * losses[0] else [f"the loss of one batch does not fall: {losses}"]


def main():
    need_tensorflow()
    need_tools()
    runner = load_runner()
    checks = Checks()
    for name, strategy, (tasks, flags) in CONVERGING:
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            checks.check(f"{name}, {strategy}, {tasks}", converges, runner, Model(name), strategy, flags)
    checks.exit()


if __name__ == "__main__":
    main()
