#!/usr/bin/env python3
"""torchvision's ResNet-18 on images of handwritten digits, trained by two replicas."""
import pathlib
import sys

import numpy as np
import torch
import torchvision

import distc
import distc.torch

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
BATCH = 24


def images_of(data):
    """8 x 8 pixels as 32 x 32, in three equal channels."""
    return np.ascontiguousarray(np.broadcast_to(data["image"].reshape(-1, 1, 8, 8).repeat(4, 2).repeat(4, 3), (len(data["image"]), 3, 32, 32)))


def make_module():
    torch.manual_seed(0)
    return torchvision.models.resnet18(num_classes=10)


def loss(module, batch):
    return torch.nn.functional.cross_entropy(module(batch["images"]), batch["labels"])


def make_optimizer(module):
    return torch.optim.SGD(module.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)


def make_data():
    train = np.load(DIGITS / "train.npz")
    return {"images": images_of(train), "labels": train["label"]}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "resnet18.mlir")
    module, data = make_module(), make_data()
    batch = {name: torch.from_numpy(array[:BATCH]) for name, array in data.items()}
    exported = distc.torch.export(module, loss, make_optimizer(module), batch, path)
    result = distc.compile(exported, replicas=2, batch=BATCH).train(data, steps=200)
    distc.torch.load_state(module, result.state)
    test = np.load(DIGITS / "test.npz")
    module.eval()
    with torch.no_grad():
        accuracy = float((module(torch.from_numpy(images_of(test))).argmax(-1) == torch.from_numpy(test["label"])).float().mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
