"""What executables read: arrays and TFRecords, in files and in parts, in order and shuffled, resumed, larger than memory."""
import gzip
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np

from support import DISTC, HAS_EMULATED_GPU, ROOT, Checks, Folder, expect, is_sanitized, load_script, must, need_tools, read_log, read_losses, run, saved_steps

CONVERT = ROOT / "tools" / "convert_data.py"
GRAPH = ROOT / "test" / "tools" / "distc" / "Inputs" / "summaries.pbtxt"
WRONG_COMMAND = 2
BATCH, EXAMPLES = 16, 92  # no multiple: batches reach over the end of an epoch


convert = load_script("convert_data", CONVERT)


def examples(count=EXAMPLES):
    random = np.random.default_rng(0)
    x = random.standard_normal((count, 4)).astype(np.float32)
    return {"x": x, "y": x @ np.array([1, 2, -1, 0.5], np.float32) + np.arange(count, dtype=np.float32) / count}


def write_records(path, arrays):
    out = convert.RecordFile(path)
    out.write(arrays)
    out.close()


def write_formats(folder):
    """The same examples as each format: what --data is given."""
    arrays = examples()
    np.savez(folder / "data.npz", **arrays)
    np.savez_compressed(folder / "packed.npz", **arrays)
    (folder / "npy").mkdir()
    for name, array in arrays.items():
        np.save(folder / "npy" / f"{name}.npy", array)
    write_records(folder / "data.tfrecord", arrays)
    write_records(folder / "data.tfrecord.gz", arrays)
    for k, (begin, end) in enumerate([(0, 7), (7, 40), (40, EXAMPLES)]):
        part = {name: array[begin:end] for name, array in arrays.items()}
        np.savez(folder / f"part-{k}.npz", **part)
        write_records(folder / f"part-{k}.tfrecord{'.gz' if k == 1 else ''}", part)
    return ["data.npz", "packed.npz", "npy", "data.tfrecord", "data.tfrecord.gz", "part-*.npz", "part-*.tfrecord*"]


def compiled(folder, *flags, name="train", batch=BATCH):
    must([DISTC, "compile", GRAPH, "--batch", batch, "--fetch", "error:0", "-o", folder / name, *flags])
    return folder / name


def losses(program, data, steps, *flags):
    log = program.with_suffix(".jsonl")
    must([program, "--quiet", "--data", data, "--steps", steps, "--log-json", log, *flags])
    return read_losses(log)


def trains_the_same_from_every_format():
    with Folder() as folder:
        formats, train, found = write_formats(folder), compiled(folder), []
        for flags in [[], ["--shuffle-window", 20, "--seed", 4], ["--last-batch", "drop"]]:
            want = losses(train, folder / "data.npz", 20, *flags)
            for name in formats[1:]:
                if losses(train, folder / name, 20, *flags) != want:
                    found.append(f"{name} {flags}: other losses than data.npz")
        if losses(train, folder / "data.npz", 20) == losses(train, folder / "data.npz", 20, "--last-batch", "drop"):
            found.append("--last-batch drop changes nothing")
        want = must([train, "--eval", "--data", folder / "data.npz", "--fetch", "error:0", "--quiet"]).stdout
        for name in formats[1:]:
            if (got := must([train, "--eval", "--data", folder / name, "--fetch", "error:0", "--quiet"]).stdout) != want:
                found.append(f"--eval on {name} gives {got}, not {want}")
        shuffled = losses(train, folder / "data.tfrecord", 20, "--shuffle", "--seed", 4)
        if shuffled != losses(train, folder / "data.npz", 20, "--shuffle", "--seed", 4):
            found.append("--shuffle orders records otherwise than arrays")
        for epochs, steps in [(1, 6), (2, 12)]:
            log = folder / "epochs.jsonl"
            must([train, "--quiet", "--data", folder / "data.tfrecord.gz", "--epochs", epochs, "--log-json", log])
            if len(read_losses(log)) != steps:
                found.append(f"{epochs} epochs are {len(read_losses(log))} steps, not {steps}")
        return found


