"""The Markdown of an exercise: what is read, and what is said of a file that is none of it."""

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph_course.content import pages
from tinygraph_course.content.edits import edited, read_hunks

MARKED = """\
def twice(x):
    # BEGIN SOLUTION 1: add it
    y = x
    return x + y
    # END SOLUTION
"""
MISTAKE = """\
# Words for people

## Step 1: squared

You multiply.
It is a sum.

```diff
-    return x + y
+    return x * y
```

or

```diff
     y = x
-    return x + y
+    return x ** 2
@@
-def twice(x):
+def twice(x, y=2):
```
"""
ANSWERS = """\
## Step 1, right: a product

```python
return 2 * x
```

## Step 1, unknown: three

From: a product

```diff
-    return 2 * x
+    return 3 * x
```
"""


def file(folder, text):
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mistake_has_words_and_ways(tmp_path):
    (mistake,) = pages.mistakes(file(tmp_path, MISTAKE))
    assert (mistake.step, mistake.name) == (1, "squared")
    assert mistake.says == "You multiply.\nIt is a sum."
    one, other = mistake.ways
    assert [hunk[:2] for hunk in one] == [(("    return x + y",), ("    return x * y",))]
    text = edited("def twice(x):\n    y = x\n    return x + y\n", other)
    assert text == "def twice(x, y=2):\n    y = x\n    return x ** 2\n"


def test_an_answer_is_a_body_or_edits_another_one(tmp_path):
    right, other = pages.answers(file(tmp_path, ANSWERS), MARKED)
    assert (right.verdict, right.text) == ("right", "def twice(x):\n    return 2 * x\n")
    assert (other.name, other.text) == ("three", "def twice(x):\n    return 3 * x\n")


def test_hints_go_on_in_further_lines(tmp_path):
    text = "## Step 2: A title\n\n1. one\n2. two and\n   more\n3. return ____\n"
    assert pages.titles(file(tmp_path, text)) == [
        pages.Titled(2, "A title", ("one", "two and more", "return ____"))
    ]


@pytest.mark.parametrize(
    ("read", "text", "line", "says"),
    [
        (
            "mistakes",
            "## Step one: a\n",
            1,
            "## Step 1: name-of-the-mistake, got Step one",
        ),
        ("mistakes", "\n## Step 1: a\n\nwords\n", 2, "a block ```diff"),
        ("mistakes", "## Step 1: a\nw\n```diff\n-a\n+b\n```\nmore\n", 1, "got more"),
        ("mistakes", "## Step 1: a\nw\n```diff\n-a\n+b\n", 3, "a block that ends with ```"),
        ("mistakes", "## Step 1: a\nw\n```diff\na\n```\n", 3, "a blank, -, "),
        ("mistakes", "## Step 1: a\nw\n```diff\n a\n```\n", 3, "lines that change"),
        ("mistakes", "## Step 1: a\nw\n```diff\n+a\n```\n", 3, "lines that change, and where"),
        ("titles", "## Step 1: a\n\n2. second\n", 1, "hints `1. ...`"),
        ("titles", "## a\n", 1, "## Step 1: its title"),
        ("answers", "## Step 1: a\n", 1, "## Step 1, right: its name"),
        ("answers", "## Step 1, right: a\nFrom: b\n```diff\n-a\n+b\n```\n", 1, "one answer above"),
        ("answers", "## Step 1, right: a\n", 1, "one block"),
    ],
)
def test_what_is_none_is_told_with_its_line(tmp_path, read, text, line, says):
    path = file(tmp_path, text)
    more = (MARKED,) if read == "answers" else ()
    with pytest.raises(ArgumentError) as raised:
        getattr(pages, read)(path, *more)
    assert f"{path}, line {line}: " in str(raised.value) and says in str(raised.value)


@pytest.mark.parametrize(("text", "times"), [("a\nb\na\n", 2), ("b\n", 0)])
def test_an_edit_that_has_rotted(text, times):
    with pytest.raises(
        ArgumentError, match=f"here: expected .* once in the text, got {times} times"
    ):
        edited(text, read_hunks(["-a", "+c"], "here"))
