"""Plans: a graph that is run many times, with buffers laid out once, ops fused, the batch in tiles.

    function --tracing--> code --rewrites--> code --runner--> the same numbers, to rounding

`tg.compile(fn)` makes plans for a function as it is called; `tg.plan(graph)` makes one for a graph
that is there, to be read and run.
"""

from tinygraph.plan.compiled import Compiled, compile
from tinygraph.plan.graph_plan import GraphPlan, plan

__all__ = ["Compiled", "GraphPlan", "compile", "plan"]
