"""JSON that any parser takes."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(data: Any) -> str:
    """`data` (dicts, lists, numbers, text) as JSON; infinity and NaN, which JSON lacks, are null."""
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
