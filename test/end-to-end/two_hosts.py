"""A compiled program on two hosts (network namespaces joined by a veth pair), one task in each: its losses and last
variables are TensorFlow's; and when one task is killed in mid-training, the other ends, names it, and leaves no half file.
With a supervisor on each host the run goes on, also where a whole host was lost and came back.

  two_hosts.py [NAME…]
"""
import json
import shutil
import sys
import time

import numpy as np

from hosts import TwoHosts
from support import DISTC, Checks, Folder, Model, must, need_tools, read_log

MODELS = ("linreg-sgd", "mlp-momentum", "mlp-adam-ref")
RESOURCES = "nodes:\n" + "".join(f"  - address: {address}\n    cpus: [0]\n    chief: {'true' if i == 0 else 'false'}\n"
                                 for i, address in enumerate(TwoHosts.addresses))


# How a sum between hosts is asked for, and what the plan says.
ALGORITHMS = (("all_reduce_alg=ring", "by ring"), ("spec=RING", "by ring"), ("all_reduce_alg=doubling", "by doubling"),
              ("all_reduce_alg=halving", "by halving and doubling"), ("all_reduce_alg=auto", "by doubling"))


def compile_for_two(model, folder, strategy="AllReduce", *flags, resources=RESOURCES):
    path = folder / "resources.yml"
    path.write_text(resources)
    batch = ["--batch", model.case["batch"]] if model.case["batch"] else []
    must([DISTC, "compile", model.graph, "--strategy", strategy, "--resources", path, *batch, "-o",
          folder / "train", *flags])
    return folder / "train"


def host_folders(folder):
    folders = [folder / f"host{i}" for i in range(2)]
    for made in folders:
        made.mkdir()
    return folders


def trains(name, strategy="AllReduce"):
    model = Model(name)
    with Folder() as folder, TwoHosts() as hosts:
        executable = compile_for_two(model, folder, strategy)
        own = host_folders(folder)
        tasks = [hosts.start_task(i, model.run_command(executable, own[i])) for i in range(2)]
        statuses = [task.wait(120) for task in tasks]
        if statuses != [0, 0]:
            return [f"exit statuses {statuses}", tasks[0].out, tasks[1].out]
        return model.differences(own[0], replicas=2)


