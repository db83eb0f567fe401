"""Exercise 15: the mailboxes that its workers send to, and what is seen of a ring."""

import numpy as np
import pytest

from tests.course.test_parallel import PARALLEL, SOLUTION, with_body
from tinygraph_course.checking.check import opened
from tinygraph_course.checking.own import Own, Stumbled
from tinygraph_course.checking.steps import module
from tinygraph_course.exercises.parallel.steps import ring_differs

PRINTS = """
    W = len(parts)
    print("begin", rank)
    for t in range(2 * W - 2):
        k = (rank - t - 1) % W
        send((rank + 1) % W, parts[(rank - t) % W])
        parts[k] = receive((rank - 1) % W) + (t < W - 1) * parts[k]
    print("end", rank)
    return parts
"""


def called(text, tmp_path, function, *arguments):
    file = tmp_path / PARALLEL.file
    file.write_text(text)
    with opened(PARALLEL, file) as learner:
        value = Own(PARALLEL, learner).call(function, *arguments)
        return value, learner.output()


def test_what_a_worker_prints_stands_there_once(tmp_path):
    gradients = [np.arange(3.0), np.ones(3), np.full(3, 10.0)]
    sums, printed = called(with_body("ring", PRINTS), tmp_path, "tg_sums", gradients)
    assert [s.tolist() for s in sums] == [[11, 12, 13]] * 3
    assert sorted(printed.splitlines()) == [f"{w} {r}" for w in ("begin", "end") for r in range(3)]


def test_of_a_deadlock_it_is_said_who_waits_and_where(tmp_path):
    body = "\n    return [receive((rank + 1) % len(parts)) for _ in parts]\n"
    with pytest.raises(Stumbled, match="worker 0 for worker 1, 1 for worker 2, 2 for") as caught:
        called(with_body("ring", body), tmp_path, "tg_sums", [np.ones(3)] * 3)
    assert caught.value.source == body.strip()


def test_no_array_is_shared_by_mailboxes(tmp_path):
    """What is sent is what it was then, and what is received is one's own."""
    body = """
    W, mine = len(parts), parts[0] + 0
    send((rank + 1) % W, mine)
    mine += 100
    came = receive()
    came += rank
    return [came] * W
"""
    results, _ = called(with_body("ring", body), tmp_path, "tg_sums", [np.ones(2), np.ones(2)])
    assert [r.tolist() for r in results] == [[1, 1], [2, 2]]


@pytest.mark.parametrize("workers", range(1, 8))
def test_the_ring_sends_what_is_promised(workers):
    """Thakur, Rabenseifner, Gropp (2005): 2 (W - 1) messages, 2 (W - 1) / W of the numbers."""
    gradients = np.random.default_rng(workers).standard_normal((workers, workers, 2))
    given = [list(parts) for parts in gradients]
    found = SOLUTION.tg_ring(given)
    for results, sent in found:
        for mine in results:
            np.testing.assert_allclose(mine, gradients.sum(0), rtol=1e-12)
            np.testing.assert_array_equal(mine, found[0][0][0])
        assert [len(each) for each in sent] == [2 * (workers - 1)] * workers
        assert all(size == 2 for each in sent for _, size in each)
    assert ring_differs(found, found) == ""


def test_other_bits_are_seen_that_no_tolerance_sees():
    text = PARALLEL.variants(next(m for m in PARALLEL.mistakes if m.name == "order-by-arrival"))[1]
    wrong, case = module(text + PARALLEL.harness), [[np.array([x])] * 3 for x in (0.1, 0.2, 0.3)]
    words = ring_differs(wrong.tg_ring(case), SOLUTION.tg_ring(case))
    assert words.startswith("values: other bits when others come first") and "0.60000000" in words
