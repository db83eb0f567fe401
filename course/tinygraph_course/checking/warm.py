"""What a learner may draw problems with, loaded before his process is forked: there no file opens.

hypothesis loads the modules of its strategies when they are first asked for.  And the first time
that it tries a constant, as it does with one draw of twenty, it looks for some in all modules.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules

with suppress(ImportError):  # hypothesis is an extra
    import_module("hypothesis.extra.numpy")
    _parts = import_module("hypothesis.strategies._internal")
    for _part in iter_modules(_parts.__path__):
        with suppress(ImportError):  # those for libraries that are absent
            import_module(f"{_parts.__name__}.{_part.name}")
    import_module("tinygraph_course.checking.child")
    from hypothesis import strategies as st

    from tinygraph.testing.drawing import search

    search(st.lists(st.integers(), min_size=50), lambda numbers: None, 20)
