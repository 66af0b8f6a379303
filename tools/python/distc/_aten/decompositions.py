"""How torch.export is to write a graph."""
from __future__ import annotations

from typing import Any

import torch


def get_decompositions() -> Any:
    """How torch.export is to write operations that are none of the core. Those whose gradient is not that of what PyTorch makes of them
    stay whole, and attention: what PyTorch makes of it asks for views that the layout in memory of its own result does not allow."""
    whole = {f"aten::{name}" for name in ("scaled_dot_product_attention", "detach", "linalg_vector_norm", "std.correction", "hardswish",
                                        "hardsigmoid", "xlogy.Tensor", "sinc", "stack", "logsumexp", "special_log_ndtr", "max_unpool2d", "max_unpool3d")}
    table = torch.export.default_decompositions()
    for operation in [each for each in table if each.name() in whole]:
        table.pop(operation)
    table.update(torch._decomp.get_decompositions([torch.ops.aten.grid_sampler_2d]))
    return table


def stop_gradients(module: torch.fx.GraphModule) -> None:
    """What is computed without gradients (torch.no_grad), which decomposition puts in line, is to be of detached values."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and str(node.target) == "wrap_with_set_grad_enabled" and node.args[0] is False:
            _detach_inputs(getattr(module, node.args[1].target))
    for part in module.children():
        if isinstance(part, torch.fx.GraphModule):
            stop_gradients(part)
    module.recompile()


def _detach_inputs(body: torch.fx.GraphModule) -> None:
    inputs = [node for node in body.graph.nodes if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)]
    for node in inputs:
        with body.graph.inserting_after(inputs[-1]):
            detached = body.graph.call_function(torch.ops.aten.detach.default, (node,))
        detached.meta.update(node.meta)
        node.replace_all_uses_with(detached, delete_user_cb=lambda user, detached=detached: user is not detached)
    body.recompile()
