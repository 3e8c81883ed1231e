"""The house stands as docs/architecture.md says: floors, doors, sizes and names."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import tangere
from tools.api import ROOMS

SOURCE = Path(tangere.__path__[0])
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in SOURCE.rglob("*.py")
}
PLACES = {path.relative_to(SOURCE).as_posix(): path for path in MODULES.values()}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
#: Words of the public face that several systems use.
SHARED_NAMES = {"Body", "Simulation", "Recorder", "Recording"}
#: Imports of another room's inner modules: docs/architecture.md says why.
INNER_DOORS = {
    ("query.first_contact.rigid.cpu.simd_advance", "geometry.simd.four_oriented_boxes"),
    ("query.distance.convex.supports", "geometry.simd.farthest_point"),
    ("bvh.eights.simd_descent", "geometry.simd.oriented_boxes"),
    ("query.distance.cpu.simd_descent", "geometry.simd.oriented_boxes"),
    ("query.intersection.cpu.simd_gaps", "geometry.simd.triangle_gaps"),
    ("soft.validation", "query.first_contact.deforming.culling"),
    ("soft.validation", "query.first_contact.primitives.edge_face"),
}
#: The modules that the main questions may load, themselves included, by the module each begins with.
ROADS = {
    "query.first_contact.deforming.api": 75,
    "query.first_contact.rigid.api": 100,
    "query.manifold.api": 70,
    "soft.simulation": 170,
    "crowd.simulation": 95,
}
#: Where C++ stands in strings: what the compiler turns into SIMD instructions, what suits one device, the thread pool.
NATIVE = ("geometry/simd/", "runtime/thread_pool/", "bvh/wide/", "bvh/eights/", "/cpu/", "/cuda/")

WIDE_CASTS = ("real", "wp.float64", "wp.int64", "wp.uint64")


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imported(tree: ast.Module) -> set[str]:
    """Modules of the library that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tangere":
            stem = node.module.removeprefix("tangere").lstrip(".")
            inner = {f"{stem}.{alias.name}".lstrip(".") for alias in node.names}
            found |= {name if name in MODULES else stem for name in inner}
    return found - {""}


def test_other_rooms_come_in_by_the_door():
    doors = set()
    for name, tree in trees().items():
        room = name.split(".")[0]
        if room in ("", "published"):
            continue
        for other in imported(tree):
            inner = other.count(".") >= 2 or (other.count(".") == 1 and other not in PACKAGES)
            inner = inner and f"tangere.{other}" not in ROOMS
            if other.split(".")[0] != room and inner:
                doors.add((name, other))
    assert doors <= INNER_DOORS


@pytest.mark.parametrize("begin", ROADS)
def test_roads_stay_short(begin):
    """What may load later, in a function or for types only, counts as well: who reads on has to know it."""
    seen, waiting = set[str](), [begin]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imported(trees()[name])
    assert len(seen) <= ROADS[begin]


def test_one_class_name_is_one_class():
    places = defaultdict(list)
    for name, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED_NAMES} == {}


def test_no_folder_and_no_file_is_too_large():
    folders = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert [folder for folder, count in folders.items() if count > 15] == []
    assert [name for name, path in MODULES.items() if len(path.read_text(encoding="utf-8").splitlines()) > 600] == []


def test_imports_by_string_are_few():
    """They hide what a call loads: only the face, the lookup of documents and of `view`, and optional packages do it.

    `tangere warm` goes through all modules there are, and names none.
    """
    ours = {"", "cli.shared.kernels", "runtime.late_imports"}
    optional = {"cli.shared.extras", "shape.tets.files"}  # whose functions are given the name of a package
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or name in ours:
                continue
            if getattr(node.func, "id", getattr(node.func, "attr", "")) in ("import_module", "__import__"):
                package = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                assert name in optional if package is None else package.split(".")[0] != "tangere", name


def chart_lines() -> list[tuple[str, list[str], str]]:
    """Of the charts of docs/architecture.md: names, the file they are in, and the file the chart begins with."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    roads = page.split("## The roads")[1].split("## Where to add")[0]
    found = []
    for chart in re.findall(r"^```\n(.*?)^```", roads, re.DOTALL | re.MULTILINE):
        begins = re.findall(r"[\w/]+\.py", chart)[:1]
        for line in chart.splitlines():
            columns = [part for part in re.split(r"\s{2,}", line.strip(" │├└")) if part]
            if columns:
                found.append((line, columns, begins[0] if begins else ""))
    return found


def modules_named(path: str, beginning: str) -> list[Path]:
    """The modules a chart means by a path: those that end so, nearest to where the chart begins."""
    fitting = [one for one in PLACES if f"/{one}".endswith(f"/{path}")]
    for folder in [*Path(beginning).parents]:
        near = [one for one in fitting if str(folder) == "." or one.startswith(f"{folder.as_posix()}/")]
        if near:
            return [PLACES[one] for one in near]
    return [PLACES[one] for one in fitting]


@cache
def defined_in(path: Path) -> set[str]:
    """Functions, classes and methods of a module, those within functions included; `Class.method` too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


