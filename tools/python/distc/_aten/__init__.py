"""Graphs that torch.export wrote, as functions of JAX: PyTorch's core operations (core ATen), one entry of a table each.

Only the forward pass is translated; gradients are JAX's. Every result has the element type and the shape that PyTorch says.
A module for each kind of operation fills the table (`table.py`) when it is imported.
"""
from distc._aten import elements, reductions, sorting, layout, indices, creation, products, linear_algebra, transforms, windows, normalization  # noqa: F401, table's entries
from distc._aten.decompositions import get_decompositions, stop_gradients
from distc._aten.graph import Graph
from distc._aten.table import UnknownOperations, to_dtype

__all__ = ["Graph", "UnknownOperations", "get_decompositions", "stop_gradients", "to_dtype"]
