"""The data of a page on which a step is gone through, held against what the step has done."""

import numpy as np
import pytest

import tinygraph as tg
from tests.show.stepping.pages import (
    array_of,
    data_of,
    numbers_by_name,
    same_bits,
    two_layers_and_a_skip,
    whole,
)
from tinygraph.base.errors import ArgumentError, GraphError
from tinygraph.engine.running import Eager, here


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_on_the_page_are_those_of_backward_to_the_bit(tmp_path, dtype):
    make, parameters = two_layers_and_a_skip(dtype)
    loss = make()
    data = data_of(tg.show.steps(loss, tmp_path / "steps.html"))
    assert all(p.grad is None for p in parameters.values())
    loss.backward()
    number = numbers_by_name(data)
    leaves = {s["node"]: s for s in data["steps"] if s["phase"] == "leaf"}
    assert sorted(leaves) == sorted(int(number[name]) for name in parameters)
    for name, p in parameters.items():
        step = leaves[int(number[name])]
        assert same_bits(whole(data, step["grad"]), p.grad) and step["before"] is None


def test_values_and_steps_are_those_of_the_graph_in_its_order(tmp_path):
    loss = two_layers_and_a_skip()[0]()
    data = data_of(tg.show.steps(loss, tmp_path / "steps.html"))
    nodes = tg.Graph(loss).nodes
    for number, node in enumerate(nodes, start=1):
        shown = data["nodes"][str(number)]
        assert same_bits(whole(data, shown["value"]), node.value)
        assert [nodes[k - 1] for k in shown["inputs"]] == list(node.inputs)
        assert (shown["op"] != "") == (node.op is not None)
    phases = [(s["phase"], s["node"]) for s in data["steps"]]
    ops = [k for k, node in enumerate(nodes, start=1) if node.op]
    assert phases[: len(ops)] == [("forward", k) for k in ops]
    assert phases[len(ops)] == ("seed", len(nodes))
    wanted = [k for k, node in enumerate(nodes, start=1) if node.requires_grad]
    assert [n for _, n in phases[len(ops) + 1 :]] == sorted(wanted, reverse=True)


def test_gradients_of_several_uses_are_added_as_they_arrive(tmp_path):
    data = data_of(tg.show.steps(two_layers_and_a_skip()[0](), tmp_path / "steps.html"))
    terms = [t for s in data["steps"] for t in s.get("sent", ()) if t["before"] is not None]
    (term,) = terms
    assert data["nodes"][str(term["to"])]["name"] == "tanh"
    before, grad, total = (whole(data, term[key]) for key in ("before", "grad", "total"))
    assert same_bits(before + grad, total) and not same_bits(before, total)
    (own,) = [s for s in data["steps"] if s["phase"] == "backward" and s["node"] == term["to"]]
    assert own["grad"] == term["total"] and not own["hooked"]


def test_one_node_as_both_operands(tmp_path):
    x = tg.Parameter([2.0, 3.0], name="x")
    data = data_of(tg.show.steps((x * x).sum(), tmp_path / "steps.html"))
    (step,) = [s for s in data["steps"] if s["phase"] == "backward" and len(s["sent"]) == 2]
    assert [t["input"] for t in step["sent"]] == [0, 1]
    assert [t["before"] is None for t in step["sent"]] == [True, False]


def test_what_an_op_has_saved_and_whose_array_it_is(tmp_path):
    x = tg.Parameter([-1.0, 2.0], name="x")
    w = tg.Parameter([3.0, 4.0], name="w")
    data = data_of(tg.show.steps(tg.sigmoid(x * w).sum(), tmp_path / "steps.html"))
    saved = {data["nodes"][str(s["node"])]["name"]: s for s in data["steps"] if "saved" in s}
    assert [s["is"] for s in saved["mul"]["saved"]] == ["input 1", "input 2"]
    assert [s["is"] for s in saved["sigmoid"]["saved"]] == ["the output"]
    assert saved["sum"]["saved"] == []


def test_a_hook_on_the_way_and_at_a_leaf(tmp_path):
    x = tg.Parameter([1.0, 2.0], name="x")
    y = x * 3
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    loss = y.sum()
    data = data_of(tg.show.steps(loss, tmp_path / "steps.html"))
    loss.backward()
    (mul,) = [s for s in data["steps"] if s["phase"] == "backward" and s["hooked"]]
    assert data["nodes"][str(mul["node"])]["name"] == "mul"
    assert whole(data, mul["grad"]).tolist() == [10, 10]
    (leaf,) = [s for s in data["steps"] if s["phase"] == "leaf"]
    assert same_bits(whole(data, leaf["grad"]), x.grad) and x.grad.tolist() == [31, 31]


