"""The zip archive that Gradescope takes: setup.sh, run_autograder, and all that they need.

The format: gradescope-autograders.readthedocs.io, "Autograder Specifications", sections "Autograder
Specifications" and "File hierarchy".  AUTOGRADER_ROOT stands for /autograder where this is tried.
"""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tinygraph.base.json_text import to_json
from tinygraph.files.sealed import write_atomically
from tinygraph_course.content.exercise import Exercise, exercises
from tinygraph_course.grading.gradescope import broken
from tinygraph_course.grading.packages import files, is_ours, program_files
from tinygraph_course.grading.private import Pack

NEEDED = ("numpy", "pyelftools", "safetensors", "threadpoolctl", "tqdm", "hypothesis")
_TIME = (2000, 1, 1, 0, 0, 0)  # of every file: the same archive is made twice

SETUP = """\
#!/usr/bin/env bash
# Run once, as root, when Gradescope builds the image: Python, a compiler, and the emulator.
set -euo pipefail
ROOT=${AUTOGRADER_ROOT:-/autograder}
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends g++ python3 python3-venv
PYTHON=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
    PYTHON=python3.11
fi
"$PYTHON" -m venv "$ROOT/venv"
"$ROOT/venv/bin/python" -m pip install --no-cache-dir -r "$ROOT/source/requirements.txt"
export PYTHONPATH=$ROOT/source TINYGRAPH_CACHE=$ROOT/cache
"$ROOT/venv/bin/python" -m tinygraph doctor --warm
"""

RUN = """\
#!/usr/bin/env bash
# Run for each submission. First of all there is a result, for the case that nothing else ends well.
ROOT=${{AUTOGRADER_ROOT:-/autograder}}
PYTHON=${{AUTOGRADER_PYTHON:-$ROOT/venv/bin/python}}
mkdir -p "$ROOT/results"
cat > "$ROOT/results/results.json" <<'RESULTS'
{first}
RESULTS
export PYTHONPATH=$ROOT/source TINYGRAPH_CACHE=$ROOT/cache TINYGRAPH_EXERCISES=
if [ -d "$ROOT/source/exercises" ]; then export TINYGRAPH_EXERCISES=$ROOT/source/exercises; fi
cd "$ROOT" || exit 1
PACK=()
if [ -f "$ROOT/source/pack.toml" ]; then PACK=(--private "$ROOT/source/pack.toml"); fi
"$PYTHON" -m tinygraph_course grade "$ROOT/submission" "${{PACK[@]}}" \\
    --gradescope "$ROOT/results/results.json" --out "$ROOT/grades" {options}
exit 0
"""


def write_autograder(
    target: Path, asked: Sequence[Exercise], pack: Pack | None = None, reveal: str = "none"
) -> Path:
    """Write the archive.

    Parameters
    ----------
    target : Path
    asked : sequence of Exercise
        Those that a submission shall have.
    pack : Pack, optional
    reveal : str
        What is told of a private case that fails; see `gradescope.results_json`.

    Returns
    -------
    Path
        The archive: the package as it is installed here, and the versions of what it needs.
    """
    options = ["--reveal", reveal]
    for exercise in asked:
        options += ["--exercise", exercise.name]
    first = to_json(
        "results.json", broken("The grading was begun and did not end. Tell your teacher.")
    )
    scripts = {
        "setup.sh": SETUP,
        "run_autograder": RUN.format(first=first, options=shlex.join(options)),
    }
    texts = {"requirements.txt": requirements()}
    if pack is not None:
        texts["pack.toml"] = pack.content.decode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            _add(archive, name, text.encode(), 0o755)
        for name, text in texts.items():
            _add(archive, name, text.encode())
        for name, path in program_files():
            _add(archive, name, path.read_bytes())
        others = [exercise for exercise in asked if not is_ours(exercise.folder)]
        for exercise in [*others, *(one for one in exercises() if is_ours(one.folder))]:
            place = "tinygraph_course/exercises" if is_ours(exercise.folder) else "exercises"
            for path in files(exercise.folder):
                inner = path.relative_to(exercise.folder.parent)
                _add(archive, (Path(place) / inner).as_posix(), path.read_bytes())
    return write_atomically(target, out.getvalue())


def requirements() -> str:
    """What tinygraph needs for the course, in the versions that are installed here."""
    lines = []
    for name in NEEDED:
        try:
            lines.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            lines.append(name)
    return "\n".join([*lines, ""])


def _add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100000 | mode) << 16
    archive.writestr(entry, content)
