"""Arrays in and out: taken where they lie when type and layout allow, refused with a sentence when they cannot be."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.runtime import InputError, as_indices, as_points, choose_device, fetched, like, to_numpy

CPU = wp.get_device("cpu")


@pytest.mark.parametrize(("shape", "width"), [((7, 3), None), ((7, 4, 3), 4)])
def test_numpy_float64_is_taken_without_a_copy(rng, shape, width):
    points = rng.normal(size=shape)
    taken = as_points(points, "x", CPU, width)
    assert taken.ptr == points.ctypes.data
    assert taken.shape == shape[:-1]
    assert np.array_equal(taken.numpy(), points)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_other_numbers_are_converted(rng, dtype):
    points = (rng.normal(size=(5, 3)) * 10).astype(dtype)
    assert np.array_equal(as_points(points, "x", CPU).numpy(), points.astype(np.float64))


def test_strided_and_reversed_numpy_arrays_keep_their_values(rng):
    points = rng.normal(size=(20, 6))
    for view in (points[::2, :3], points[::-1, 3:], points[:, ::2], np.asfortranarray(points[:, :3])):
        assert np.array_equal(as_points(view, "x", CPU).numpy(), view)


def test_read_only_numpy_arrays_are_taken(rng):
    points = rng.normal(size=(5, 3))
    points.flags.writeable = False
    assert np.array_equal(as_points(points, "x", CPU).numpy(), points)


def test_lists_are_taken():
    assert np.array_equal(as_points([[1, 2, 3], [4, 5, 6]], "x", CPU).numpy(), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("width", [None, 4])
def test_warp_arrays_are_taken_without_a_copy(rng, device, width):
    target = wp.get_device(device)
    points = rng.normal(size=(6, 3) if width is None else (6, width, 3))
    vectors = wp.array(points, dtype=wp.vec3d, device=target)
    numbers = wp.array(points, dtype=wp.float64, device=target)
    for given in (vectors, numbers):
        taken = as_points(given, "x", target, width)
        assert taken.ptr == given.ptr
        assert taken.dtype == wp.vec3d
        assert np.array_equal(taken.numpy(), points)


def test_warp_arrays_of_other_types_are_converted(rng):
    points = rng.normal(size=(6, 3)).astype(np.float32)
    for given in (wp.array(points, dtype=wp.vec3f, device=CPU), wp.array(points, dtype=wp.float32, device=CPU)):
        assert np.array_equal(as_points(given, "x", CPU).numpy(), points.astype(np.float64))


def test_torch_tensors_are_taken_without_a_copy(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.from_numpy(rng.normal(size=(6, 3)))
    assert choose_device(None, tensor) == CPU
    taken = as_points(tensor, "x", CPU)
    assert taken.ptr == tensor.data_ptr()
    assert torch.equal(like(tensor)(taken), tensor)


def test_answers_come_back_as_the_library_that_asked(rng):
    answer = wp.array(rng.normal(size=5), dtype=wp.float64, device=CPU)
    assert like(answer)(answer) is answer
    assert isinstance(like([1.0])(answer), np.ndarray)
    assert isinstance(like(np.zeros(3))(answer), np.ndarray)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (4, 4), (2, 4, 3), (), (0,), (3, 0)])
def test_wrong_shapes_of_points_name_the_array_and_both_shapes(shape):
    with pytest.raises(InputError, match=r"vertices must have shape \(n, 3\), not \("):
        as_points(np.zeros(shape), "vertices", CPU)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 3), (2, 4, 2), (2, 2, 4, 3), (3,), ()])
def test_wrong_shapes_of_tuples_of_points_name_the_array_and_both_shapes(shape):
    with pytest.raises(InputError, match=r"x0 must have shape \(n, 4, 3\), not \("):
        as_points(np.zeros(shape), "x0", CPU, 4)


@pytest.mark.parametrize("wrong", ["abc", [[1, 2], [3]], [["a", "b", "c"]], {"x": 1}, [[1j, 0, 0]]])
def test_what_is_not_numbers_is_refused(wrong):
    with pytest.raises(InputError, match="vertices"):
        as_points(wrong, "vertices", CPU)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("imaginary", [0.0, 1.0])
def test_complex_numbers_are_refused_even_if_they_happen_to_be_real(dtype, imaginary):
    numbers = np.full((2, 3), 1.0 + imaginary * 1j, dtype=dtype)
    for wrong in (numbers, numbers[::-1], list(numbers), [list(row) for row in numbers]):
        for take in (as_points, to_numpy):
            with pytest.raises(InputError, match="vertices must hold real numbers, not complex"):
                take(wrong, "vertices", *([CPU] if take is as_points else []))
        with pytest.raises(InputError, match="triangles must hold real numbers, not complex"):
            as_indices(wrong, "triangles", CPU, 3)
        with pytest.raises(InputError, match="groups must hold real numbers, not complex"):
            to_numpy(wrong, "groups", None)


def test_complex_torch_tensors_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.zeros((2, 3), dtype=torch.complex128)
    for take in (lambda: as_points(tensor, "vertices", CPU), lambda: to_numpy(tensor, "vertices")):
        with pytest.raises(InputError, match=r"vertices must hold real numbers, not .*complex128"):
            take()


@pytest.mark.parametrize(("shape", "width"), [((0, 3), None), ((0, 4, 3), 4)])
def test_no_points_at_all_are_fine(shape, width):
    assert as_points(np.zeros(shape), "x", CPU, width).shape == shape[:-1]


def test_int32_indices_on_the_device_are_taken_without_a_copy(device):
    target = wp.get_device(device)
    given = wp.array([[0, 1, 2], [2, 1, 3]], dtype=wp.int32, device=target)
    assert as_indices(given, "triangles", target, 3).ptr == given.ptr


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32])
def test_whole_numbers_of_any_type_are_indices(dtype):
    triangles = np.array([[0, 1, 2], [2, 1, 3]], dtype=dtype)
    taken = as_indices(triangles, "triangles", CPU, 3)
    assert taken.dtype == wp.int32
    assert np.array_equal(taken.numpy(), triangles)


def test_indices_that_do_not_fit_int32_are_refused():
    with pytest.raises(InputError, match="triangles"):
        as_indices(np.array([[0, 1, 2**32]]), "triangles", CPU, 3)


def test_indices_that_are_not_whole_numbers_are_refused():
    with pytest.raises(InputError, match="triangles must hold whole numbers, not float64"):
        as_indices([[0.0, 1.0, 2.0]], "triangles", CPU, 3)


def test_indices_of_the_wrong_width_are_refused():
    with pytest.raises(InputError, match=r"triangles must have shape \(n, 3\), not \(2, 4\)"):
        as_indices(np.zeros((2, 4), dtype=int), "triangles", CPU, 3)


@pytest.mark.parametrize("none", [[], np.zeros((0, 3), dtype=np.int64)])
def test_no_indices_at_all_are_fine(none):
    assert as_indices(none, "triangles", CPU, 3).shape == (0, 3)


def test_an_unknown_device_is_refused_with_the_ones_there_are():
    with pytest.raises(InputError, match=r"'tpu' is not one of: cpu"):
        choose_device("tpu")


def test_a_device_that_is_not_here_is_refused():
    with pytest.raises(InputError, match="cuda:99"):
        choose_device("cuda:99")


def test_the_device_is_where_the_warp_data_is(device):
    given = wp.zeros(3, dtype=wp.float64, device=device)
    assert choose_device(None, np.zeros(3), given) == wp.get_device(device)
    assert choose_device("cpu", given) == CPU


def test_numpy_comes_back_from_anything(rng):
    points = rng.normal(size=(4, 3))
    assert to_numpy(points, "x") is points
    assert np.array_equal(to_numpy(wp.array(points, dtype=wp.vec3d, device=CPU), "x"), points)
    assert np.array_equal(to_numpy(points.tolist(), "x"), points)


@pytest.mark.parametrize(("data", "kind"), [([2**40, 3], np.int32), ([-1], np.uint32), ([float("nan")], np.int32)])
def test_numbers_of_a_list_that_do_not_fit_are_refused(data, kind):
    with pytest.raises(InputError, match="rows is not an array of numbers"):
        to_numpy(data, "rows", kind)


def test_rows_are_fetched_from_where_they_are(device):
    """As NumPy has them: slices with and without steps, numbers in any order, and none."""
    numbers = np.arange(40.0).reshape(20, 2)
    array = wp.array(numbers, dtype=wp.vec2d, device=device)
    narrow = slice(*np.array([2, 9], np.int32))
    for rows in (
        slice(5),
        slice(3, 17, 4),
        slice(None, None, 7),
        slice(0),
        narrow,
        np.array([19, 0, 7, 7]),
        np.arange(0),
    ):
        assert fetched(array, rows).tolist() == numbers[rows].tolist()