def test_a_step_of_a_training_as_a_function_makes_it(tmp_path):
    make, parameters = two_layers_and_a_skip()
    sgd = tg.optim.SGD(parameters.items(), lr=0.5, momentum=0.9)

    def step():
        sgd.zero_grad()
        make().backward()
        sgd.step()

    step()
    before = {name: p.numpy().copy() for name, p in parameters.items()}
    buffers = {n: sgd.state[n]["momentum_buffer"].copy() for n in parameters}
    data = data_of(tg.show.steps(step, tmp_path / "steps.html"))
    number = numbers_by_name(data)
    updates = {s["node"]: s for s in data["steps"] if s["phase"] == "update"}
    for name, p in parameters.items():
        update = updates[int(number[name])]
        assert same_bits(whole(data, update["before"]), before[name])
        assert same_bits(whole(data, update["grad"]), p.grad)
        assert same_bits(whole(data, update["after"]), p.value)
        (state,) = update["state"]
        assert state["name"] == "momentum_buffer"
        assert same_bits(whole(data, state["before"]), buffers[name])
        assert same_bits(whole(data, state["after"]), sgd.state[name]["momentum_buffer"])
        assert "lr=0.5" in update["settings"] and update["rule"] == "SGD"
    values = {n: whole(data, data["nodes"][number[n]]["value"]) for n in parameters}
    assert all(same_bits(values[n], before[n]) for n in parameters)


def test_a_gradient_that_was_clipped_before_the_update(tmp_path):
    make, parameters = two_layers_and_a_skip()
    sgd = tg.optim.SGD(parameters.items(), lr=0.5)

    def step():
        make().backward()
        tg.optim.clip_grad_norm([parameters["w1"]], 1e-3)
        sgd.step()

    data = data_of(tg.show.steps(step, tmp_path / "steps.html"))
    number = numbers_by_name(data)
    updates = {s["node"]: s for s in data["steps"] if s["phase"] == "update"}
    assert {n: updates[int(number[n])]["changed"] for n in parameters} == {
        "w1": True,
        "b1": False,
        "w2": False,
        "b2": False,
    }


def test_recording_a_step_changes_none_of_its_bits(tmp_path):
    ends = []
    for record in (True, False):
        tg.manual_seed(3)
        make, parameters = two_layers_and_a_skip()
        adam = tg.optim.Adam(parameters.items())

        def step(adam=adam, make=make):
            adam.zero_grad()
            tg.dropout(make() * 1.0, 0.5).backward()
            adam.step()

        if record:
            tg.show.steps(step, tmp_path / "steps.html")
        else:
            step()
        step()
        ends.append([p.numpy().tobytes() for p in parameters.values()])
    assert ends[0] == ends[1] and type(here.top) is Eager


def test_gradients_that_were_there_before_are_added_to(tmp_path):
    x = tg.Parameter([1.0, 2.0], name="x")
    (x * 2).sum().backward()
    data = data_of(tg.show.steps(lambda: (x * 3).sum().backward(), tmp_path / "steps.html"))
    (leaf,) = [s for s in data["steps"] if s["phase"] == "leaf"]
    found = [whole(data, leaf[key]).tolist() for key in ("before", "grad", "total")]
    assert found == [[2, 2], [3, 3], [5, 5]]


def test_a_function_without_a_graph_shows_its_ops_and_what_it_writes(tmp_path):
    w = tg.Parameter([1.0, -1.0], name="w")

    def rule():
        with tg.no_grad():
            w.value = (w + tg.heaviside(tg.Tensor([2.0, -2.0], name="x")) * 0.5).value

    data = data_of(tg.show.steps(rule, tmp_path / "steps.html"))
    assert [s["phase"] for s in data["steps"]] == ["forward"] * 3 + ["write"]
    last = data["steps"][-1]
    assert data["nodes"][str(last["node"])]["name"] == "w"
    assert whole(data, last["before"]).tolist() == [1, -1]
    assert whole(data, last["after"]).tolist() == [1.5, -1]


