"""Every model of test/models, compiled for 1, 2 and 4 replicas: its losses and its last variables are TensorFlow's,
from the checkpoint that TensorFlow wrote and from the graph's own initializers.

  models.py [NAME…]
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from support import Checks, Folder, Model, model_names, must, need_tools

REPLICAS = (1, 2, 4)
# Models that are also run with a process a replica, that have memory in common and that have none.
PROCESSES = {"mlp-momentum", "mlp-adam-ref", "mlp-clip", "mlp-sum", "convnet-momentum", "linreg-sgd",
             "embedding-adagrad", "embedding-adam"}
# Models whose steps are also computed by several cores a replica, which divide whatever can be divided.
CORES = {"mlp-momentum", "mlp-clip", "convnet-momentum", "embedding-adam", "ops-scans", "ops-pieces", "ops-rows"}


def trains(model, executable, replicas, restore, environment=None, flags=()):
    with Folder() as folder:
        must([*model.run_command(executable, folder, restore), *flags], env=environment)
        return model.differences(folder, replicas)


def check_model(name, replicas, *flags, environment=None):
    """Compiles once and runs it both ways."""
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, "AllReduce", *flags)
        found = [f"from init.ckpt: {d}" for d in trains(model, executable, replicas, restore=True, environment=environment)]
        if "--one-process-per-replica" in flags:
            found += [f"over the network: {d}" for d in trains(model, executable, replicas, restore=True, flags=["--collectives=network"])]
        if model.case["own_init"]:
            found += [f"own initializers: {d}" for d in trains(model, executable, replicas, restore=False)]
        return found


def check_cores(name, replicas):
    # With delays, whatever can be divided is.
    return check_model(name, replicas, "--cores-per-replica", "3", environment=dict(os.environ, DRT_DELAYS="7"))


def main():
    need_tools()
    names = sys.argv[1:] or model_names()
    checks = Checks(share=0.45)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in names:
            batch = Model(name).case["batch"]
            for replicas in REPLICAS:
                if batch and batch % replicas:
                    continue
                title = f"{name} x{replicas}"
                pool.submit(checks.check, title, check_model, name, replicas)
                if name in PROCESSES and replicas == 2:
                    pool.submit(checks.check, f"{title} --one-process-per-replica", check_model, name, replicas,
                                "--one-process-per-replica")
                if name in CORES and replicas < 4:
                    pool.submit(checks.check, f"{title} --cores-per-replica 3", check_cores, name, replicas)
    checks.exit()


if __name__ == "__main__":
    main()
