"""What packages and classes say of themselves to a plan: `__plan__`, of a class or of a package.

    "known"      its ops make the same calls at each run; no object of it leaves anything behind
    "settings"   known, but for attributes that users change: layers
    "program"    written as users write: all of it is looked into
    "optim"      known, but for the numbers of its groups: optimisers and schedules

A package speaks for the modules and packages below it that say nothing themselves, and for their
classes; a class does not speak for those that are made of it.  Users' code says nothing, or what
holds of it: `__plan__ = "known"` in a class makes an op of theirs one like ours.
"""

from __future__ import annotations

import sys
from functools import cache


@cache
def declared(module: str, word: str = "__plan__") -> str:
    """What a module's packages say, the innermost first; "" where none does.

    >>> declared("tinygraph.ops.elementwise.relu"), declared("tinygraph.nn.linear"), declared("os")
    ('known', 'settings', '')
    """
    parts = module.split(".")
    around = [sys.modules.get(".".join(parts[:count])) for count in range(len(parts), 0, -1)]
    return next((vars(m)[word] for m in around if m and word in vars(m)), "")


def declared_of(kind: type, word: str = "__plan__") -> str:
    """What a class says, or the packages that it stands in."""
    return str(vars(kind).get(word) or declared(kind.__module__, word))
