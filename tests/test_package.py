"""The package as a whole: what it declares about itself is true, and its pages are up to date."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import tangere
from tools import api, coverage

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MODULES = sorted(m.name for m in pkgutil.walk_packages(tangere.__path__, "tangere.") if not m.name.endswith("__main__"))


def test_the_coverage_page_is_up_to_date():
    assert coverage.PAGE.read_text() == coverage.page(), "run `make coverage`"


@pytest.mark.release
def test_the_api_page_is_up_to_date():
    assert api.PAGE.read_text(encoding="utf-8") == api.page(), "run `make api`"


@pytest.mark.release
def test_every_public_class_and_function_is_on_the_api_page_once():
    entries = re.findall(r"^\.\. auto\w+:: ([\w.]+)\.(\w+)$", api.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = Counter(id(getattr(importlib.import_module(module), name)) for module, name in entries)
    assert set(shown.values()) == {1}
    faces = [tangere, *(room for room in listed(tangere) if inspect.ismodule(room))]
    faces += [part for face in faces[1:] for part in listed(face) if inspect.ismodule(part)]
    for face in faces:
        for value in listed(face):
            if face.__name__ in api.FOR_USERS and not (inspect.isclass(value) and issubclass(value, Exception)):
                continue
            assert not (type(value) is type or inspect.isfunction(value)) or id(value) in shown, (face, value)


def listed(face: ModuleType) -> list:
    """The values that a face lists, or those that a module without a list keeps public."""
    names = getattr(face, "__all__", [name for name in vars(face) if not name.startswith("_")])
    values = [getattr(face, name) for name in names]
    return [v for v in values if hasattr(face, "__all__") or getattr(v, "__module__", None) == face.__name__]


def test_coverage_sees_marks_on_functions_classes_parameters_and_modules(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests" / "query").mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "tests" / "query" / "test_a.py").write_text(
        "import pytest\n"
        "pytestmark = [pytest.mark.feature('F-T-1')]\n"
        "@pytest.mark.feature('F-T-2', 'F-T-3')\n"
        "def test_f(): pass\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.feature('F-T-4')), 2])\n"
        "def test_g(x): pass\n"
        "class TestC:\n"
        "    @pytest.mark.feature('F-T-5')\n"
        "    def test_h(self): pass\n"
    )
    (tmp_path / "bench" / "b.py").write_text("FEATURES = ['F-T-6']\n")
    (tmp_path / "bench" / "never_recorded.py").write_text("FEATURES = ['F-T-8']\n")
    (tmp_path / "docs" / "benchmarks").mkdir()
    (tmp_path / "docs" / "benchmarks" / "b.md").write_text("# Results\n")
    assert set(coverage.claims(tmp_path)) == {
        ("F-T-1", "tests/query/test_a.py"),
        ("F-T-2", "tests/query/test_a.py::test_f"),
        ("F-T-3", "tests/query/test_a.py::test_f"),
        ("F-T-4", "tests/query/test_a.py::test_g"),
        ("F-T-5", "tests/query/test_a.py::TestC::test_h"),
        ("F-T-6", "bench/b.py"),
    }
    features = '[T]\nname = "T"\n[T.features]\nF-T-1 = "one"\nF-T-7 = "seven | eight"\n'
    (tmp_path / "docs" / "features.toml").write_text(features)
    with pytest.raises(SystemExit, match="F-T-2"):
        coverage.page(tmp_path)
    (tmp_path / "bench" / "b.py").write_text("PARTLY = {'F-T-7': 'too slow'}\n")
    (tmp_path / "tests" / "query" / "test_a.py").write_text(
        "import pytest\npytestmark = pytest.mark.feature('F-T-1')\n"
    )
    page = coverage.page(tmp_path)
    assert "| F-T-1 | one | `tests/query/test_a.py` |" in page
    assert "| F-T-7 | seven \\| eight | in part: `bench/b.py` (too slow) |" in page
    assert "1 of 2 proven" in page
    (tmp_path / "bench" / "b.py").unlink()
    assert "| F-T-7 | seven \\| eight | not yet |" in coverage.page(tmp_path)


def test_the_version_is_the_same_everywhere():
    assert tangere.__version__ == VERSION
    assert importlib.metadata.version("tangere") == VERSION
    assert f'version: "{VERSION}"' in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## \[?([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION


def test_the_package_says_that_it_is_typed():
    assert (Path(tangere.__path__[0]) / "py.typed").is_file()


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_exists_and_explains_itself(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for symbol in getattr(module, "__all__", []):
        value = getattr(module, symbol)
        # Vector types are Warp's, explained by the comment at their name.
        ours = str(getattr(value, "__module__", "")).startswith("tangere")
        if ours and (inspect.isclass(value) or inspect.isfunction(value)):
            assert value.__doc__, f"{name}.{symbol} has no docstring"


def public_calls() -> dict[str, inspect.Signature]:
    """Functions, constructors and methods that people call, by name."""
    found = {}
    for module in ("tangere", "tangere.query", "tangere.soft", "tangere.crowd", "tangere.view", "tangere.compat"):
        for value in listed(importlib.import_module(module)):
            if inspect.isfunction(value):
                found[f"{module}.{value.__name__}"] = inspect.signature(value)
            if type(value) is type:
                own = {name: getattr(value, name) for name in vars(value) if name == "__init__" or name[0] != "_"}
                methods = {
                    name: method
                    for name, method in own.items()
                    if inspect.isfunction(method) or inspect.ismethod(method)
                }
                found |= {f"{module}.{value.__name__}.{name}": inspect.signature(f) for name, f in methods.items()}
    return found


def test_what_may_choose_a_device_may_choose_its_threads():
    """But for a map of streets and a rod, which are laid out by the host and only put on the device."""
    calls = public_calls()
    choosing = {name for name, call in calls.items() if "device" in call.parameters}
    assert len(choosing) > 25
    laid_out = {"tangere.crowd.StreetMap.load", "tangere.soft.rod_arrays"}
    assert {name for name in choosing if "threads" not in calls[name].parameters} == laid_out


def test_what_goes_on_for_long_hears_of_progress():
    calls = public_calls()
    for name in ("tangere.check_path", "tangere.soft.Simulation.run", "tangere.crowd.Simulation.run"):
        assert calls[name].parameters["progress"].default is False, name


def test_every_pinned_version_is_one_the_project_allows():
    requirement = pytest.importorskip("packaging.requirements").Requirement
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    for entry in map(requirement, wanted):
        assert entry.specifier.contains(pins[entry.name.lower().replace("_", "-")]), entry


@pytest.mark.release
@pytest.mark.parametrize("page", ["README.md", "docs/start.md", "docs/index.md"])
def test_the_python_code_on_a_page_runs_and_finds_a_contact_within_the_step(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = _run_page(page)
    assert names["hit"].status == tangere.Status.CONTACT
    assert 0.0 < names["hit"].time <= names["hit"].time_upper < 1.0
    if "found" in names:
        assert 0 < names["found"].hit.sum() < len(names["found"].time)
    assert (tmp_path / "touch.png").is_file() == (page == "README.md")


@pytest.mark.release
@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("moving-triangles", "hit"),
        ("rigid-parts", "check"),
        ("dynamics", "run"),
        ("hand", "hand"),
        ("cylinders-on-terrain", "hit"),
        ("deforming-bodies", "near"),
        ("cells-and-crowds", "result"),
        ("needles", "near"),
        ("floor-plans", "done"),
        ("robots", "found"),
    ],
)
def test_the_python_code_on_a_page_of_a_system_runs_as_printed_and_finds_a_contact(page, found):
    assert _run_page(f"docs/systems/{page}.md")[found]


def test_every_page_of_a_system_starts_with_its_picture_and_its_code():
    for page in sorted((ROOT / "docs" / "systems").glob("*.md")):
        if page.stem == "index":
            continue
        text = page.read_text()
        assert re.match(rf"# .+\n\n!\[.+\]\(/_static/{page.stem}\.gif\)\n", text), page
        assert "```python" in text[: text.index("\n## ")], page


def test_pictures_of_the_documentation_are_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "_static").iterdir()}
    assert max(size for name, size in sizes.items() if name.endswith(".gif")) <= 1_000_000
    assert max(size for name, size in sizes.items() if not name.endswith(".gif")) <= 300_000
    assert sum(sizes.values()) <= 4_000_000


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_a_page_names_every_extra(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"^\| `([a-z]+)` \|", (ROOT / page).read_text(), re.MULTILINE)
    assert sorted(named) == sorted(extras)


def _run_page(page: str) -> dict:
    """Run the Python code of a page from top to bottom; what it has named then."""
    names: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_index_lists_every_page_of_benchmarks_and_the_readme_links_none_that_is_missing():
    folder = ROOT / "docs" / "benchmarks"
    pages = {path.stem for path in folder.glob("*.md")} - {"index"}
    linked = set(re.findall(r"\(docs/benchmarks/(\w+)\.md\)", (ROOT / "README.md").read_text()))
    assert linked - {"index"} <= pages
    lists = re.findall(r"```{toctree}(.*?)```", (folder / "index.md").read_text(), re.DOTALL)
    listed = [name for one in lists for name in re.findall(r"^\w+$", one, re.MULTILINE)]
    assert sorted(listed) == sorted(pages)


@pytest.mark.release
@pytest.mark.parametrize("home", sorted(tangere._HOMES))
def test_every_part_of_the_face_can_be_loaded_before_all_others(home):
    """Who loads it after something else does not meet a circle of imports."""
    done = subprocess.run([sys.executable, "-c", f"import tangere.{home}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
