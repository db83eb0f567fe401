"""A solution with other bodies in its gaps: kernels in the manner of learners."""

from tinygraph_course.content.marks import Gap, parts


def with_step(exercise, step, body):
    """The solution with another body in one of its gaps."""
    lines = []
    for part in parts(exercise.marked):
        if isinstance(part, Gap):
            lines += body.strip("\n").splitlines() if part.step == step else part.lines
        else:
            lines.append(part)
    return "\n".join(lines) + "\n"


def changed(exercise, step, body, edits):
    """The same with edits of that body, each of which fits once."""
    for old, new in edits:
        assert body.count(old) == 1, old
        body = body.replace(old, new)
    return with_step(exercise, step, body)