def names_in(column: str) -> list[str]:
    """What a column of a chart calls by its name: words that stand alone between commas, arrows and labels."""
    column = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)|\[kernels?\]", "", column.rpartition(": ")[2])
    pieces = [piece.strip() for piece in re.split(r"[,→·]|\bof\b", column)]
    return [piece for piece in pieces if re.fullmatch(r"\.?[A-Za-z_]\w*(\.\w+)?", piece) and not piece.endswith(".py")]


def test_what_a_line_of_a_chart_names_is_in_the_file_it_names():
    wrong, checked = [], 0
    for line, columns, beginning in chart_lines():
        claims = [(name, re.findall(r"[\w/]+\.py", " ".join(columns[1:2]))) for name in names_in(columns[0])]
        claims += [(name, [path]) for name, path in re.findall(r"→ ([\w.]+), ([\w/]+\.py)", " ".join(columns[2:]))]
        for name, paths in claims:
            if not paths or name.startswith("tg."):
                continue
            known = set().union(*(defined_in(one) for path in paths for one in modules_named(path, beginning)))
            short = name.lstrip(".") if not name[0].islower() or "." not in name else name.partition(".")[2]
            checked += 1
            if short not in known:
                wrong.append((name, line))
    assert wrong == []
    assert checked > 100


def test_every_path_of_a_chart_is_a_module():
    paths = {path for line, _, _ in chart_lines() for path in re.findall(r"[\w/]+\.py", line)}
    assert [path for path in sorted(paths) if not modules_named(path, "")] == []


def test_the_page_of_a_room_names_each_of_its_modules():
    """Commands by what people type."""
    pages = SOURCE.parents[1] / "docs" / "rooms"
    missing = []
    for name, path in MODULES.items():
        room, _, module = name.partition(".")
        if path.name != "__init__.py" and module:
            word = path.stem.replace("_", "[_-]")
            if not re.search(rf"\b{word}\b", (pages / f"{room}.md").read_text(encoding="utf-8")):
                missing.append(name)
    assert missing == []


def test_kernels_are_launched_by_the_runtime():
    """Six modules call Warp themselves: docs/rooms/runtime.md says why."""
    callers = {name for name, path in MODULES.items() if "wp.launch(" in path.read_text(encoding="utf-8")}
    assert {name for name in callers if not name.startswith("runtime.")} == {
        "query.clearance.cuda.block_search",
        "query.first_contact.primitives.small_batch",
        "query.first_contact.rigid.cuda.block_search",
        "query.manifold.api",
        "soft.safe_step.truncation_state",
        "soft.solver.cuda.sweeps",
    }


def test_constants_that_a_kernel_casts_to_64_bits_are_not_used_again_in_it():
    """Warp 1.19 makes the constant itself the variable: other uses of it in the function see what that becomes."""
    found = []
    for name, tree in trees().items():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or not is_of_kernels(function):
                continue
            used = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in WIDE_CASTS:
                    names = [of.id for of in call.args if isinstance(of, ast.Name)]
                    found += [(name, function.name, of) for of in names if of.isupper() and used[of] > 1]
    assert found == []


def is_of_kernels(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(mark).startswith(("wp.func", "wp.kernel")) for mark in function.decorator_list)


def test_cpp_in_strings_stands_where_decision_12_says():
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in MODULES.values()}
    native = {name for name, text in texts.items() if "func_native" in text}
    assert len(native) > 20
    elsewhere = {name for name in native if not any(place in f"/{name}" for place in NATIVE)}
    assert elsewhere == {"published/leonard_grid/grid/simd.py", "query/manifold/details.py"}


def test_the_glossary_has_the_words_of_the_field():
    page = (SOURCE.parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    # The line above the dashes is a table's header.
    rows = [line for line, below in zip(lines, [*lines[1:], ""]) if line[:1] == "|" and below[:2] != "|-"]
    terms = Counter(row.split("|")[1].strip() for row in rows if row[:2] != "|-")
    assert len(terms) > 40
    assert [term for term, count in terms.items() if count > 1] == []
    for word in ("conservative advancement", "time of impact", "thread pool", "SIMD", "island", "BVH", "narrow phase"):
        assert word.lower() in page.lower(), word


@pytest.mark.parametrize("word", ["desk", "story", "newspaper"])
def test_no_name_is_a_metaphor(word):
    named = [name for name in MODULES if word in name.split(".")[-1].split("_")]
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and word in node.name.lower().split("_"):
                named.append(f"{name}.{node.name}")
    assert named == []
