"""Arrays in, arrays out: NumPy, Warp, Torch and JAX are taken without a copy where type and layout allow it.

`device=None` means: where the data is; for data in main memory CUDA if there is one, else the CPU.
Answers come back as what the question was asked with: NumPy for NumPy, Torch for Torch, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime.errors import InputError

#: Anything the intake takes: numpy.ndarray, nested lists, wp.array, torch.Tensor, jax.Array.
Arrays = Any


def choose_device(device: str | wp.Device | None, *data: Arrays) -> wp.Device:
    """The device to work on: the one asked for, else where the data is, else CUDA if present, else the CPU."""
    wp.init()  # asking Torch for a device does not
    if device is not None:
        known = ", ".join(d.alias for d in wp.get_devices())
        refused = InputError(f"device {device!r} is not one of: {known}")
        if str(device).startswith("cuda") and not wp.is_cuda_available():
            raise refused  # Warp would complain on stderr as well
        try:
            return wp.get_device(device)
        except Exception as error:
            raise refused from error
    for array in data:
        if isinstance(array, wp.array):
            return array.device
        if _library(array) == "torch":
            return wp.device_from_torch(array.device)
        if _library(array) == "jax":
            return wp.device_from_jax(next(iter(array.devices())))
    return wp.get_device("cuda" if wp.is_cuda_available() else "cpu")


def device_of(array: wp.array) -> wp.Device:
    """Where an array is."""
    device = array.device
    assert device is not None
    return device


def fetched(array: wp.array, rows: slice | np.ndarray) -> np.ndarray:
    """Some rows of an array, in main memory: a view of a slice on CPUs, and nothing but these rows from elsewhere."""
    device = device_of(array)
    if device.is_cpu:
        return array.numpy()[rows]
    if isinstance(rows, slice) or not len(rows):
        # Warp adds what is left of a slice to an address, in the slice's own type.
        begin, end, step = (rows if isinstance(rows, slice) else slice(0)).indices(len(array))
        return array[begin:end:step].numpy()
    chosen: Any = array[wp.array(rows, dtype=wp.int32, device=device)]
    return chosen.numpy()


def as_points(data: Arrays, name: str, device: wp.Device, width: int | None = None) -> wp.array:
    """`data` as a contiguous array of `wp.vec3d` on `device`: shape (n,), or (n, width) if a width is given.

    Args:
        data: shape (n, 3), or (n, width, 3) [m]; float64 is taken as it is, anything else is converted.
        name: what to call it in an error.
    """
    expected = "(n, 3)" if width is None else f"(n, {width}, 3)"
    if isinstance(data, wp.array) and data.dtype in (wp.vec3d, wp.vec3f):
        shape = (*data.shape, 3)
    else:
        if not isinstance(data, wp.array):
            data = _host(data, name, np.float64) if _library(data) is None else _real(data, name)
        shape = tuple(data.shape)
    if shape[1:] != ((3,) if width is None else (width, 3)):
        raise InputError(f"{name} must have shape {expected}, not {shape}")
    if shape[0] == 0:
        return wp.empty(shape[:-1], dtype=wp.vec3d, device=device)
    return _as_vectors(data, name, shape, device)


def as_indices(data: Arrays, name: str, device: wp.Device, width: int) -> wp.array:
    """`data` as a contiguous (n, width) array of int32 on `device`; whether the indices are in range is not checked."""
    host: np.ndarray = data.numpy() if isinstance(data, wp.array) else _host(data, name, None)
    if host.size == 0:
        host = host.reshape(0, width).astype(np.int32)
    if host.ndim != 2 or host.shape[1] != width:
        raise InputError(f"{name} must have shape (n, {width}), not {host.shape}")
    if not np.issubdtype(host.dtype, np.integer):
        raise InputError(f"{name} must hold whole numbers, not {host.dtype}")
    if host.size and not (host.min() >= -(2**31) and host.max() < 2**31):
        raise InputError(f"{name} holds a number too large for an index: {host.min()} to {host.max()}")
    if isinstance(data, wp.array) and data.dtype == wp.int32 and data.device == device and data.is_contiguous:
        return data
    return wp.array(np.ascontiguousarray(host, dtype=np.int32), dtype=wp.int32, device=device)


def to_numpy(data: Arrays, name: str, dtype: Any = np.float64) -> np.ndarray:
    """`data` in main memory as a NumPy array, without a copy if it is there already."""
    if isinstance(data, wp.array):
        rows = data.numpy()
        return rows if dtype is None else rows.astype(dtype, copy=False)  # None is float64 to NumPy
    if _library(data) == "torch":
        data = data.detach().cpu().numpy()
    return _host(data, name, dtype)


def read_only(array: np.ndarray) -> np.ndarray:
    """`array` itself, from now on not writeable, safe to share; for arrays nobody else holds."""
    array.flags.writeable = False
    return array


def read_only_copy(array: np.ndarray, dtype: Any) -> np.ndarray:
    """`array` itself if it is contiguous, of this type and not writeable already, else a read-only copy."""
    if array.dtype == dtype and array.flags.c_contiguous and not array.flags.writeable:
        return array
    return read_only(np.array(array, dtype=dtype, order="C"))


def like(example: Arrays) -> Callable[[wp.array], Any]:
    """A function that turns a Warp array into an array of the library `example` comes from."""
    if isinstance(example, wp.array):
        return lambda array: array
    library = _library(example)
    if library == "torch":
        return wp.to_torch
    if library == "jax":
        return wp.to_jax
    return lambda array: array.numpy()


def _library(array: Arrays) -> str | None:
    root = type(array).__module__.partition(".")[0]
    return {"torch": "torch", "jax": "jax", "jaxlib": "jax"}.get(root)


def _host(data: Arrays, name: str, dtype: Any) -> np.ndarray:
    try:
        given = np.asarray(data)
        if given.dtype.kind != "c":
            # NumPy refuses numbers that do not fit when it reads a list, not when it converts an array.
            return np.asarray(data if dtype is not None and isinstance(data, (list, tuple)) else given, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from error
    return _real(given, name)


def _real(array: Arrays, name: str) -> Arrays:
    """The same array, of any library: a conversion would take the real part and say nothing."""
    if "complex" in str(array.dtype):
        raise InputError(f"{name} must hold real numbers, not {array.dtype}")
    return array


def _as_vectors(data: Arrays, name: str, shape: tuple[int, ...], device: wp.Device) -> wp.array:
    if _library(data) == "torch":
        data = wp.from_torch(data.detach().double().contiguous(), dtype=wp.vec3d)
    elif _library(data) == "jax":
        data = wp.from_jax(data.astype("float64"), dtype=wp.vec3d) if data.dtype == "float64" else np.asarray(data)
    if isinstance(data, wp.array) and data.dtype != wp.vec3d:
        if data.dtype == wp.float64 and data.is_contiguous:
            data = data.view(wp.vec3d).reshape(shape[:-1])
        else:
            data = data.numpy()
    if isinstance(data, wp.array):
        return data.contiguous().to(device)
    # An axis of length one may have any stride, which Warp takes for a gap: flatten it away.
    host = np.ascontiguousarray(data, dtype=np.float64).reshape(-1).reshape(shape)
    return wp.array(host, dtype=wp.vec3d, shape=shape[:-1], device=device, copy=not device.is_cpu)


def concatenated(parts: Sequence[wp.array], dtype: Any, device: wp.Device) -> wp.array:
    """All parts in one array of their device; one part is that array itself."""
    if len(parts) == 1:
        return parts[0]
    whole = wp.empty(sum(map(len, parts)), dtype=dtype, device=device)
    at = 0
    for part in parts:
        if len(part):
            wp.copy(whole, part, dest_offset=at, count=len(part))
        at += len(part)
    return whole