def orders_the_same_in_every_number_of_tasks():
    with Folder() as folder:
        write_formats(folder)
        found, want = [], None
        for replicas, flags in [(1, []), (2, ["--one-process-per-replica"]), (4, ["--one-process-per-replica"]), (4, [])]:
            train = compiled(folder, "--replicas", replicas, *flags, name=f"train{replicas}{len(flags)}")
            for data in ["data.npz", "data.tfrecord.gz"]:
                got = losses(train, folder / data, 15, "--shuffle-window", 30, "--seed", 9)
                want = want or got
                if not np.allclose(got, want, rtol=1e-5):
                    found.append(f"{replicas} replicas {flags} on {data}: losses {got}, not {want}")
        return found


def next_example(folder, step):
    return int((folder / f"ckpt-{step}.input").read_text().split()[1])


def goes_on_at_the_right_example():
    with Folder() as folder:
        write_formats(folder)
        train, found = compiled(folder, "--replicas", 2), []
        for data in ["data.npz", "data.tfrecord", "data.tfrecord.gz"]:
            kept = ["--checkpoint-dir", folder / "kept", "--shuffle-window", 20]  # no seed: the checkpoint has it
            parts = losses(train, folder / data, 7, *kept, "--overwrite")
            seed = (folder / "kept" / "ckpt-7.input").read_text().split()[3]
            must([train, "--quiet", "--data", folder / data, "--steps", 19, *kept, "--resume", "--log-json", folder / "rest"])
            parts += read_losses(folder / "rest")
            whole = losses(train, folder / data, 19, "--shuffle-window", 20, "--seed", seed)
            if parts != whole:
                found.append(f"{data}: resumed, the losses are {parts}, not {whole}")
        other = compiled(folder, name="small", batch=8)
        losses(other, folder / data, 22, *kept, "--resume")
        if next_example(folder / "kept", 22) != 19 * BATCH + 3 * 8:
            found.append(f"with another batch the run goes on at example {next_example(folder / 'kept', 22)}")
        with np.load(folder / "data.npz") as arrays:
            np.savez(folder / "more.npz", **{name: np.concatenate([arrays[name], arrays[name][:5]]) for name in arrays.files})
        grow = [train, "--quiet", "--checkpoint-dir", folder / "grown"]
        must([*grow, "--data", folder / "data.npz", "--steps", 4])
        same = run([*grow, "--data", folder / "data.npz", "--steps", 5, "--resume"])
        other = run([*grow, "--data", folder / "more.npz", "--steps", 6, "--resume"])
        for done, warns in (same, False), (other, True):
            if done.returncode or ("--data is not what" in done.stderr) != warns:
                found.append(f"resumed with {'other' if warns else 'the same'} data: status {done.returncode}: {done.stderr}")
        return found


def goes_on_after_a_kill():
    with Folder() as folder:
        write_formats(folder)
        train = compiled(folder, "--replicas", 2)
        command = [train, "--quiet", "--data", folder / "data.tfrecord.gz", "--steps", 200000, "--shuffle-window", 20, "--seed", 3,
                   "--checkpoint-dir", folder / "kept", "--save-every", 50, "--keep", 2, "--log-json", folder / "log"]
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 60
        while time.time() < deadline and not (folder / "kept" / "ckpt-100.index").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        step = max(saved_steps(folder / "kept"))
        inputs = sorted(path.stem for path in (folder / "kept").glob("*.input"))
        must([*command[:5], step + 30, *command[6:], "--resume"])
        got = {line["step"]: line["loss"] for line in read_log(folder / "log") if "loss" in line}
        want = losses(train, folder / "data.tfrecord.gz", step + 30, "--shuffle-window", 20, "--seed", 3)
        found = [] if [got[k] for k in range(step + 30)] == want else ["the losses are not those of a run that was not killed"]
        if len(inputs) > 3:
            found.append(f"of checkpoints that are gone the positions stay: {inputs}")
        return found


