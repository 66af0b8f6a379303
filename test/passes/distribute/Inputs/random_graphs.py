#!/usr/bin/env python3
"""Random small training graphs through random strategies: what must hold after distribution whatever they are.

Each pass's result is verified by distc-opt itself; dist-verify-collectives is part of the pipeline. Besides, every update stands
once in each program that runs it, and a wrong strategy ends with an error and never otherwise. All follows from --seed.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile


class Graph:
    """A model of some dense layers and perhaps a table of rows, with backward written out."""

    def __init__(self, rng):
        self.rng = rng
        self.variables, self.body, self.updates, self.inits, self.counter = [], [], [], [], 0
        self.trained = []
        self.optimizer = rng.choice(["sgd", "momentum", "adam"])
        self.build()

    def emit(self, text, name=None):
        name = name or f"n{self.counter}"
        self.counter += 1
        value = "%" + re.sub(r"\W", "_", name)
        self.body.append(f"  {value} = {text} loc(\"{name}\")")
        return value

    def run(self, text, name):
        self.body.append(f"  {text} loc(\"{name}\")")

    def constant(self, value, type_, name=None):
        return self.emit(f"dfg.const dense<{value}> : {type_} : {type_}", name)

    def variable(self, name, type_, trained, initial="0.5"):
        self.variables.append(f"dfg.variable @{name} : {type_}" + (" {trainable}" if trained else ""))
        handle = self.emit(f"dfg.var_handle @{name} : !dfg.ref<{type_}>", name)
        value = self.constant(initial, type_)
        self.run(f"dfg.assign {handle}, {value} : (!dfg.ref<{type_}>, {type_}) -> ()", f"{name}/Assign")
        self.inits.append(f"{name}/Assign")
        if trained:
            self.trained.append(name)
        return handle

    def read(self, handle, type_):
        return self.emit(f"dfg.read_variable {handle} : (!dfg.ref<{type_}>) -> {type_}")

    def update(self, name, handle, type_, gradient, slots):
        ref, f32 = f"!dfg.ref<{type_}>", "tensor<f32>"
        if self.optimizer == "sgd":
            text = f"dfg.apply_gradient_descent {handle}, {self.lr}, {gradient} : ({ref}, {f32}, {type_}) -> ()"
        elif self.optimizer == "momentum":
            text = f"dfg.apply_momentum {handle}, {slots[0]}, {self.lr}, {gradient}, {self.lr} : ({ref}, {ref}, {f32}, {type_}, {f32}) -> ()"
        else:
            text = (f"dfg.apply_adam {handle}, {slots[0]}, {slots[1]}, {self.power}, {self.power}, {self.lr}, {self.lr}, {self.lr}, {self.lr}, {gradient}"
                    f" : ({ref}, {ref}, {ref}, {', '.join([f32] * 6)}, {type_}) -> ()")
        self.run(text, f"{name}/update")
        self.updates.append(f"{name}/update")

    def build(self):
        rng = self.rng
        self.lr = self.emit("dfg.placeholder : () -> tensor<f32>", "lr") if rng.random() < 0.5 else self.constant("0.1", "tensor<f32>", "lr")
        axis = self.constant("0", "tensor<1xi32>", "axis")
        width = rng.randint(1, 6)
        size = self.emit("dfg.placeholder : () -> tensor<?x%dxf32>" % width, "x")
        layers, h, table = [], size, None
        if rng.random() < 0.5:
            ids = self.emit("dfg.placeholder : () -> tensor<?xi32>", "ids")
            ttype = f"tensor<{rng.randint(2, 9)}x{width}xf32>"
            handle = self.variable("table", ttype, True)
            rows = self.emit(f"dfg.resource_gather {handle}, {ids} : (!dfg.ref<{ttype}>, tensor<?xi32>) -> tensor<?x{width}xf32>")
            h = self.emit(f"dfg.mul {h}, {rows} : (tensor<?x{width}xf32>, tensor<?x{width}xf32>) -> tensor<?x{width}xf32>")
            table = (handle, ttype, ids)
        first_width = width
        for number in range(rng.randint(1, 4)):
            out = rng.randint(1, 6)
            wtype, btype = f"tensor<{width}x{out}xf32>", f"tensor<{out}xf32>"
            hw, hb = self.variable(f"w{number}", wtype, True), self.variable(f"b{number}", btype, True)
            w, b = self.read(hw, wtype), self.read(hb, btype)
            y = self.emit(f"dfg.mat_mul {h}, {w} : (tensor<?x{width}xf32>, {wtype}) -> tensor<?x{out}xf32>")
            y = self.emit(f"dfg.add_v2 {y}, {b} : (tensor<?x{out}xf32>, {btype}) -> tensor<?x{out}xf32>")
            layers.append((number, hw, hb, w, wtype, btype, h, width, out))
            h, width = y, out
        if rng.random() < 0.7:  # a mean loss
            count = self.emit(f"dfg.size {h} : (tensor<?x{width}xf32>) -> tensor<i32>")
            scale = self.emit(f"dfg.cast {count} : (tensor<i32>) -> tensor<f32>")
            e = self.emit(f"dfg.real_div {h}, {scale} : (tensor<?x{width}xf32>, tensor<f32>) -> tensor<?x{width}xf32>")
        else:
            e = h
        if self.optimizer == "adam":
            power = self.variable("beta_power", "tensor<f32>", False)
            self.power = self.read(power, "tensor<f32>")
        gradients = []
        for number, hw, hb, w, wtype, btype, below, inner, out in reversed(layers):
            gw = self.emit(f"dfg.mat_mul {below}, {e} {{transpose_a = true}} : (tensor<?x{inner}xf32>, tensor<?x{out}xf32>) -> {wtype}")
            gb = self.emit(f"dfg.sum {e}, {axis} : (tensor<?x{out}xf32>, tensor<1xi32>) -> {btype}")
            if rng.random() < 0.3:  # weight decay
                gw = self.emit(f"dfg.add_v2 {gw}, {w} : ({wtype}, {wtype}) -> {wtype}")
            gradients += [(f"w{number}", hw, wtype, gw), (f"b{number}", hb, btype, gb)]
            e = self.emit(f"dfg.mat_mul {e}, {w} {{transpose_b = true}} : (tensor<?x{out}xf32>, {wtype}) -> tensor<?x{inner}xf32>")
        if rng.random() < 0.4:  # clipping by a norm over some
            chosen = rng.sample(range(len(gradients)), rng.randint(1, len(gradients)))
            norms = [self.emit(f"dfg.l2_loss {gradients[i][3]} : ({gradients[i][2]}) -> tensor<f32>") for i in chosen]
            norm = self.emit(f"dfg.add_n {', '.join(norms)} : ({', '.join(['tensor<f32>'] * len(norms))}) -> tensor<f32>")
            for i in chosen:
                name, handle, type_, g = gradients[i]
                gradients[i] = (name, handle, type_, self.emit(f"dfg.real_div {g}, {norm} : ({type_}, tensor<f32>) -> {type_}"))
        for name, handle, type_, g in gradients:
            count = {"sgd": 0, "momentum": 1, "adam": 2}[self.optimizer]
            self.update(name, handle, type_, g, [self.variable(f"{name}_slot{k}", type_, False) for k in range(count)])
        if table:
            handle, ttype, ids = table
            rtype = f"tensor<?x{first_width}xf32>"
            step = self.emit(f"dfg.mul {e}, {self.lr} : ({rtype}, tensor<f32>) -> {rtype}")
            self.run(f"dfg.scatter_sub {handle}, {ids}, {step} : (!dfg.ref<{ttype}>, tensor<?xi32>, {rtype}) -> ()", "table/update")
            self.updates.append("table/update")
        if self.optimizer == "adam":
            self.run(f"dfg.assign_sub {power}, {self.lr} {{control = [{', '.join(chr(34) + u + chr(34) for u in self.updates)}]}}"
                     " : (!dfg.ref<tensor<f32>>, tensor<f32>) -> ()", "beta_power/update")
            self.updates.append("beta_power/update")

    def print(self):
        group = lambda names: ", ".join(f'"{name}"' for name in names)
        return "\n".join(self.variables + ['dfg.graph attributes {init_op = "init", train_op = "train"} {'] + self.body + [
            f"  dfg.group {{control = [{group(self.inits)}]}} : () -> () loc(\"init\")",
            f"  dfg.group {{control = [{group(self.updates)}]}} : () -> () loc(\"train\")", "}", ""])


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
            found = len(re.findall(r"(?<!dist)[^\n]*dfg\.(?:apply|assign|scatter)[^\n]*loc\(\"" + re.escape(update) + r"\"\)", program))
            counts[role.group(1) if role else "all"] = counts.get(role.group(1) if role else "all", 0) + found
        # A server's is nobody else's; otherwise all that have replicas run it.
        if counts not in ({"all": 1}, {"chief": 0, "worker": 0, "server": 1}, {"chief": 1, "worker": 1, "server": 0}, {"chief": 1, "worker": 1}):
            fail(graph.print(), command, result, f"update '{update}' stands {counts} times")


STRATEGIES = ["AllReduce", "AllReduce:chunk_size=1", "AllReduce:accumulate_steps=3", "ShardedUpdate:stage=1", "ShardedUpdate:stage=2",
              "PS", "PS:sync=false", "PS:staleness=2", "PS:local_proxy_variable=true", "PSLoadBalancing", "PSLoadBalancing:sync=false",
              "Parallax", "PartitionedPS", "PartitionedPS:sync=false", "UnevenPartitionedPS", "PartitionedAR", "RandomAxisPartitionAR:seed=3"]


def random_strategy(rng, graph):
    """A strategy file, wrong somewhere or nowhere."""
    entries, wrong = [], rng.choice([0.0, 0.0, 0.1, 0.5])
    for name in graph.trained:
        if rng.random() < wrong / 4:
            name = rng.choice([name + "_", "", "w0"])
        number = rng.choice([-1, 7, 1000000]) if rng.random() < wrong else 0
        entries.append(rng.choice([
            f"AllReduceSynchronizer {{ group: {number} sharded_stage: {rng.choice([0, 1, 2] + [3] * (wrong > 0))} }}",
            f"AllReduceSynchronizer {{ aggregator {{ kind: MEDIAN f: {number} }} }}",
            f"AllReduceSynchronizer {{ compressor: PowerSGDCompressor power_sgd_rank: {number + 1} }}",
            f"PSSynchronizer {{ reduction_destination: \"{rng.choice(['ps:0', 'ps:1'] + ['ps:9', '', 'nowhere:CPU:0'] * (wrong > 0))}\" sync: {rng.choice(['true', 'false'])} staleness: {number} }}",
            ] + [""] * (wrong > 0.4)))
        partitioner = rng.choice(["2,1", "1,2", "2", "0", "1,1", "x", "9,9"]) if rng.random() < wrong else ""
        entries[-1] = f"node_config {{ var_name: \"{name}\" {entries[-1]} {f'partitioner: {chr(34)}{partitioner}{chr(34)}' if partitioner else ''} }}"
    rng.random() < wrong / 2 and entries.append(rng.choice(["accumulate_steps: -1", "replicas_to_aggregate: 1", "nonsense", "graph_config { replicas: \"a\" }"]))
    return "\n".join(entries)


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
            with open(os.path.join(folder, "strategy.pbtxt"), "w") as file:
                file.write(random_strategy(rng, graph))
            command, result = distribute(path, f"strategy={folder}/strategy.pbtxt replicas=2 ps=2")
            if result.returncode not in (0, 1) or (result.returncode == 1 and "error:" not in result.stderr):
                fail(graph.print(), command, result, f"a strategy ends with {result.returncode}:\n{random_strategy(rng, graph)}")
            if result.returncode == 0:
                accepted += 1
                if "/part_" not in result.stdout:
                    check_updates(graph, command, result)
    print(f"{arguments.count} graphs, {accepted} of {arguments.count} random strategies accepted")


main()
