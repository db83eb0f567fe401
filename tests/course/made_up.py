"""Records as a grading makes them, without one."""

from tinygraph_course.content.exercise import find

POOL = find("pool")
LOST = {
    "kind": "values",
    "text": "",
    "case": "windows(size=3, kernel=3, stride=1)",
    "expected": "1",
    "got": "0",
    "line": None,
    "source": "",
    "mistake": None,
    "sure": True,
    "picture": "",
    "block": 0,
}
WRONG = {
    **LOST,
    "mistake": {"step": 3, "name": "window-lost", "says": "One window is missing."},
}


def passing():
    return {"ok": True, "failure": None}


def record(passed, step=None, failure=None, private=None, counted=None, printed=""):
    public = {"passed": passed, "step": step, "failure": failure, "printed": printed}
    return {
        "exercise": "pool",
        "public": {**public, "ok": failure is None},
        "private": private or {},
        "has_private": [],
        "bytes": counted or {},
        "seconds": 0.1,
    }
