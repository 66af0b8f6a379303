#!/usr/bin/env python3
"""Random small training graphs through random strategies: what must hold after distribution whatever they are.

Each pass's result is verified by distc-opt itself; dist-verify-collectives is part of the pipeline. Besides, every update stands
once in each program that runs it, and a wrong strategy ends with an error and never otherwise. All follows from --seed.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from random_training import Graph, mutate, random_strategy  # noqa: E402


def distribute(path, options):
    command = ["distc-opt", path, f"--distribute={options}", "--mlir-print-debuginfo", "--mlir-print-local-scope"]
    return command, subprocess.run(command, capture_output=True, text=True)


def fail(graph, command, result, why):
    sys.exit(f"{why}\n{' '.join(command)}\n{result.stderr[-2000:]}\n{graph}")


def check_updates(graph, command, result):
    programs = re.split(r"(?=  dfg\.graph)", result.stdout)[1:]
    for update in graph.updates:
        counts = {}
        for program in programs:
            role = re.search(r'dist\.role = "(\w+)"', program.split("\n")[0])
            found = len(re.findall(r"(?<!dist)[^\n]*dfg\.(?:sparse_apply|apply|assign|scatter)[^\n]*loc\(\"" + re.escape(update) + r"\"\)", program))
            counts[role.group(1) if role else "all"] = counts.get(role.group(1) if role else "all", 0) + found
        # A server's is nobody else's; otherwise all that have replicas run it.
        if counts not in ({"all": 1}, {"chief": 0, "worker": 0, "server": 1}, {"chief": 1, "worker": 1, "server": 0}, {"chief": 1, "worker": 1}):
            fail(graph.print(), command, result, f"update '{update}' stands {counts} times")


STRATEGIES = ["AllReduce", "AllReduce:chunk_size=1", "AllReduce:accumulate_steps=3", "ShardedUpdate:stage=1", "ShardedUpdate:stage=2",
              "PS", "PS:sync=false", "PS:staleness=2", "PS:local_proxy_variable=true", "PSLoadBalancing", "PSLoadBalancing:sync=false",
              "Parallax", "PartitionedPS", "PartitionedPS:sync=false", "UnevenPartitionedPS", "PartitionedAR", "RandomAxisPartitionAR:seed=3"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    arguments = parser.parse_args()
    accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.count):
            rng = random.Random(f"{arguments.seed} {number}")
            graph = Graph(rng)
            path = os.path.join(folder, "graph.mlir")
            with open(path, "w") as file:
                file.write(graph.print())
            strategy = rng.choice(STRATEGIES)
            options = f"strategy={strategy} replicas={rng.randint(1, 5)} ps={rng.randint(1, 3) if 'P' in strategy else 0}"
            if rng.random() < 0.3:
                options += " one-process-per-replica=true"
            command, result = distribute(path, options)
            if result.returncode != 0:
                fail(graph.print(), command, result, f"graph {number} of seed {arguments.seed} is refused")
            if "/part_" not in result.stdout:  # shards have updates of their own
                check_updates(graph, command, result)
            if strategy in ("AllReduce", "AllReduce:chunk_size=1"):  # and all replicas in one graph
                command, result = distribute(path, options + " unrolled=true")
                if result.returncode != 0 or re.search(r"dist\.all_", result.stdout):
                    fail(graph.print(), command, result, f"graph {number} of seed {arguments.seed} is not unrolled")
                check_updates(graph, command, result)
            right = random_strategy(rng, graph, servers=2)
            for text in (right, mutate(rng, right)):
                with open(os.path.join(folder, "strategy.pbtxt"), "w") as file:
                    file.write(text)
                if text is right and "sync: false" not in text:  # as executables have them
                    command, result = distribute(path, f"strategy={folder}/strategy.pbtxt replicas=2 ps=2 colocate-servers=true "
                                                 "one-process-per-replica=true")
                    if result.returncode != 0 or re.search(r"dist\.(push|pull|take|tokens)\b|\"ps\"", result.stdout):
                        fail(graph.print(), command, result, f"servers do not share workers' processes:\n{text}")
                command, result = distribute(path, f"strategy={folder}/strategy.pbtxt replicas=2 ps=2")
                wrong = result.returncode == 1 and "error:" in result.stderr
                if result.returncode != 0 and (text is right or not wrong):
                    fail(graph.print(), command, result, f"a strategy ends with {result.returncode}:\n{text}")
                accepted += result.returncode == 0
                if result.returncode == 0 and "/part_" not in result.stdout:
                    check_updates(graph, command, result)
    print(f"{arguments.count} graphs, {accepted} of {2 * arguments.count} random strategies accepted")


main()
