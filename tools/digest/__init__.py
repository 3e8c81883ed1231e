"""Has any answer changed? Thousands of questions to every system, with fixed seeds, and a digest of all answers.

    python -m tools.digest --out answers.npz              # every answer column, a hash for each section and one of all
    python -m tools.digest --compare before.npz after.npz # which columns differ, and by how much
    python -m tools.digest --quick --sections soft,crowd  # a part of the questions; some of the sections
    python -m tools.digest --record                       # what tests/test_digest.py compares with

Everything is asked through the face of the library, on the CPU; names that move or change are in `tools.words`. Keys
are "section/case/column". Answers have the same bits for any number of threads, and from run to run; times taken are
left out. To compare two source trees, run the first command with each of them on PYTHONPATH.
"""

from importlib import import_module

from tools.digest.answers import SECTIONS, Book
from tools.digest.comparison import compare, digest, take
from tools.digest.recorded_answers import RECORD, check, load_record, record

__all__ = ["RECORD", "SECTIONS", "Book", "check", "compare", "digest", "load_record", "record", "take"]

#: Modules with the questions of the sections, in the order in which they are asked.
_QUESTIONS = (
    "moving_triangles",
    "rigid_parts",
    "instants",
    "ground",
    "soft_bodies",
    "cell_maps",
    "crowds",
    "shapes_and_motions",
    "files_and_pictures",
)
for _name in _QUESTIONS:
    import_module(f"tools.digest.{_name}")