def limited(command, data_bytes):
    """Runs with so much memory of its own; returns the most bytes that were in memory, mapped files included."""
    process = subprocess.Popen([str(part) for part in command], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes)),
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"exit status {process.returncode}: {command}"
    return usage.ru_maxrss * 1024


def reads_more_than_memory():
    """A mapped file of several times the memory that the process may have, in order and through a window."""
    batch, rows, limit = 1 << 16, 32 << 20, 200 << 20
    with Folder() as folder:
        train, found = compiled(folder, batch=batch), []
        for name, shape in {"x": (rows, 4), "y": (rows,)}.items():
            array = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, shape)  # zeros: takes no room on the disk
            array[-1] = 1
            del array
        (folder / "npy").mkdir()
        for name in "xy":
            (folder / f"{name}.npy").rename(folder / "npy" / f"{name}.npy")
        for flags in [["--epochs", 1], ["--steps", 20, "--shuffle-window", 4096, "--seed", 1]]:
            log = folder / "log"
            most = limited([train, "--quiet", "--data", folder / "npy", "--log-json", log, *flags], limit)
            if most > 2 * limit:
                found.append(f"{flags}: {most >> 20} MiB were in memory")
            if "--epochs" in flags and not read_losses(log)[-1] > read_losses(log)[-2]:
                found.append("the last example was not read")
        return found


def converts_tables():
    with Folder() as folder:
        arrays, found = examples(), []
        np.savez(folder / "data.npz", **arrays)
        lines = ["a,b,c,d,label"] + [",".join(repr(float(value)) for value in (*x, y)) for x, y in zip(arrays["x"], arrays["y"])]
        (folder / "data.csv").write_text("\n".join(lines) + "\n")
        with gzip.open(folder / "data.csv.gz", "wt") as file:
            file.write("\n".join(lines))
        feeds = ["--feed", "x=a,b,c,d:float32", "--feed", "y=label:float32"]
        train = compiled(folder)
        want = losses(train, folder / "data.npz", 12)
        for source, target in [("data.csv", "out.npz"), ("data.csv.gz", "out"), ("data.csv", "out.tfrecord"), ("data.csv", "out.tfrecord.gz")]:
            must([sys.executable, CONVERT, folder / source, "-o", folder / target, *feeds])
            if losses(train, folder / target, 12) != want:
                found.append(f"{source} to {target}: other losses")
        must([sys.executable, CONVERT, folder / "data.npz", "-o", folder / "again.tfrecord"])
        if losses(train, folder / "again.tfrecord", 12) != want:
            found.append("data.npz to TFRecord: other losses")
        many = {name: np.concatenate([array] * 200) for name, array in arrays.items()}
        np.savez(folder / "many.npz", **many)
        must([sys.executable, CONVERT, folder / "many.npz", "-o", folder / "many.tfrecord", "--shards", 2])
        if losses(train, folder / "many-*-of-*.tfrecord", 12) != want:
            found.append("two shards: other losses")
        (folder / "text.csv").write_text("a,b\n1,2\n3,four\n")
        found += expect(run([sys.executable, CONVERT, folder / "text.csv", "-o", folder / "out.npz"]), 1, "text.csv: row 2: column 'b' is 'four'")
        found += expect(run([sys.executable, CONVERT, folder / "data.csv", "-o", folder / "out.npz", "--feed", "x=e"]), 1, "no column 'e'")
        if importlib.util.find_spec("pyarrow"):
            import pyarrow as pa
            import pyarrow.feather
            import pyarrow.parquet
            table = pa.table({"x": pa.array(list(arrays["x"]), pa.list_(pa.float32(), 4)), "y": arrays["y"]})
            pyarrow.parquet.write_table(table, folder / "data.parquet")
            pyarrow.feather.write_feather(table, folder / "data.arrow")
            for source in ["data.parquet", "data.arrow"]:
                must([sys.executable, CONVERT, folder / source, "-o", folder / "table.tfrecord"])
                if losses(train, folder / "table.tfrecord", 12) != want:
                    found.append(f"{source}: other losses")
        else:
            (folder / "data.parquet").write_bytes(b"PAR1")
            found += expect(run([sys.executable, CONVERT, folder / "data.parquet", "-o", folder / "out.npz"]), 1, "pip install pyarrow")
        return found


