"""numba_cnn_experiment: the two experiments of the report, and its figures 2 and 3.

1. The time of an epoch over the batch size (256 filters) and over the filters (batch 1000), for the
   CPU with one thread, the CPU with all, a compiled plan, and a GPU where there is one.
2. Accuracy over the epochs of one training, on the data that are learnt from and on the tenth that
   is held out; the test data are looked at once, after the last epoch.

Source: the report "Training a CNN on the GPU using Numba", 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinygraph import data
from tinygraph.errors import DatasetError
from tinygraph.recipes.numba_cnn import Config, recipe
from tinygraph.recipes.numba_cnn_timing import EPOCH, QUICK, REPORT, Sizes, epoch_times, variants
from tinygraph.show.curves import LOOKS
from tinygraph.show.figures import new_figure, save
from tinygraph.show.paths import writable
from tinygraph.training import Progress, RunFolder
from tinygraph.training.environment import environment

LOG_FROM = 30  # ratio of the slowest to the fastest above which times stand on a logarithmic axis


def experiment(
    run: RunFolder,
    name: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = False,
    quick: bool = False,
    rounds: int = 3,
    images: int | None = None,
    epochs: int = 10,
    said: Callable[[str], None] = print,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run both experiments into a folder.

    Parameters
    ----------
    run : RunFolder
        An empty one.  It gets config.json, result.json and the training's own folder `training`.
    name : str, optional
        The data of the training; by default mnist where its files are found, otherwise digits.
    data_dir, download
        Where the data are, and whether missing files are fetched.
    quick : bool
        Few filters, small batches and one epoch: to see that all runs.
    rounds, images
        See `epoch_times`.
    epochs : int
        Of the training.
    said : function of a line
        Told what goes on.

    Returns
    -------
    dict
        `times` (see `epoch_times`), `epochs` (the rows of the training), `test`, `data`, `images`,
        `notes`, `environment`.  The same is in result.json.
    """
    sizes = QUICK if quick else REPORT
    images = max(sizes.at_batch, *sizes.batches) if images is None else images
    config = Config(
        _data(name, data_dir, download, said),
        filters=8 if quick else 32,
        batch_size=100,
        epochs=1 if quick else epochs,
    )
    ways, notes = variants()
    for note in notes:
        said(note)
    said(f"times: {images} images in a measurement, scaled to an epoch of {EPOCH}")
    times = epoch_times(sizes, ways, rounds, images, said)
    for line in table(times):
        said(line)
    training = RunFolder(run.path / "training")
    test = recipe.train(config, training, data_dir, download, progress)
    found = {
        "times": times,
        "epochs": training.rows(),
        "test": test,
        "data": config.data,
        "filters": config.filters,
        "batch_size": config.batch_size,
        "images": images,
        "notes": notes,
        "sizes": vars(sizes),
        "environment": environment(),
    }
    run.write_config(
        {
            "experiment": "numba_cnn",
            "quick": quick,
            "rounds": rounds,
            "images": images,
            "training": vars(config),
        }
    )
    run.write_result(found)
    return found


def _data(
    name: str | None, data_dir: str | Path | None, download: bool, said: Callable[[str], None]
) -> str:
    """The data that were asked for; otherwise MNIST where it is found, and digits."""
    if name is not None:
        return name
    try:
        data.mnist("test", data_dir, download)
        return "mnist"
    except DatasetError as error:
        if data_dir is not None:  # a folder was named: what is wrong with it is the answer
            raise
        said(f"{error}. Until then the training is one on scikit-learn's digits")
        return "digits"


