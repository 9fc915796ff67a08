"""Rows of bytes copied as fast as memory allows.

A loop over bytes is compiled to a block copy only as long as the compiler sees that source and
target do not overlap. Here they never do.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

_cgutils: Any = cgutils  # without annotations


def _generate_copy(typing: Any, target: Any, to: Any, source: Any, row: Any) -> Any:
    """Copy the beginning of row ``row`` of ``source`` to row ``to`` of ``target``.

    Both are two-dimensional arrays of bytes; as much is copied as a row of either can hold.
    """

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        places, sizes = [], []
        for kind, array, number in (
            (signature.args[0], arguments[0], arguments[1]),
            (signature.args[2], arguments[2], arguments[3]),
        ):
            rows = _cgutils.create_struct_proxy(kind)(context, builder, array)
            size = _cgutils.unpack_tuple(builder, rows.shape, 2)[1]
            places.append(builder.gep(rows.data, [builder.mul(number, size)]))
            sizes.append(size)
        shorter = builder.icmp_signed("<", sizes[0], sizes[1])
        size = builder.select(shorter, sizes[0], sizes[1])
        copy = builder.module.declare_intrinsic(
            "llvm.memcpy", [places[0].type, places[1].type, size.type]
        )
        builder.call(copy, [*places, size, ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


copy_row: Any = intrinsic(_generate_copy)
