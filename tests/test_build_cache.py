"""The cache of compiled code, where something else than a file stands in the place of one."""

import pytest

from tinygraph.base import build_cache


@pytest.mark.parametrize("end", ["", ".sha256"])
def test_a_folder_in_the_place_of_a_file_is_left_and_a_private_place_taken(
    end, tmp_path, monkeypatch
):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    path = build_cache.compiled(["a"], ".txt", lambda path: path.write_text("1") and None)
    place = path.with_name(path.name + end)
    place.unlink()
    place.mkdir()
    with pytest.warns(RuntimeWarning, match="is a folder, or its sum is one"):
        again = build_cache.compiled(["a"], ".txt", lambda path: path.write_text("2") and None)
    assert again.read_text() == "2" and again.parent != path.parent and place.is_dir()