def takes_a_smaller_last_batch():
    """Its step is that of a program whose batch is as small, in every format and number of tasks, and after a resumption."""
    full, left = EXAMPLES // BATCH, EXAMPLES % BATCH
    with Folder() as folder:
        write_formats(folder)
        whole, smaller = compiled(folder), compiled(folder, name="smaller", batch=left)
        first = losses(whole, folder / "data.npz", full, "--checkpoint-dir", folder / "first")
        np.savez(folder / "left.npz", **{name: array[full * BATCH:] for name, array in examples().items()})
        last = losses(smaller, folder / "left.npz", 1, "--restore", folder / "first", "--checkpoint-dir", folder / "last")
        want = first + last + losses(whole, folder / "data.npz", full, "--restore", folder / "last" / f"ckpt-{full + 1}", "--last-batch", "drop")[:1]
        evaluated = must([whole, "--eval", "--restore", folder / "last", "--data", folder / "data.npz"]).stdout
        found = []
        for replicas, flags in [(1, []), (2, ["--one-process-per-replica"]), (4, []), *([(2, ["--target", "cuda:emulated"])] * HAS_EMULATED_GPU)]:
            train = compiled(folder, "--pad-batch", "--replicas", replicas, *flags, name=f"padded{replicas}{len(flags)}")
            for data in ["data.npz", "data.tfrecord.gz", "part-*.tfrecord*"]:
                got = losses(train, folder / data, full + 1)
                if not np.allclose(got, want[:full + 1], rtol=1e-5):
                    found.append(f"{replicas} replicas {flags} on {data}: losses {got}, not {want[:full + 1]}")
            losses(train, folder / "data.tfrecord", full, "--checkpoint-dir", folder / f"{train.name}-ckpt", "--seed", 1)
            resumed = losses(train, folder / "data.tfrecord", full + 1, "--checkpoint-dir", folder / f"{train.name}-ckpt", "--resume")
            if not np.allclose(resumed, want[:full + 1], rtol=1e-5):
                found.append(f"{replicas} replicas {flags}, resumed: losses {resumed}, not {want[:full + 1]}")
            log = folder / "epochs.jsonl"
            must([train, "--quiet", "--data", folder / "data.npz", "--epochs", 2, "--log-json", log])
            if len(got := read_losses(log)) != 2 * (full + 1):
                found.append(f"{replicas} replicas {flags}: 2 epochs are {len(got)} steps")
            if losses(train, folder / "data.npz", 2 * full, "--last-batch", "mix") == losses(train, folder / "data.npz", 2 * full):
                found.append(f"{replicas} replicas {flags}: --last-batch mix is what padding is")
            got = must([train, "--eval", "--restore", folder / "last", "--data", folder / "data.npz"]).stdout
            if not np.allclose(*[float(text.split()[-1]) for text in (got, evaluated)], rtol=1e-5):
                found.append(f"{replicas} replicas {flags}: --eval gives {got}, not {evaluated}")
        return found


