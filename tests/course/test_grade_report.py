"""The teacher's page of a class: what it says, as a browser draws it."""

import re

import pytest

from tests.browser import dom
from tests.course.made_up import LOST, POOL, WRONG, passing, record
from tinygraph_course.content.exercise import find
from tinygraph_course.grading.class_report import page, write_report
from tinygraph_course.grading.grading import Result

EVIL = "<img src=http://x.example/a.png onerror=alert(1)>"
HIDDEN = {"1": passing(), "2": {"ok": False, "failure": {**LOST, "case": "pool(97)"}}}


def made_class():
    """Twelve: four with a mistake that has a name, three with none, four whole, one missing."""
    outcomes = [*4 * [(3, WRONG)], *3 * [(3, {**LOST, "text": EVIL})], *4 * [None]]
    results = []
    for at, outcome in enumerate(outcomes):
        step, failure = outcome or (None, None)
        passed = [1, 2] if outcome else [1, 2, 3, 4, 5]
        private = HIDDEN if outcome is None else {}
        results.append(
            Result(f"learner{at}", POOL, record(passed, step, failure, private), private=[1, 2])
        )
    results.append(Result(EVIL, POOL, None, "08_pool.py was not handed in", private=[1, 2]))
    names = [one.submission for one in results]
    results += [
        Result(name, find("map"), None, "09_map.cu was not handed in") for name in names[1:]
    ]
    results.append(Result("learner0", find("map"), None, "", "MemoryError: no"))
    return results


def test_nothing_of_a_learner_is_taken_for_html():
    html = page(made_class(), private=True)
    assert "<img src=http" not in html and "&lt;img src=http" in html
    assert html.count("http:") == html.count("http://x.example")  # as text, and nothing else


def test_without_mistakes_that_is_said():
    html = page([Result("ada", POOL, record([1, 2, 3, 4, 5]))])
    assert "No mistake of the catalogue was made." in html and "Every failure has a name." in html
    assert "Private cases" not in html and "Not graded" not in html


@pytest.mark.second
def test_what_a_teacher_reads(tmp_path):
    found = dom(write_report(made_class(), tmp_path / "report.html", private=True))
    text = " ".join(found.text.split())
    assert "11 of 12 handed it in; 4 have passed all 5 steps." in text
    progress = found.one("section", id="progress")
    rows = [[c.text for c in row.children] for row in progress.all("tr") if row.all("td")][:5]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("1 How many windows are there?", "11 of 12", "0"),
        ("2 The largest pixel of each window", "11 of 12", "0"),
        ("3 Where it lies", "4 of 12", "7"),
        ("4 The gradient goes to the winner", "4 of 12", "0"),
        ("5 An op of the graph", "4 of 12", "0"),
    ]
    for bar in found.all("meter"):  # no bar without its number in words
        numbers = re.findall(r"\d+", bar.text)
        assert [bar.attributes["value"], bar.attributes["max"]] == numbers
    mistakes = " ".join(found.one("section", id="mistakes").text.split())
    assert "8.3 window-lost" in mistakes and "4 of 12" in mistakes
    assert "One window is missing." in mistakes
    unnamed = " ".join(found.one("section", id="unnamed").text.split())
    assert "8 pool, step 3: values" in unnamed and "3 times." in unnamed
    assert "windows(size=3, kernel=3, stride=1) expected 1 got 0" in unnamed
    private = " ".join(found.one("section", id="private").text.split())
    assert "Tried of 8 steps that are passed; 4 pass them too." in private and "pool(97)" in private
    problems = found.one("section", id="problems").text
    assert "the grader: MemoryError: no" in problems and "was not handed in" in problems
    assert "learner10" in found.one("section", id="submissions").text


@pytest.mark.second
def test_on_a_telephone_nothing_is_wider_than_the_window(tmp_path):
    file = write_report(made_class(), tmp_path / "report.html", private=True)
    told = 'parent.postMessage(document.documentElement.scrollWidth, "*")'
    html = file.read_text().replace("style-src", "script-src 'unsafe-inline'; style-src")
    inner = html.replace("</body>", f"<script>{told}</script></body>")
    (tmp_path / "inner.html").write_text(inner)
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<script>onmessage = event => document.body.dataset.told = event.data</script>"
        '<iframe src="inner.html" width="400" height="900"></iframe>'
    )
    assert int(dom(frame).one("body").attributes["data-told"]) <= 400
