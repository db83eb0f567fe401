"""Occupancy against NVIDIA's published examples and against numbers worked by hand."""

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES
from tinygraph.cuda.nvrtc.occupancy import largest_block, multiprocessor, occupancy


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])  # 64 warps and 64 Ki registers
@pytest.mark.parametrize("threads, blocks, share", [(128, 12, 0.75), (320, 4, 0.625)])
def test_best_practices_guide_37_registers(arch, threads, blocks, share):
    """CUDA C++ Best Practices Guide, "Calculating Occupancy": 75 % and 63 %."""
    found = occupancy(arch, threads, registers=37, shared=0)
    assert (found.active_blocks, found.share) == (blocks, share)
    assert found.limited_by == ("registers",)


@pytest.mark.parametrize("registers, blocks", [(64, 2), (65, 1)])
def test_programming_guide_512_threads(registers, blocks):
    """CUDA C++ Programming Guide, "Multiprocessor Level": one register more halves the blocks."""
    assert occupancy("sm_80", 512, registers, shared=0).active_blocks == blocks


@pytest.mark.parametrize(
    "arch, blocks, warps, shared, of_block",
    [
        ("sm_75", 16, 32, 64, 64),
        ("sm_80", 32, 64, 164, 163),
        ("sm_86", 16, 48, 100, 99),
        ("sm_89", 24, 48, 100, 99),
        ("sm_90", 32, 64, 228, 227),
        ("sm_100", 32, 64, 228, 227),
        ("sm_120", 24, 48, 100, 99),
    ],
)
def test_each_limit_alone(arch, blocks, warps, shared, of_block):
    """The table of technical specifications, read through the function."""
    assert occupancy(arch, 32, 16, 0).active_blocks == blocks
    assert occupancy(arch, 32, 16, 0).limited_by == ("blocks",)
    assert occupancy(arch, 256, 16, 0).active_warps == warps
    assert occupancy(arch, 256, 16, 0).share == 1
    most = of_block * 1024
    assert occupancy(arch, 32, 16, most).active_blocks == 1
    assert occupancy(arch, 32, 16, most).limited_by == ("shared",)
    assert occupancy(arch, 32, 16, most + 1).active_blocks == 0
    half = shared * 512 - (shared - of_block) * 1024  # two blocks, each with its reserve
    assert occupancy(arch, 32, 16, half).active_blocks == 2
    assert occupancy(arch, 32, 16, half + 1).active_blocks == 1


@pytest.mark.parametrize(
    "arch, threads, registers, shared, blocks",
    [
        # 168 registers: 5376 of a warp, 3 warps in a partition of 16384, 12 in all: 3 blocks of 4
        ("sm_90", 128, 168, 0, 3),
        # 33 registers: 1056 become 1280 of a warp: 12 in a partition, 48 in all: 6 blocks of 8
        ("sm_90", 256, 33, 0, 6),
        # 255 registers: 8160 become 8192: 2 in a partition, 8 in all: one block of 8, none of 9
        ("sm_90", 256, 255, 0, 1),
        ("sm_90", 257, 255, 0, 0),
        # 96 registers: 3072 of a warp, 5 in a partition, 20 in all: none of 21 warps
        ("sm_75", 640, 96, 0, 1),
        ("sm_75", 641, 96, 0, 0),
        # 8704 + 1024 bytes are 9728: 24 blocks fit into 228 KiB, 10 into 100 KiB, as do 8 by warps
        ("sm_90", 64, 32, 8704, 24),
        ("sm_86", 64, 32, 8704, 10),
        ("sm_86", 192, 32, 8704, 8),
        # 1 byte becomes 256 without a reserve on sm_75, 128 + 1024 elsewhere
        ("sm_75", 64, 16, 1, 16),
        ("sm_75", 32, 16, 4096, 16),
        ("sm_75", 32, 16, 4097, 15),
    ],
)
def test_worked_by_hand(arch, threads, registers, shared, blocks):
    assert occupancy(arch, threads, registers, shared).active_blocks == blocks


def test_ties_name_all_limits():
    assert occupancy("sm_90", 256, 32, 0).limited_by == ("registers", "warps")


@pytest.mark.parametrize(
    "registers, threads",
    [(0, 1024), (32, 1024), (64, 1024), (65, 896), (72, 896), (128, 512), (255, 256)],
)
def test_largest_block(registers, threads):
    """65 registers are 2304 of a warp: 28 warps of 65536, spread evenly over 4 partitions."""
    assert largest_block(registers) == threads
    for arch in ARCHITECTURES:
        assert occupancy(arch, threads, registers, 0).active_blocks >= 1
        if threads < 1024:
            assert occupancy(arch, threads + 1, registers, 0).active_blocks == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("sm_91", 32, 8, 0), "sm_91"),
        (("sm_90", 0, 8, 0), "threads"),
        (("sm_90", 1025, 8, 0), "threads"),
        (("sm_90", 32, 256, 0), "registers"),
        (("sm_90", 32, -1, 0), "registers"),
        (("sm_90", 32, 8, -1), "shared"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        occupancy(*arguments)


def test_unknown_architectures_name_the_nearest():
    with pytest.raises(ArgumentError, match=r"did you mean 'sm_90'"):
        multiprocessor("sm90")
