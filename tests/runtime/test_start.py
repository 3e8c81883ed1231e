"""The start: importing is quick and light, running is silent. Each test asks a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.release  # interpreters and their output, not indices; one test sets debug mode itself

KERNEL = """
    import warp as wp
    from tangere.runtime import SOUND, choose_device, launch

    wp.set_module_options(SOUND)

    @wp.kernel
    def double(first: int, x: wp.array[wp.float64]):
        i = first + wp.tid()
        x[i] = x[i] + x[i]

    cpu = choose_device("cpu")
    x = wp.full(10_000, 2.0, dtype=wp.float64, device=cpu)
    launch(double, 10_000, outputs=[x], device=cpu)
    assert (x.numpy() == 4.0).all()
"""


def _python(code: str, folder, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` as a script in a process of its own; it has to be a file, because Warp reads a kernel's source."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _successful(code: str, folder, **environment: str) -> subprocess.CompletedProcess[str]:
    done = _python(code, folder, **environment)
    assert done.returncode == 0, done.stderr
    return done


def test_importing_tangere_takes_less_than_half_a_second():
    def seconds() -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import tangere"], check=True, stdin=subprocess.DEVNULL)
        return time.perf_counter() - begin

    assert min(seconds() for _ in range(3)) < 0.5


def test_importing_tangere_imports_neither_warp_nor_anything_else_heavy(tmp_path):
    code = """
        import sys
        import tangere
        print(*sorted({"warp", "numpy", "scipy", "trimesh", "viser", "matplotlib", "rich", "click"} & set(sys.modules)))
    """
    assert _successful(code, tmp_path).stdout.split() == []


def test_importing_the_runtime_starts_no_gpu(tmp_path):
    code = """
        import tangere.runtime
        import warp as wp
        from warp._src import context
        assert context.runtime is None or not wp.is_cuda_available()
    """
    _successful(code, tmp_path)


def test_the_first_run_prints_nothing_but_that_it_compiles_and_later_runs_nothing_at_all(tmp_path):
    cache = str(tmp_path / "cache")
    first = _successful(KERNEL, tmp_path, WARP_CACHE_PATH=cache)
    assert first.stdout == ""
    assert first.stderr.strip() in ("", "tangere: compiling kernels (once)")
    second = _successful(KERNEL, tmp_path, WARP_CACHE_PATH=cache)
    assert (second.stdout, second.stderr) == ("", "")


def test_stderr_is_whole_after_the_start(tmp_path):
    code = """
        import os, sys
        from tangere.runtime import choose_device
        choose_device("cpu")
        os.write(2, b"native ")
        print("python", file=sys.stderr)
    """
    assert _successful(code, tmp_path).stderr.split() == ["native", "python"]


@pytest.mark.skipif(os.name != "posix", reason="closes a file descriptor the POSIX way")
def test_a_process_without_stderr_starts_too(tmp_path):
    assert _successful("import os; os.close(2)\n" + textwrap.dedent(KERNEL), tmp_path).stdout == ""


def test_debug_mode_stops_a_kernel_that_writes_out_of_range(tmp_path):
    code = KERNEL.replace("launch(double, 10_000,", "launch(double, 10_001,")
    done = _python(code, tmp_path, TANGERE_DEBUG="1", WARP_CACHE_PATH=str(tmp_path / "cache"))
    assert done.returncode != 0
    assert "Assertion failed" in done.stderr