def table(times: Sequence[Mapping[str, Any]]) -> list[str]:
    """The times as lines of text.

    >>> for line in table([{"variant": "CPU", "filters": 8, "batch_size": 50, "median": 2.0,
    ...                     "low": 1.9, "high": 2.5}]):
    ...     print(line)
    variant          filters  batch  seconds of an epoch (lowest to highest)
    CPU                    8     50    2.00 (1.90 to 2.50)
    """
    lines = ["variant          filters  batch  seconds of an epoch (lowest to highest)"]
    for row in times:
        size = f"{row['variant']:15}  {row['filters']:7}  {row['batch_size']:5}"
        if "median" in row:
            spread = f"({row['low']:.2f} to {row['high']:.2f})"
            lines.append(f"{size}  {row['median']:6.2f} {spread}")
        else:
            lines.append(f"{size}  {row['error']}")
    return lines


def draw_times(
    times: Sequence[Mapping[str, Any]], sizes: Sizes, path: str | Path = "times.svg"
) -> Path:
    """Draw figure 2: bars of an epoch's time over the batch size, and over the filters.

    The bar is the median, the line on it goes from the lowest to the highest.

    Parameters
    ----------
    times : sequence of mappings
        What `epoch_times` returned.
    sizes : Sizes
        What it was given.
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.
    """
    target = writable("draw_times", path, (".svg", ".png", ".pdf"))
    figure = new_figure(10, 3.8)
    panels = [
        (
            "batch size",
            f"{sizes.at_filters} filters",
            "batch_size",
            sizes.batches,
            [row for row in times if row["filters"] == sizes.at_filters],
        ),
        (
            "filters",
            f"batch size {sizes.at_batch}",
            "filters",
            sizes.filters,
            [row for row in times if row["batch_size"] == sizes.at_batch],
        ),
    ]
    medians = [row["median"] for row in times if "median" in row]
    for axes, (label, title, key, values, rows) in zip(figure.subplots(1, 2), panels, strict=True):
        _grouped_bars(axes, rows, key, values)
        axes.set(title=title, xlabel=label, ylabel="seconds of an epoch")
        axes.set_xticks(range(len(values)), [str(value) for value in values])
        if medians and max(medians) > LOG_FROM * min(medians):
            axes.set_yscale("log")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend()
    return save(figure, target)


def _grouped_bars(
    axes: Any, rows: Sequence[Mapping[str, Any]], key: str, values: Sequence[int]
) -> None:
    """A group for each value, with a bar for each variant in it."""
    names = list(dict.fromkeys(row["variant"] for row in rows))
    width = 0.8 / max(len(names), 1)
    for k, name in enumerate(names):
        own = {row[key]: row for row in rows if row["variant"] == name and "median" in row}
        places = [i for i, value in enumerate(values) if value in own]
        heights = [own[values[i]]["median"] for i in places]
        below = [own[values[i]]["median"] - own[values[i]]["low"] for i in places]
        above = [own[values[i]]["high"] - own[values[i]]["median"] for i in places]
        across = [i + (k - (len(names) - 1) / 2) * width for i in places]
        axes.bar(
            across,
            heights,
            0.9 * width,
            yerr=[below, above],
            capsize=3,
            label=name,
            color=LOOKS[k % len(LOOKS)][0],
        )


def draw_accuracy(
    rows: Sequence[Mapping[str, Any]], title: str, path: str | Path = "accuracy.svg"
) -> Path:
    """Draw figure 3: accuracy over the epochs, of what is learnt from and of what is held out.

    Parameters
    ----------
    rows : sequence of mappings
        Of each epoch, with `epoch`, `accuracy` and `validation_accuracy`.
    title : str
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.
    """
    target = writable("draw_accuracy", path, (".svg", ".png", ".pdf"))
    figure = new_figure(6, 3.8)
    axes = figure.subplots()
    columns = (
        ("accuracy", "training, mean over the epoch"),
        ("validation_accuracy", "validation, after the epoch"),
    )
    for (column, label), (colour, dashes, marker) in zip(columns, LOOKS, strict=False):
        axes.plot(
            [row["epoch"] for row in rows],
            [row[column] for row in rows],
            color=colour,
            linestyle=dashes,
            marker=marker if len(rows) <= 30 else None,
            markersize=4,
            label=label,
        )
    axes.set(title=title, xlabel="epoch", ylabel="accuracy")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    return save(figure, target)