def test_outputs_of_several_elements_and_without_gradients_show_forward_alone(tmp_path):
    x = tg.Parameter([1.0, 2.0], name="x")
    for what in (x * 2, tg.Graph(x * 2, x + 1), tg.exp([1.0])):
        data = data_of(tg.show.steps(what, tmp_path / "steps.html"))
        assert {s["phase"] for s in data["steps"]} <= {"forward"}


def test_the_plan_stands_beside_the_graph_and_knows_its_nodes(tmp_path):
    x = tg.Tensor(np.ones((1, 1, 6, 6), np.float32), name="x")
    w = tg.Parameter(np.ones((2, 1, 3, 3), np.float32), name="w")
    path = tg.show.steps(tg.max_pool2d(tg.relu(tg.conv2d(x, w)), 2).sum(), tmp_path / "s.html")
    data = data_of(path)
    names = {int(n): node["name"] for n, node in data["nodes"].items()}
    fused = [[names[n] for n in of] for of in data["plan"].values() if len(of) > 1]
    assert fused == [["conv2d", "relu", "max_pool2d"]]
    assert sorted(n for of in data["plan"].values() for n in of) == sorted(names)
    assert "conv2d_relu_max_pool2d" in path.read_text(encoding="utf-8")


def test_a_compiled_step_is_shown_as_it_stands(tmp_path):
    make, _ = two_layers_and_a_skip()

    @tg.compile
    def differentiate():
        loss = make()
        loss.backward()
        return loss

    data = data_of(tg.show.steps(differentiate, tmp_path / "steps.html"))
    assert {s["phase"] for s in data["steps"]} == {"forward", "seed", "backward", "leaf"}
    assert any("fused" in line for line in (tmp_path / "steps.html").read_text().splitlines())


def test_on_the_emulator_arrays_come_to_the_host(tmp_path):
    w = tg.Parameter([1.0, -2.0], name="w", device="emulator")
    loss = (tg.relu(w) * w).sum()
    data = data_of(tg.show.steps(loss, tmp_path / "steps.html"))
    loss.backward()
    (leaf,) = [s for s in data["steps"] if s["phase"] == "leaf"]
    assert same_bits(whole(data, leaf["grad"]), w.grad)


def test_other_suffixes_are_refused_before_anything_runs(tmp_path):
    ran = []
    for what in ((tg.Parameter([1.0]) * 2).sum(), lambda: ran.append(1)):
        with pytest.raises(ArgumentError, match="html"):
            tg.show.steps(what, tmp_path / "steps.svg")
    assert not ran


def test_what_cannot_be_shown_says_why(tmp_path):
    path = tmp_path / "steps.html"
    loss = (tg.Parameter([1.0]) * 2).sum()
    loss.backward()
    with pytest.raises(GraphError, match="retain_graph"):
        tg.show.steps(loss, path)
    with pytest.raises(GraphError, match="ran none"):
        tg.show.steps(lambda: None, path)
    with pytest.raises(GraphError, match="list of Tensors"):
        tg.show.steps(3, path)
    deep = tg.Parameter([1.0])
    y = deep
    for _ in range(2501):
        y = y + 1.0
    with pytest.raises(GraphError, match="at most 2500 nodes"):
        tg.show.steps(y, path)
    assert type(here.top) is Eager and not path.exists()


def test_names_from_outside_are_text(tmp_path):
    x = tg.Parameter([1.0], name="</script><script>alert(1)</script>")
    path = tg.show.steps((x * 2).sum(), tmp_path / "s.html", title="<b>")
    assert "<script>alert" not in path.read_text(encoding="utf-8")
    assert any(n["name"] == x.name for n in data_of(path)["nodes"].values())


def test_large_arrays_are_cut_and_say_so(tmp_path):
    x = tg.Parameter(np.arange(3 * 5000, dtype=np.float32).reshape(3, 5000), name="x")
    data = data_of(tg.show.steps((x * 1.0).sum(), tmp_path / "s.html"))
    entry = data["arrays"][data["nodes"][numbers_by_name(data)["x"]]["value"]]
    assert entry["shape"] == [3, 5000] and entry["kept"] == [3, 1365]
    assert (entry["low"], entry["high"]) == (0, 14999)
    value = array_of(data, data["nodes"][numbers_by_name(data)["x"]]["value"])
    assert same_bits(value, x.numpy()[:, :1365])
