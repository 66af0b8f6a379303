"""Models with split variables: their losses and their last variables, whole again, are TensorFlow's, from its checkpoint and
from the graph's own initializers.

  shards.py [NAME…]
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from models import trains
from support import Checks, Folder, Model, must, need_tools

REPLICAS = (1, 2, 4)
STRATEGIES = ("PartitionedAR", "RandomAxisPartitionAR:seed=3")
# Slots, reference variables, a gradient that is clipped by a global norm, weight decay, convolutions, calls.
MODELS = ("mlp-adam", "mlp-momentum-ref", "mlp-clip", "mlp-l2", "mlp-rmsprop-centered-ref", "mlp-float64",
          "convnet-momentum", "functions")


def check_model(name, strategy, replicas, *flags):
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, strategy, *flags)
        found = [] if " of (" in must([executable, "--plan"]).out else ["the plan lists no shards"]
        found += [f"from init.ckpt: {d}" for d in trains(model, executable, replicas, restore=True)]
        if model.case["own_init"]:
            found += [f"own initializers: {d}" for d in trains(model, executable, replicas, restore=False)]
        return found


def main():
    need_tools()
    checks = Checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in sys.argv[1:] or MODELS:
            for strategy in STRATEGIES:
                for replicas in REPLICAS:
                    if Model(name).case["batch"] % replicas == 0:
                        pool.submit(checks.check, f"{name} {strategy} x{replicas}", check_model, name, strategy, replicas)
        pool.submit(checks.check, "a process a replica", check_model, "mlp-adam", STRATEGIES[1], 2, "--one-process-per-replica")
    checks.exit()


if __name__ == "__main__":
    main()
