"""How many lines of code are in each room: blank lines, comments and docstrings do not count.

python -m tools.lines                      # this tree
python -m tools.lines ../other/src         # another one beside it
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["code_lines", "lines_by_room", "main"]

SOURCE = Path(__file__).resolve().parents[1] / "src"
#: Rooms that stand beside the others and are not part of the sum.
BESIDE = ("published",)
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Lines of a module that hold code; a string that is no docstring is code, line by line but for blank ones."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            found.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = text.splitlines()
    return sum(1 for number in found if lines[number - 1].strip())


def lines_by_room(source: Path = SOURCE) -> Counter[str]:
    """Lines of code of each folder of the package, and of the modules beside them as "face"."""
    root, found = source / "tangere", Counter[str]()
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).parts
        found[parts[0] if len(parts) > 1 else "face"] += code_lines(path.read_text(encoding="utf-8"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.lines", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("others", type=Path, nargs="*", help="folders that hold the package, such as src")
    trees = [lines_by_room(source) for source in (SOURCE, *parser.parse_args(arguments).others)]
    for room in sorted(set().union(*trees), key=lambda name: -trees[0][name]):
        print(f"{room:14s}" + "".join(f"{tree[room]:8d}" for tree in trees))
    total = [sum(count for room, count in tree.items() if room not in BESIDE) for tree in trees]
    print(f"{'without ' + ', '.join(BESIDE):14s}"[:20] + "".join(f"{count:8d}" for count in total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