def trains_two_each(name, strategy):
    """Two tasks on each host, which share memory with each other."""
    model = Model(name)
    with Folder() as folder, TwoHosts() as hosts:
        executable = compile_for_two(model, folder, strategy, "--one-process-per-replica", resources=RESOURCES.replace("[0]", "[0, 1]"))
        own = [folder / f"task{i}" for i in range(4)]
        for made in own:
            made.mkdir()
        tasks = [hosts.start_task(i // 2, model.run_command(executable, own[i]), task=i) for i in range(4)]
        statuses = [task.wait(120) for task in tasks]
        if any(statuses):
            return [f"exit statuses {statuses}", *(task.out for task in tasks)]
        return model.differences(own[0], replicas=4)


def by_algorithm(name, key, text):
    model = Model(name)
    with Folder() as folder:
        plan = must([compile_for_two(model, folder, f"AllReduce:{key}"), "--plan"]).out
        if f"mean, {text} " not in plan:
            return [f"the plan does not say '{text}':\n{plan}"]
    return trains(name, f"AllReduce:{key}")


def reported_and_encrypted(name, strategy):
    """TLS between hosts, a report whose clocks are two hosts', and a timeline of both tasks, which the first one has."""
    if not shutil.which("openssl"):
        return []
    model = Model(name)
    with Folder() as folder, TwoHosts() as hosts:
        executable = compile_for_two(model, folder, strategy, "--tls")
        must(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test", "-days", 3,
              "-keyout", folder / "key.pem", "-out", folder / "cert.pem"])
        tls = ["--tls-cert", folder / "cert.pem", "--tls-key", folder / "key.pem", "--tls-ca", folder / "cert.pem"]
        own = host_folders(folder)
        tasks = [hosts.start_task(i, [*model.run_command(executable, own[i]), "--report", own[i] / "report.json", "--timeline", own[i] / "timeline.json", *tls]) for i in range(2)]
        statuses = [task.wait(120) for task in tasks]
        if statuses != [0, 0]:
            return [f"exit statuses {statuses}", tasks[0].out, tasks[1].out]
        report = json.loads((own[0] / "report.json").read_text())
        found = [] if [task["host"] for task in report["tasks"]] == list(TwoHosts.addresses) else [f"the report's hosts are {report['tasks']}"]
        found += [] if all(each["bytes_per_s"] > 0 for each in report["collectives"]) and report["collectives"] else [f"collectives: {report['collectives']}"]
        described = json.loads((own[0] / "timeline.json").read_text())["otherData"]["tasks"]
        if [(task["host"], task["complete"]) for task in described] != [(address, True) for address in TwoHosts.addresses] or not all(task["events"] for task in described):
            found.append(f"the timeline's tasks are {described}")
        found += ["the second task has a timeline of its own"] if (own[1] / "timeline.json").exists() else []
        return found + model.differences(own[0], replicas=2)


def killed(name, victim, strategy="AllReduce"):
    model = Model(name)
    with Folder() as folder, TwoHosts() as hosts:
        executable = compile_for_two(model, folder, strategy)
        own = host_folders(folder)
        checkpoints = folder / "checkpoints"
        flags = ["--data", model.feeds, "--steps", "1000000000", "--checkpoint-dir", checkpoints, "--save-every", "50"]
        tasks = [hosts.start_task(i, [executable, *flags, "--log-json", own[i] / "log.jsonl"]) for i in range(2)]
        deadline = time.monotonic() + 60
        while not (checkpoints / "checkpoint").exists():
            if time.monotonic() > deadline or any(task.popen.poll() is not None for task in tasks):
                return ["no checkpoint was written", tasks[0].out, tasks[1].out]
            time.sleep(0.05)
        tasks[victim].kill()
        other = tasks[1 - victim]
        status = other.wait(10)
        found = [f"exit status {status}, not 1"] if status != 1 else []
        if f"worker:{victim} ({hosts.addresses[victim]}) was lost in step" not in other.out:
            found.append(f"worker:{victim} is not named in:\n{other.out}")
        # Whose task was killed while it saved may leave what it wrote aside; a survivor does not.
        half = [] if victim == 0 else [p.name for p in checkpoints.iterdir() if "temp" in p.name]
        return found + ([f"left behind: {half}"] if half else [])


def host_comes_back(name, victim, strategy="AllReduce"):
    """A host goes down with its supervisor, whose scheduler starts it again; nobody touches the other one."""
    model, steps = Model(name), 1000
    with Folder() as folder, TwoHosts() as hosts:
        executable = compile_for_two(model, folder, strategy)
        own = host_folders(folder)

        def start(host, *flags):
            return hosts.start_task(host, [executable, "--data", model.feeds, "--steps", steps, "--seed", 1, "--export-npz",
                                           own[host] / "final.npz", *flags])

        flags = ["--checkpoint-dir", folder / "checkpoints", "--save-every", 100, "--max-restarts", 5, "--resume", "--log-json"]
        tasks = [start(i, *flags, own[i] / "log.jsonl") for i in range(2)]
        deadline = time.monotonic() + 60
        while not (folder / "checkpoints" / "checkpoint").exists():
            if time.monotonic() > deadline or any(task.popen.poll() is not None for task in tasks):
                return ["no checkpoint was written", tasks[0].out, tasks[1].out]
            time.sleep(0.01)
        tasks[victim].kill()
        out = tasks[victim].out
        tasks[victim] = start(victim, *flags, own[victim] / "log.jsonl")
        statuses = [task.wait(120) for task in tasks]
        out += tasks[0].out + tasks[1].out
        if statuses != [0, 0] or "; restart 1 of 5 from " not in out:
            return [f"exit statuses {statuses}:\n{out}"]
        got = dict(np.load(own[0] / "final.npz"))
        got_steps = [line["step"] for line in read_log(own[0] / "log.jsonl") if "step" in line]
        alone = [start(i) for i in range(2)]
        if any(task.wait(120) for task in alone):
            return [alone[0].out, alone[1].out]
        want = np.load(own[0] / "final.npz")
        found = [f"variable {key} differs" for key in want.files if got[key].tobytes() != want[key].tobytes()]
        return found + ([] if got_steps == list(range(steps)) else [f"{len(got_steps)} lines in the log, not {steps} in order"])


def main():
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        checks.check(f"{name} on two hosts", trains, name)
    for strategy in ("ShardedUpdate", "PSLoadBalancing", "PS:replicas_to_aggregate=4"):
        checks.check(f"two tasks on each of two hosts, {strategy}", trains_two_each, "mlp-adam", strategy)
    for key, text in ALGORITHMS:
        checks.check(f"{key} between two hosts", by_algorithm, "mlp-momentum", key, text)
    for strategy in ("AllReduce", "PSLoadBalancing"):
        checks.check(f"{strategy}, TLS and a report", reported_and_encrypted, "mlp-adam", strategy)
    # A server that counts gradients, and takes one of each replica: as synchronous training.
    for name in sys.argv[1:] or ("mlp-adam-ref", "embedding-adam"):
        checks.check(f"{name} on two hosts, a server that serves on its own", trains, name, "PS:replicas_to_aggregate=2")
    for victim in (1, 0):
        checks.check(f"kill -9 of worker:{victim} in asynchronous training", killed, "mlp-momentum", victim, "PS:sync=false")
        checks.check(f"kill -9 of worker:{victim} in mid-training", killed, "mlp-momentum", victim)
        checks.check(f"the host of worker:{victim} goes down and comes back", host_comes_back, "mlp-momentum", victim)
    checks.check("a host with a server goes down and comes back", host_comes_back, "mlp-adam", 1, "PSLoadBalancing")
    checks.exit()


if __name__ == "__main__":
    main()
