"""TextRecipe: what recipes share that learn to predict the next character of a text.

    N windows of T characters, V characters in the alphabet

    codes (N, T)  ->  network  ->  logits (N, T, V)       those at t say what stands at t + 1
    loss = softmax cross-entropy, the mean over all N T places; divided by log 2 it is bits

A uniform guess takes log2 V bits a character.  The text is cut by position: its first nine tenths
are learnt from, then come a twentieth to validate with and a twentieth for the test.  An epoch is
so many windows, at random places.  AdamW, whose decay pulls at matrices alone; the learning rate
rises along a line and then falls along a cosine to a tenth; gradients are clipped to a norm.

Sources: Radford et al., "Language models are unsupervised multitask learners", 2019, and Karpathy,
nanoGPT, 2022 (optimiser, schedule, initialisation, defaults); Pascanu, Mikolov, Bengio, "On the
difficulty of training recurrent neural networks", ICML 2013 (clipping).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import ArgumentError, DatasetError, number, whole
from tinygraph.data import DataLoader, RandomSampler, TextWindows, read_text
from tinygraph.data.text import encode
from tinygraph.engine import Array, Tensor, philox
from tinygraph.optim import AdamW, CosineAnnealingLR, LinearLR, Schedule, SequentialLR
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.settings import Count, NotNegative, TrainingSettings
from tinygraph.recipes.task import Data, Folder, usable_device
from tinygraph.training import RunFolder, evaluate
from tinygraph.training.evaluation import device_of, mode

CUTS = 0.9, 0.95  # where validation and test begin, as shares of the text
LAST_RATE = 0.1  # of the learning rate: where the cosine ends
EVALUATION_BATCH = 64  # only a matter of memory
SHOWN = 600  # characters that a report shows
WRITTEN = "What it writes, with temperature 0.8"
SURPRISE = "Where the test text surprises it: the redder, the more bits the character takes"


@dataclass
class TextSettings(TrainingSettings):
    """Settings of every recipe of texts; a config inherits them."""

    data: str = "shakespeare"  # the text: shakespeare, or a file of your own
    context: Count = 64  # characters of a window
    windows: Count = 2400  # windows in an epoch, at random places
    batch_size: int = 12  # windows of a step
    lr: float = 1e-3  # highest learning rate
    warmup: Count = 100  # steps until the learning rate is there
    weight_decay: NotNegative = 0.1  # pull of matrices to 0
    clip_norm: float = 1.0  # of all gradients together

    usual_epochs: ClassVar[int] = 10


class TextRecipe(Recipe):
    """A language model on characters; a subclass gives `network`.

    The facts that a run remembers are `alphabet`, `length` and `sha256` of the text.
    """

    metric = "bits_per_character"
    schedule_each = "batch"

    def network(self, config: Any, characters: int) -> nn.Module:
        """From codes (N, T) to logits (N, T, V) for V characters."""
        raise NotImplementedError(f"{type(self).__name__}.network")

    # ---- what a training is made of ---------------------------------------------------------

    def data(self, config: Any, data_dir: Folder = None, download: bool = False) -> Data:
        """Windows of the text, which is cut by position.

        Raises
        ------
        DatasetError
            The file is missing, damaged, or too short for a window in each part.
        """
        text = read_text(config.data, data_dir)
        alphabet, length = "".join(sorted(set(text))), config.context
        first, *rest = self._cut(text, alphabet, config)
        training = TextWindows(first, length)  # anywhere
        held_out, test = (TextWindows(codes, length, stride=length) for codes in rest)
        digest = hashlib.sha256(text.encode()).hexdigest()
        facts = {"alphabet": alphabet, "length": len(text), "sha256": digest}
        return Data(training, held_out, test, facts)

    def _cut(self, text: str, alphabet: str, config: Any) -> list[Any]:
        """Codes to learn from, to validate with, and for the test."""
        parts = np.split(encode(text, alphabet), [round(share * len(text)) for share in CUTS])
        if min(map(len, parts)) <= config.context:
            share = 1 - CUTS[1]
            expected = f"more than {math.ceil((config.context + 1) / share)} characters"
            way_out = "take a longer text, or a smaller context"
            raise DatasetError(self.name, config.data, expected, len(text), way_out)
        return parts

    def test_data(self, config: Any, facts: dict[str, Any], data_dir: Folder) -> TextWindows:
        found = self.data(config, data_dir)
        if found.facts["sha256"] != facts["sha256"]:
            expected = f"the text of the run, of {facts['length']} characters"
            got = f"another one, of {found.facts['length']}"
            raise DatasetError(self.name, config.data, expected, got)
        test: TextWindows = found.test
        return test

    def loader(self, config: Any, training: TextWindows) -> DataLoader:
        count = min(config.windows, len(training))
        sampler = RandomSampler(training, num_samples=count, seed=config.seed)
        return DataLoader(training, config.batch_size, sampler=sampler, device=config.device)

    def model(self, config: Any, facts: dict[str, Any]) -> nn.Module:
        tg.manual_seed(config.seed)
        return self.network(config, len(facts["alphabet"]))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Nats for each character."""
        return tg.cross_entropy(output.view(-1, output.shape[-1]), target.view(-1))

    def optimizer(self, config: Any, network: Any) -> AdamW:
        """AdamW; vectors, which are biases and the scales of norms, do not decay."""
        named = list(network.named_parameters())
        groups = [
            {"params": [(n, p) for n, p in named if p.ndim >= 2]},
            {"params": [(n, p) for n, p in named if p.ndim < 2], "weight_decay": 0.0},
        ]
        return AdamW(groups, config.lr, betas=(0.9, 0.99), weight_decay=config.weight_decay)

    def schedule(self, config: Any, optimizer: Any) -> Schedule:
        """Up along a line, down along a cosine; without a number of epochs it stays up."""
        up = LinearLR(optimizer, 1 / config.warmup, total_iters=config.warmup)
        if config.epochs is None:
            return up
        steps = config.epochs * math.ceil(config.windows / config.batch_size)
        left = max(1, steps - config.warmup)
        down = CosineAnnealingLR(optimizer, left, eta_min=LAST_RATE * config.lr)
        return SequentialLR(optimizer, [up, down], [config.warmup])

    # ---- how good it is ---------------------------------------------------------------------

    def measure(self, config: Any, network: Any, test: TextWindows) -> dict[str, float]:
        """Nats and bits for each character of the test text, from those before it in its window."""
        loss = evaluate(network, DataLoader(test, EVALUATION_BATCH), self.loss)["loss"]
        return {"loss": loss, "bits_per_character": loss / math.log(2)}

    # ---- what it writes ---------------------------------------------------------------------

    def sample(
        self,
        run: RunFolder,
        prompt: str | None = None,
        length: int = 500,
        temperature: float = 0.8,
        seed: int = 0,
        best: bool = False,
        device: str = "cpu",
    ) -> str:
        """A text that a run's network writes, character by character; see `write`.

        Raises
        ------
        ArgumentError
            An empty prompt, a character in it that the network does not know, a bad number.
        """
        config = self.settings_of(run)
        network = self.trained(run, best).to(usable_device(device))
        with self._reading(run):
            alphabet = alphabet_of(run.config)
        return write(network, alphabet, config.context, prompt, length, temperature, seed)

    def graph(self, config: Any, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of one window."""
        codes, labels = (
            Tensor(np.zeros((1, config.context), np.int64), name=name)
            for name in ("codes", "labels")
        )
        return self.loss(network(codes), labels)

    def answers(self, config: Any, network: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """What the network writes, and what surprises it in the test text."""
        context, alphabet = config.context, alphabet_of(facts)
        texts: dict[str, Any] = {WRITTEN: write(network, alphabet, context, length=SHOWN)}
        with suppress(DatasetError):  # without the file there is still something to read
            test = self.test_data(config, facts, facts.get("data_dir"))
            codes, labels = test[: -(-SHOWN // context)]
            bits = surprise(network, codes, labels).ravel()
            highest = math.log2(len(alphabet))
            characters = (alphabet[code] for code in labels.ravel())
            texts[SURPRISE] = list(zip(characters, bits / highest, strict=True))
        return {"texts": texts}


def surprise(network: nn.Module, codes: Array, labels: Array) -> Array:
    """The bits that each label (N, T) takes, after the codes (N, T) up to its place."""
    with mode(network, training=False), tg.no_grad():
        logits = network(codes)
        nats = tg.cross_entropy(logits.transpose(1, 2), labels, reduction="none")  # (N, T)
    return nats.numpy() / math.log(2)


def alphabet_of(facts: Mapping[str, Any]) -> str:
    """The characters that a run knows, in their order; ValueError where a file says none."""
    found = facts["alphabet"]
    if not isinstance(found, str) or not found or len({*found}) < len(found):
        raise ValueError(f"alphabet: {found!r:.60}, where a text of characters is expected")
    return found


def beginning(alphabet: str) -> str:
    """What a text begins after: the end of a line, or the first character where lines have none.

    >>> beginning("ab\\n"), beginning("ab")
    ('\\n', 'a')
    """
    return "\n" if "\n" in alphabet else alphabet[0]


def write(
    network: nn.Module,
    alphabet: str,
    context: int,
    prompt: str | None = None,
    length: int = 500,
    temperature: float = 0.8,
    seed: int = 0,
) -> str:
    """Go on with a text: draw one character after the other, p = softmax(logits / temperature).

    Parameters
    ----------
    network : Module
        From codes (1, T) to logits (1, T, V).
    alphabet : str
        The V characters, in the order of the codes.
    context : int
        How many characters the network is shown, at most: the last ones.
    prompt : str, optional
        How the text begins; at least one character.  By default `beginning(alphabet)`.
    length : int
        How many characters are added.
    temperature : float
        1 draws as the network says; below, probable characters gain; 0 takes the most probable one.
    seed : int
        Of the drawing.

    Returns
    -------
    str
        What is added, without the prompt.

    Raises
    ------
    ArgumentError
        A prompt that is empty or has a character beyond the alphabet; a bad number.
    """
    prompt = beginning(alphabet) if prompt is None else prompt
    if not prompt:
        raise ArgumentError("sample", "--prompt", "at least one character", "none")
    whole("sample", "--length", length, 0)
    number("sample", "--temperature", temperature, 0)
    codes = encode(prompt, alphabet, "sample", "--prompt").tolist()
    draws = np.random.Generator(philox(whole("sample", "--seed", seed, 0), 0)).random(length)
    with mode(network, training=False), tg.no_grad():
        for draw in draws:
            shown = tg.tensor([codes[-context:]], device=device_of(network))
            logits = network(shown).numpy()[0, -1].astype(np.float64)
            codes.append(_drawn(logits, temperature, draw))
    return "".join(alphabet[code] for code in codes[len(prompt) :])


def _drawn(logits: Any, temperature: float, draw: float) -> int:
    """The class that a number from 0 to below 1 stands for."""
    if temperature == 0:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / temperature)
    shares = weights.cumsum(dtype=np.float64)
    return int(np.searchsorted(shares, draw * shares[-1], side="right"))
