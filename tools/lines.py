"""How many lines of code are in each room: blank lines, comments and docstrings do not count.

python -m tools.lines                      # this tree
python -m tools.lines ../other/src         # another one beside it
python -m tools.lines --old-rooms          # without what was added later, as `later.toml` lists it
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["code_lines", "definition_lines", "later_lines", "lines_by_room", "main"]

SOURCE = Path(__file__).resolve().parents[1] / "src"
#: Rooms that stand beside the others and are not part of the sum.
BESIDE = ("published",)
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_LATER = Path(__file__).with_name("later.toml")


def code_lines(text: str) -> int:
    """Lines of a module that hold code; a string that is no docstring is code, line by line but for blank ones."""
    return len(_numbers_of_code(text))


def definition_lines(text: str, name: str) -> int:
    """Lines of code of one function, class, method ("Class.method") or variable of a module; 0 if it has none."""
    node: ast.AST | None = ast.parse(text)
    for part in name.split("."):
        node = next((each for each in getattr(node, "body", ()) if part in _names(each)), None)
    if not isinstance(node, ast.stmt):
        return 0
    decorators = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
    lines = range(min([node.lineno, *decorators]), (node.end_lineno or 0) + 1)
    return len(_numbers_of_code(text).intersection(lines))


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [getattr(node, "name", "")]


def _numbers_of_code(text: str) -> set[int]:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            found.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = text.splitlines()
    return {number for number in found if lines[number - 1].strip()}


def lines_by_room(source: Path = SOURCE) -> Counter[str]:
    """Lines of code of each folder of the package, and of the modules beside them as "face"."""
    root, found = source / "tangere", Counter[str]()
    for path in root.rglob("*.py"):
        found[_room(path.relative_to(root))] += code_lines(path.read_text(encoding="utf-8"))
    return found


def later_lines(source: Path = SOURCE) -> Counter[str]:
    """Lines of code of each room that were added later; what is listed and not there any more counts nothing."""
    root, found = source / "tangere", Counter[str]()
    later = tomllib.loads(_LATER.read_text(encoding="utf-8"))
    for paths in later["modules"].values():
        for name in paths:
            found[_room(Path(name))] += _lines_below(root / name)
    for name, before in later["before"].items():
        found[_room(Path(name))] += max(_lines_below(root / name) - before, 0)
    for name, definitions in later["definitions"].items():
        text = (root / name).read_text(encoding="utf-8") if (root / name).exists() else ""
        found[_room(Path(name))] += sum(definition_lines(text, each) for each in definitions)
    for name, count in later["lines"].items():
        found[_room(Path(name))] += count
    return found


def _lines_below(start: Path) -> int:
    modules = [start] if start.is_file() else start.rglob("*.py")
    return sum(code_lines(path.read_text(encoding="utf-8")) for path in modules)


def _room(path: Path) -> str:
    return "face" if len(path.parts) == 1 and path.suffix == ".py" else path.parts[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.lines", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("others", type=Path, nargs="*", help="folders that hold the package, such as src")
    parser.add_argument("--old-rooms", action="store_true", help="this tree without what was added later")
    given = parser.parse_args(arguments)
    trees = [lines_by_room(source) for source in (SOURCE, *given.others)]
    if given.old_rooms:
        trees[0] = Counter({room: count for room, count in (trees[0] - later_lines()).items() if count})
    for room in sorted(set().union(*trees), key=lambda name: -trees[0][name]):
        print(f"{room:14s}" + "".join(f"{tree[room]:8d}" for tree in trees))
    total = [sum(count for room, count in tree.items() if room not in BESIDE) for tree in trees]
    print(f"{'without ' + ', '.join(BESIDE):14s}"[:20] + "".join(f"{count:8d}" for count in total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
