"""The roofline of a plan: its totals are those of its rows, no kernel must move more than it does, times follow from the chip's figures, and a
sharded update moves its share of what a whole one does.

  roofline.py [NAME…]
"""
import json
import sys

from support import Checks, Folder, Model, must, need_tools

MODELS = ("mlp-momentum", "convnet-momentum", "mlp-clip", "mlp-adam")


def roofline(name, replicas, strategy):
    with Folder() as folder:
        must(Model(name).compile_command(folder / "roofline.json", replicas, strategy, "--target=cuda:sm_90", "--emit=roofline"))
        [chip] = json.loads((folder / "roofline.json").read_text())["chips"]
        return chip["chip"], {entry["name"]: entry for entry in chip["entries"]}


def check_totals(name, replicas, strategy):
    chip, entries = roofline(name, replicas, strategy)
    found = []
    for entry in entries.values():
        rows = entry["operations"]
        for key in ("launches", "moves", "must_move", "flops", "matmul_flops"):
            if sum(row[key] for row in rows) != entry[key]:
                found.append(f"{entry['name']}: {key} is {entry[key]}, its rows' {sum(row[key] for row in rows)}")
        if sum(row.get("sends", 0) for row in rows) != entry.get("sends", 0):
            found.append(f"{entry['name']}: sends {entry.get('sends', 0)}, its rows something else")
        for row in rows:
            what = f"{entry['name']}: {row['name']}"
            if row["must_move"] > row["moves"] or row["matmul_flops"] > row["flops"]:
                found.append(f"{what}: more must be than is: {row}")
            memory = row["moves"] / chip["memory_bytes_per_s"] * 1e6
            for precision, us in row["us"].items():
                arithmetic = row["matmul_flops"] / chip["flops_per_s"][precision] * 1e6
                if us + 0.001 < max(memory, arithmetic) or us + 0.001 < row["launches"] * chip["launch_us"]:
                    found.append(f"{what}: {us} us of {precision} is less than its parts")
        # Collectives run beside kernels.
        serial = sum(row["us"]["fp32"] for row in rows)
        longest = max((row["us"]["fp32"] for row in rows), default=0)
        if not longest - 0.01 <= entry["us"]["fp32"] <= serial + 0.01 * len(rows):
            found.append(f"{entry['name']}: {entry['us']['fp32']} us, its rows are {serial} us one behind the other")
        if not entry["us"]["bf16"] <= entry["us"]["tf32"] <= entry["us"]["fp32"]:
            found.append(f"{entry['name']}: faster products take longer: {entry['us']}")
    if replicas > 1 and not entries["step"].get("sends"):
        found.append("several replicas send nothing")
    return found


def check_shares(name):
    """Of the updates' bytes; a share is rounded up to 16 bytes."""
    def updates(strategy):
        return sum(row["moves"] for row in roofline(name, 2, strategy)[1]["step"]["operations"] if row["category"] == "update")

    whole, share = updates("AllReduce"), updates("ShardedUpdate")
    return [] if whole / 2 <= share <= 0.75 * whole else [f"updates of shares move {share} bytes, of the whole {whole}"]


def check_rows():
    """An update of a table moves the rows that the batch names, not the table."""
    with Folder() as folder:
        command = [str(part) for part in Model("embedding-adagrad").compile_command(folder / "roofline.json", 1, "AllReduce", "--target=cuda:sm_90", "--emit=roofline")]
        command[command.index("--batch") + 1] = "2"
        must(command)
        [chip] = json.loads((folder / "roofline.json").read_text())["chips"]
    step = next(entry for entry in chip["entries"] if entry["name"] == "step")
    moved = next(row["moves"] for row in step["operations"] if row["category"] == "update" and "table" in row["name"])
    rows, width, element = 4, 4, 4  # two lookups an example; table and slot are read and written, gradients and indices read
    most = rows * width * element * 5 + rows * element
    return [] if moved <= most else [f"{rows} of 9 rows are updated, but {moved} bytes moved, more than {most}"]


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        for replicas, strategy in ((1, "AllReduce"), (2, "AllReduce"), (2, "ShardedUpdate")):
            checks.check(f"{name} x{replicas} {strategy}", check_totals, name, replicas, strategy)
    checks.check("sharded updates", check_shares, "mlp-momentum")
    checks.check("updates of rows", check_rows)
    checks.exit()
