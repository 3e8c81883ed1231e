"""Arguments of CPU launches, packed once into a block of memory that any thread may launch with.

Warp packs arguments anew at every launch, which costs some 3 us each; a copy of what it packed costs one in all. Where
everything lies is learned from Warp itself, at the first launch of a kernel; whatever is not plainly an array of the
right type or a number is left to Warp, which packs it or says what is wrong with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import warp as wp

from tangere.runtime.warp_setup import BLOCK

#: Bytes of the largest block of arguments: more than a hundred arrays.
LARGEST_BLOCK = 8192


class _Bounds(ctypes.Structure):
    """How many indices a launch has, as Warp's kernels over one dimension read it."""

    _fields_ = (("shape", ctypes.c_uint32), ("size", ctypes.c_size_t), ("repeats", ctypes.c_size_t))


class ArgumentBlock:
    """The arguments of a launch in one block, and the compiled kernel that takes them."""

    def __init__(self, form: _Form, block: Any, places: int, arguments: Sequence[Any]) -> None:
        self._form, self._block, self._leading = form, block, form.names[:places]
        block.kept = arguments  # the arrays, of which it has but addresses

    @cached_property
    def address(self) -> tuple[int, int, int, int]:
        """Of the kernel and the block; how many int32 the block has room for, and how many lead."""
        size = ctypes.sizeof(self._block) // ctypes.sizeof(ctypes.c_int32)
        return self._form.address, ctypes.addressof(self._block), size, len(self._leading)

    def prepared(self, count: int) -> Callable[[], None]:
        """What runs `kernel(0, …, *arguments)` for `count` indices on the calling thread, in half the time."""
        return partial(self._form.run, ctypes.byref(_Bounds(count, count, 1)), ctypes.byref(self._block))

    def launch(self, count: int, *leading: int) -> None:
        """Run `kernel(*leading, *arguments)` for `count` indices on the calling thread."""
        block = self._form.block.from_buffer_copy(self._block)
        for name, value in zip(self._leading, leading, strict=False):
            setattr(block, name, value)
        self._form.run(ctypes.byref(_Bounds(count, count, 1)), ctypes.byref(block))


def pack(kernel: wp.Kernel, arguments: Sequence[Any], device: wp.Device) -> ArgumentBlock:
    """The arguments of a CPU kernel, with zeros for those that lead and are set at each launch."""
    places = len(kernel.adj.args) - len(arguments)
    values = [*[0] * places, *arguments]
    form = _forms.get(kernel)
    block = None if form is None else form.filled(values)
    if form is None or block is None:
        form, block = _packed_by_warp(kernel, values, device)
        if not kernel.is_generic:
            _forms[kernel] = form
    return ArgumentBlock(form, block, places, arguments)


class _Form:
    """Where the arguments of a kernel lie in a block."""

    def __init__(self, command: Any) -> None:
        assert ctypes.sizeof(command.bounds) == ctypes.sizeof(_Bounds), "kernels have one dimension"
        self._command = command  # keeps the compiled module
        self.run = command.hooks.forward
        self.address: int = ctypes.cast(self.run, ctypes.c_void_p).value
        kinds = [type(value) for value in command.params[1:]]
        self.names = [f"argument_{k}" for k in range(len(kinds))]
        self.block: Any = type("Block", (ctypes.Structure,), {"_fields_": list(zip(self.names, kinds, strict=True))})
        assert ctypes.sizeof(self.block) <= LARGEST_BLOCK, f"{command.kernel.key} has too many arguments"
        self._fields = [
            # Annotations of arrays, and only they, have a number of dimensions.
            (name, kind, getattr(argument.type, "dtype", None), getattr(argument.type, "ndim", 0))
            for name, kind, argument in zip(self.names, kinds, command.kernel.adj.args, strict=True)
        ]

    def filled(self, values: Sequence[Any]) -> ctypes.Structure | None:
        """A block of values; None if one of them is not of the plain kind."""
        block = self.block()
        try:
            for value, (name, kind, dtype, ndim) in zip(values, self._fields, strict=True):
                if ndim:
                    if type(value) is not wp.array or value.dtype is not dtype or value.ndim != ndim:
                        return None
                    setattr(block, name, value.__ctype__())
                elif type(value) is kind:
                    setattr(block, name, value)
                elif issubclass(kind, ctypes._SimpleCData):
                    setattr(block, name, getattr(value, "value", value))
                elif hasattr(value, "__ctype__") and type(value.__ctype__()) is kind:  # a struct
                    setattr(block, name, value.__ctype__())
                else:
                    return None
        except (TypeError, ValueError):
            return None
        return block


def _packed_by_warp(kernel: wp.Kernel, values: list[Any], device: wp.Device) -> tuple[_Form, ctypes.Structure]:
    command: Any = wp.launch(kernel, 1, values, device=device, record_tape=False, record_cmd=True, block_dim=BLOCK)
    form = _Form(command)
    return form, form.block(*command.params[1:])


_forms: dict[wp.Kernel, _Form] = {}
