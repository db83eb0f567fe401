"""Every recipe that trains in batches, at small settings, one after the other in one launch.

`main` trains them into a folder and prints JSON on the first rank, name -> digest: that of all that
a run leaves but its times.
"""

import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from tests.recipes.test_srcnn import SMALL as SRCNN
from tests.recipes.test_srcnn import made_pictures
from tests.recipes.test_text import RHYME
from tests.recipes.test_text import SMALL as TEXTS
from tinygraph import recipes
from tinygraph.distributed import arrays_from_first, rank
from tinygraph.recipes import srcnn
from tinygraph.training import Progress, RunFolder
from tinygraph.training.checkpoints import Checkpoints
from tinygraph.training.state import unpack

SHARDS = 8
TEXT = {"data": "rhyme.txt", "epochs": 2, "dropout": 0.2}
DIGITS = {"data": "digits", "widths": (2, 3), "batch_size": 300, "epochs": 2}
SETTINGS = {
    "numba_cnn": {"filters": 3, "batch_size": 100, "epochs": 2},
    "vgg_cifar": {**DIGITS, "dropout": 0.2},
    "resnet_cifar": {**DIGITS, "blocks": 1},
    "srcnn": {**SRCNN, "rule": "sgd"},
    "lstm_text": {**TEXTS["lstm_text"], **TEXT},
    "char_gpt": {**TEXTS["char_gpt"], **TEXT},
}
HOW = {
    "eager": {},
    "compiled": {"compile": True},
    "emulator": {"device": "emulator", "epochs": 1, "windows": 12},
}
ON_EMULATOR = ("lstm_text",)


def digest(run):
    """Of parameters, the best ones, the log, and everything that a resumed run would take up."""
    found = hashlib.sha256()
    for path in (run.path / "parameters.safetensors", run.best):
        found.update(path.read_bytes() if path.exists() else b"none")
    rows = [{name: value for name, value in row.items() if name != "seconds"} for row in run.rows()]
    checkpoint = arrays_from_first(Checkpoints(run.checkpoints).newest)
    document, parameters, optimizer, order = unpack(checkpoint)
    for name in ("seconds", "epoch_seconds"):
        del document[name]
    found.update(repr((rows, document, order.tolist())).encode())
    for state in (parameters, *optimizer["state"].values()):
        for name, value in state.items():
            found.update(name.encode() + np.asarray(value).tobytes())
    return found.hexdigest()[:16]


def trained(name, how, path):
    recipe, run = recipes.get(name), RunFolder(path)
    settings = {**SETTINGS[name], **HOW[how]}
    shards = min(SHARDS, settings.get("batch_size", SHARDS))
    config = recipe.settings({"shards": shards, **settings})
    recipe.deal(config, run)
    recipe.fit(recipe.prepare(config, run=run), run, Progress(lines=False, bar=False))
    return run


def main():
    folder, how = Path(sys.argv[1]), sys.argv[2]
    warnings.filterwarnings("ignore", message="batch norm is training on fewer")
    os.chdir(folder)
    srcnn.at_hand, srcnn.cache_folder = made_pictures, lambda: folder / "cache"
    Path("rhyme.txt").write_text(RHYME * 40)
    names = ON_EMULATOR if how == "emulator" else SETTINGS
    runs = {name: trained(name, how, folder / f"{how}-{name}") for name in names}
    found = {name: digest(run) for name, run in runs.items()}
    if rank() == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
