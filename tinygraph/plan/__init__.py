"""Plans: a graph that is run many times, with buffers laid out once, ops fused, the batch in tiles.

    function --tracing--> code --rewrites--> code --runner--> the same numbers, to rounding

`tg.compile(fn)` makes plans for a function as it is called; `tg.plan(graph)` makes one for a graph
that is there, to be read and run.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy

if TYPE_CHECKING:
    from tinygraph.plan.compiled import CompiledFunction, compile
    from tinygraph.plan.graph_plan import GraphPlan, plan
else:
    # `import tinygraph` loads this file, and the room when a plan is wanted.
    _HOMES = {
        "CompiledFunction": "tinygraph.plan.compiled",
        "GraphPlan": "tinygraph.plan.graph_plan",
        "compile": "tinygraph.plan.compiled",
        "plan": "tinygraph.plan.graph_plan",
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES)

__all__ = ["CompiledFunction", "GraphPlan", "compile", "plan"]
