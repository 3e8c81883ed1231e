"""Units of mesh files: told ones are converted to metres, and sizes that cannot be true are doubted."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.mesh.units import doubted_units, warn_of_doubted_units


@pytest.fixture
def box(tmp_path):
    path = tmp_path / "box.stl"
    generate.box((40.0, 20.0, 10.0)).save(path)
    return path


@pytest.mark.parametrize(("units", "factor"), [(None, 1.0), ("m", 1.0), ("mm", 1e-3), ("inch", 0.0254), ("cm", 1e-2)])
def test_lengths_of_a_file_without_unit_are_what_the_caller_says(box, units, factor):
    mesh = Mesh.load(box, units=units)
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), np.array([40.0, 20.0, 10.0]) * factor, rtol=1e-6)
    assert mesh.source is not None
    assert mesh.source.known == (units is not None)


def test_the_report_says_from_which_unit_lengths_were_converted(box):
    assert "lengths converted from millimetres to metres" in Mesh.load(box, units="mm").report.notes
    assert not any("converted" in note for note in Mesh.load(box).report.notes)


def test_a_unit_nobody_knows_is_refused_with_those_there_are(box):
    with pytest.raises(InputError, match=r"units must be one of m, mm, cm, .*inch.*, not 'furlong'"):
        Mesh.load(box, units="furlong")


def test_bodies_300_times_as_large_as_others_are_doubted_by_name_once(box):
    large, small = Mesh.load(box), generate.icosphere(radius=0.01)
    told = doubted_units([large, small])
    assert told is not None
    assert "box.stl" in told
    assert "--units mm" in told
    assert doubted_units([large, small]) is None
    assert doubted_units([Mesh.load(box, units="m"), small]) is None
    assert doubted_units([Mesh.load(box), generate.icosphere(radius=5.0)]) is None
    with pytest.warns(UserWarning, match="does not say its unit"):
        warn_of_doubted_units([Mesh.load(box), small])


def test_where_a_mesh_comes_from_survives_copies_and_pickling(box):
    mesh = Mesh.load(box, units="mm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (mesh.replace(vertices=mesh.vertices), pickle.loads(pickle.dumps(mesh))):
            assert other.source == mesh.source
