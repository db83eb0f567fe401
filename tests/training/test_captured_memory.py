"""What a replay launches and copies, and where its arrays lie."""

import gc
import weakref

import pytest

import tinygraph as tg
from tests.training.captured import batch, folder, graph_of, losses, worker
from tests.training.networks import EPOCHS, loaders

pytestmark = [
    pytest.mark.second,
    pytest.mark.usefixtures("rehearsed_cuda"),
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]


@pytest.mark.stand_in
def test_a_replay_launches_nothing_of_its_own():
    from cupy._module import launches

    trainer = worker(None, True)
    with tg.training.evaluation.mode(trainer.model, training=True):
        for _ in range(3):
            trainer.step(*batch())
        graph = graph_of(trainer)
        del launches[:]
        trainer.step(*batch())
        assert graph_of(trainer) is graph is not None and not launches
        trainer.step(*batch(4))
        assert launches
        trainer.step(*batch())
        assert graph_of(trainer) is graph


def test_a_plan_has_its_arrays_in_one_arena(rehearsed_cuda):
    """Of the step's own pool: what the graph launches finds them where they were."""
    trainer = worker(None, True, compile=True, loss=lambda y, t: tg.mean(y * y))
    trainer.model.train(True)
    for _ in range(4):
        trainer.step(*batch())
    (plan,) = [made.plans[0] for made in trainer._step.differentiate._found]
    (program,) = plan._workers[0].programs.values()
    arrays = [
        a
        for memory in program._memories.values()
        for a in memory.arrays
        if a is not None and a.size
    ]
    assert len(arrays) > 10 and all(isinstance(a, rehearsed_cuda.ndarray) for a in arrays)
    first = min(a.data.ptr for a in arrays)
    assert max(a.data.ptr + a.nbytes for a in arrays) - first <= program.bytes
    assert program.bytes < program.requested
    assert all(a.data.ptr % 256 == 0 for a in arrays)
    alive = weakref.ref(plan)
    trainer._step.differentiate._found.clear()
    del plan, program, arrays
    gc.collect()
    assert alive() is not None  # the graph keeps what it writes to
    trainer._step.recorded.graph = None
    gc.collect()
    assert alive() is None


@pytest.mark.stand_in
@pytest.mark.parametrize("capture", [None, False])
def test_batches_of_the_host_go_through_pinned_memory(tmp_path, capture):
    """Those of training and of validation, copied ahead by the same stream as with `device`."""
    from cupy._memory import pageable

    trainer = worker(folder(tmp_path / "run"), capture)
    train, held_out = loaders()
    sizes = {inputs.nbytes for one in (train, held_out) for inputs, _ in one}
    del pageable[:]
    trainer.fit(*loaders(), EPOCHS)
    assert pageable and max(pageable) < min(sizes)  # rates and tables of an optimiser alone
    there = [one.batches(tg.device("cuda")) for one in loaders()]
    assert all(type(part) is tg.Tensor for one in there for batch in one for part in batch)


def test_a_replay_copies_no_running_statistics(monkeypatch):
    """It cannot end half done; and the modules are not walked through again."""
    trainer = worker(None, None)
    losses(trainer, 4)
    monkeypatch.setattr(tg.nn.Module, "named_modules", lambda self: pytest.fail("a walk"))
    copied = []
    monkeypatch.setattr(trainer._step.undo, "_keep", lambda *given: copied.append(given))
    trainer.step(*batch())
    assert not copied and graph_of(trainer) is not None