def says_what_is_wrong():
    with Folder() as folder:
        write_formats(folder)
        train, found = compiled(folder), []
        arrays = examples()
        command = lambda data, *flags: run([train, "--quiet", "--steps", 20, "--data", folder / data, *flags])
        write_records(folder / "renamed.tfrecord", {"features": arrays["x"], "y": arrays["y"]})
        found += expect(command("renamed.tfrecord"), 1, "renamed.tfrecord: record 0 has no feature 'x'", "it has features, y", "--feature x=NAME")
        if losses(train, folder / "renamed.tfrecord", 20, "--feature", "x=features") != losses(train, folder / "data.npz", 20):
            found.append("--feature x=features: other losses")
        write_records(folder / "short.tfrecord", {"x": arrays["x"][:, :3], "y": arrays["y"]})
        found += expect(command("short.tfrecord"), 1, "record 0: the feature 'x' holds 3 floats", "takes 4 float32")
        whole = (folder / "data.tfrecord").read_bytes()
        (folder / "damaged.tfrecord").write_bytes(whole[:-20] + b"?" + whole[-19:])
        found += expect(command("damaged.tfrecord"), 1, f"damaged.tfrecord: record {EXAMPLES - 1} is damaged")
        (folder / "cut.tfrecord").write_bytes(whole[:-20])
        found += expect(command("cut.tfrecord"), 1, f"cut.tfrecord: record {EXAMPLES - 1} is truncated")
        found += expect(command("data.tfrecord.gz", "--shuffle"), WRONG_COMMAND, "--shuffle-window")
        found += expect(command("absent-*"), 1, "no file is named like")
        os.mkfifo(folder / "pipe.npz")
        found += expect(command("pipe.npz"), 1, "no regular file")
        found += expect(command("data.npz", "--feature", "z=a"), WRONG_COMMAND, "--feature z", "it has 'x', 'y'")
        found += expect(command("data.npz", "--value", "x=a"), WRONG_COMMAND, "'a' is not a number")
        found += expect(command("data.npz", "--last-batch", "keep"), WRONG_COMMAND, "mix, drop or pad")
        found += expect(command("data.npz", "--last-batch", "pad"), WRONG_COMMAND, "compile it with --pad-batch", "drop or mix")
        return found


BOOLEANS = """
dfg.graph attributes {fetches = ["y:0"]} {
  %f = dfg.placeholder : () -> tensor<?xi1> loc("f")
  %y = dfg.cast %f : (tensor<?xi1>) -> tensor<?xf32> loc("y")
}
"""


def takes_any_byte_but_0_as_true():
    """numpy does, and has such bytes in arrays that are views."""
    with Folder() as folder:
        (folder / "graph.mlir").write_text(BOOLEANS)
        must([DISTC, "compile", folder / "graph.mlir", "--batch", 4, "--fetch", "y:0", "-o", folder / "evaluate"])
        f = np.array([0, 1, 2, 255, 4, 0, 128, 0], np.uint8).view(bool)
        np.save(folder / "f.npy", f)
        np.savez(folder / "data.npz", f=f)
        found = []
        (folder / "npy").mkdir()
        (folder / "f.npy").rename(folder / "npy" / "f.npy")
        for data in ("data.npz", "npy"):
            must([folder / "evaluate", "--eval", "--data", folder / data, "--export-npz", folder / "out.npz"])
            if (y := np.load(folder / "out.npz")["y:0"]).tolist() != [0, 1, 1, 1, 1, 0, 1, 0]:
                found.append(f"{data}: {y}")
        return found


def main():
    need_tools()
    checks = Checks()
    checks.check("every format trains the same", trains_the_same_from_every_format)
    checks.check("any number of tasks, the same order", orders_the_same_in_every_number_of_tasks)
    checks.check("resumed at the right example", goes_on_at_the_right_example)
    checks.check("resumed after a kill", goes_on_after_a_kill)
    # Sanitizers need much address space of their own.
    if not is_sanitized():
        checks.check("more than memory", reads_more_than_memory)
    checks.check("tables converted", converts_tables)
    checks.check("booleans", takes_any_byte_but_0_as_true)
    checks.check("a smaller last batch", takes_a_smaller_last_batch)
    checks.check("errors", says_what_is_wrong)
    checks.exit()


if __name__ == "__main__":
    main()
