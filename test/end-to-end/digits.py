"""examples/digits, as tools/quickstart.sh runs it: two replicas learn the digits, and the held-back ones are recognized."""
import re

from support import DISTC, ROOT, Checks, Folder, must, need_tools, read_losses

DIGITS = ROOT / "examples" / "digits"


def learns():
    with Folder() as folder:
        train, log = folder / "train", folder / "log.jsonl"
        must([DISTC, "compile", DIGITS / "graph.meta", "--strategy", "AllReduce", "--replicas", "2", "--batch", "60",
              "--fetch", "accuracy:0", "-o", train])
        must([train, "--data", DIGITS / "train.npz", "--epochs", "12", "--shuffle", "--seed", "1", "--log-json", log,
              "--checkpoint-dir", folder / "checkpoints"])
        losses = read_losses(log)
        newest = re.search('^model_checkpoint_path: "(.*)"', (folder / "checkpoints" / "checkpoint").read_text(), re.M).group(1)
        out = must([train, "--eval", "--fetch", "accuracy:0", "--data", DIGITS / "test.npz",
                    "--restore", folder / "checkpoints" / newest]).stdout
    accuracy = float(re.search(r"accuracy:0\D*([0-9.]+(?:e-?\d+)?)", out).group(1))
    found = []
    if not losses[-1] < 0.2 * losses[0]:
        found.append(f"loss only fell from {losses[0]} to {losses[-1]}")
    if not 0.95 < accuracy <= 1:
        found.append(f"accuracy {accuracy}")
    return found


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    checks.check("digits x2", learns)
    checks.exit()
