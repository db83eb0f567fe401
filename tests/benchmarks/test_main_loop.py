"""Machine code: flow, rounds and the main loop, on code that can be counted by hand."""

import subprocess

import pytest

from benchmarks.machine_code import disassembly
from benchmarks.machine_code.disassembly import Instruction, disassemble
from benchmarks.machine_code.floors import bounds
from benchmarks.machine_code.flow import Flow
from benchmarks.machine_code.main_loop import MainLoop, judged, main_loop
from benchmarks.machine_code.rounds import rounds
from tinygraph.base.errors import ArgumentError, KernelCompileError
from tinygraph.cuda import nvrtc
from tinygraph.cuda.reading.instances import Instance
from tinygraph.cuda.reading.source import Source, kernel_file


def read(text):
    """Instructions from lines as `@P0 BRA top`; a line `top:` names the place of the next one."""
    lines = [line.strip() for line in text.strip().splitlines()]
    places, code = {}, []
    for line in lines:
        if line.endswith(":"):
            places[line[:-1]] = len(code)
        else:
            code.append(line)
    found = []
    for line in code:
        guard, rest = line[1:].split(" ", 1) if line.startswith("@") else ("", line)
        opcode, _, operands = rest.partition(" ")
        parts = [part.strip() for part in operands.split(",") if part.strip()]
        parts = [hex(places[part] * disassembly.WORD) if part in places else part for part in parts]
        found.append(Instruction(guard, opcode, tuple(parts)))
    return found


INNER_OF_EIGHT = """
    UMOV UR9, URZ
outer:
    LDG.E.128 R8, desc[UR4][R2.64]
    UMOV UR4, URZ
inner:
    UIADD3 UR4, UR4, 0x1, URZ
    UISETP.NE.AND UP1, UPT, UR4, 0x8, UPT
    PLOP3.LUT P0, PT, PT, PT, UP1, 0x80, 0x0
    FFMA R0, R8, R9, R0
    FFMA R1, R8, R9, R1
    @P0 BRA inner
    UIADD3 UR9, UR9, 0x8, URZ
    UISETP.GE.AND UP0, UPT, UR9, UR10, UPT
    @!P0 BRA outer
    EXIT
"""


def test_a_loop_with_fixed_rounds_belongs_to_the_one_around_it():
    flow = Flow(read(INNER_OF_EIGHT))
    assert [rounds(flow, loop) for loop in flow.loops] == [8, None]
    found = judged(flow)
    # one load, one move, 8 * 6 in the inner loop, 3 behind it
    assert found.instructions == 1 + 1 + 8 * 6 + 3 and found.unrolled == (8,)
    assert found.multiply_adds == {"FFMA": 16} and found.kind == "FFMA"
    assert found.share("FFMA") == 16 / 53
    assert found.loads == 1 and found.bytes_a_load == 16.0 and found.divisions == 0


@pytest.mark.parametrize(
    "before, step, test, expected",
    [
        ("UMOV UR4, URZ", "UIADD3 UR4, UR4, 0x1, URZ", "UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT", 8),
        ("UMOV UR4, 0x100", "UIADD3 UR4, UPT, UPT, UR4, 0x210, URZ",
         "UISETP.NE.U32.AND UP0, UPT, UR4, 0x1180, UPT", 8),
        ("UMOV UR4, 0xa", "UIADD3 UR4, UR4, -0x3, URZ", "UISETP.GT.AND UP0, UPT, UR4, RZ, UPT", 4),
        ("UMOV UR4, 0xa", "UIADD3 UR4, UR4, 0xfffffffd, URZ",
         "UISETP.GT.AND UP0, UPT, UR4, RZ, UPT", 4),
        ("UMOV UR4, UR7", "UIADD3 UR4, UR4, 0x1, URZ", "UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT",
         None),
        ("UMOV UR4, URZ", "UIADD3 UR4, UR4, UR8, URZ", "UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT",
         None),
        ("UMOV UR4, URZ", "UIADD3 UR4, UR4, 0x1, URZ", "UISETP.NE.AND UP0, UPT, UR4, UR8, UPT",
         None),
        ("UMOV UR4, URZ", "@P3 UIADD3 UR4, UR4, 0x1, URZ",
         "UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT", None),
        # never ends, as far as one can see
        ("UMOV UR4, URZ", "UIADD3 UR4, UR4, 0x3, URZ", "UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT",
         None),
    ],
)  # fmt: skip
def test_rounds_of_a_counter(before, step, test, expected):
    flow = Flow(read(f"{before}\ntop:\n{step}\n{test}\nBRA.U UP0, top\nEXIT"))
    assert rounds(flow, flow.loops[0]) == expected
    # the comparison first sees the counter of the round before: one round more
    flow = Flow(read(f"{before}\ntop:\n{test}\n{step}\nBRA.U UP0, top\nEXIT"))
    assert rounds(flow, flow.loops[0]) == (expected and expected + 1)


def test_rounds_where_the_jump_leaves_the_loop():
    code = """
        HFMA2.MMA R4, -RZ, RZ, 0, 1.78813934326171875e-07
    top:
        VIADD R4, R4, 0x1
        ISETP.GE.AND P0, PT, R4, 0x9, PT
        @P0 BRA end
        FFMA R0, R1, R2, R0
        BRA top
    end:
        EXIT
    """
    flow = Flow(read(code))  # begins with the half whose bits are 3
    assert [rounds(flow, loop) for loop in flow.loops] == [6]


POINTERS = """
    VIADD R7, R6, 0x10
    BRA.U UP3, start
    IMAD R20, R1, R2, R3
start:
    VIADD R9, R7, 0x2100
    VIADD R8, R7, 0x100
top:
    VIADD R8, R8, 0x400
    ISETP.NE.AND P0, PT, R8, R9, PT
    @P0 BRA top
    EXIT
"""


def test_rounds_of_an_address_up_to_the_same_one_further_on():
    flow = Flow(read(POINTERS))
    assert [rounds(flow, loop) for loop in flow.loops] == [8]  # (0x2100 - 0x100) / 0x400
    other = POINTERS.replace("VIADD R9, R7", "VIADD R9, R5")
    assert rounds(flow := Flow(read(other)), flow.loops[0]) is None
    odd = POINTERS.replace("0x2100", "0x2101")  # never meets it
    assert rounds(flow := Flow(read(odd)), flow.loops[0]) is None
    moving = POINTERS.replace("    ISETP", "    IMAD R9, R9, 0x1, R4\n    ISETP")
    assert rounds(flow := Flow(read(moving)), flow.loops[0]) is None


def test_rounds_of_a_counter_of_64_bits():
    code = """
        UMOV UR17, 0x2100
        UMOV UR6, URZ
    top:
        UIADD3 UR17, UP0, UPT, UR17, -0x420, URZ
        UIADD3.X UR6, UPT, UPT, UR6, -0x1, URZ, UP0, !UPT
        UISETP.NE.U32.AND UP0, UPT, UR17, URZ, UPT
        UISETP.NE.U32.AND.EX UP0, UPT, UR6, URZ, UPT, UP0
        BRA.U UP0, top
        EXIT
    """
    flow = Flow(read(code))
    assert [rounds(flow, loop) for loop in flow.loops] == [8]


def test_a_start_that_differs_between_ways_is_not_known():
    code = """
        @P2 BRA other
        UMOV UR4, URZ
        BRA top
    other:
        UMOV UR4, 0x4
    top:
        UIADD3 UR4, UR4, 0x1, URZ
        UISETP.NE.AND UP0, UPT, UR4, 0x8, UPT
        BRA.U UP0, top
        EXIT
    """
    flow = Flow(read(code))
    assert [rounds(flow, loop) for loop in flow.loops] == [None]
    flow = Flow(read(code.replace("0x4\n", "URZ\n")))
    assert [rounds(flow, loop) for loop in flow.loops] == [8]


def test_the_pass_is_the_way_of_a_whole_tile():
    """Of two ways with as many bytes the shorter one; not the one that loads nothing."""
    code = """
    top:
        @P1 BRA nothing
        @P2 BRA edge
        LDG.E.128 R8, [R2.64]
        BRA nothing
    edge:
        @P3 LDG.E R8, [R2.64]
        @P4 LDG.E R9, [R2.64+0x4]
        @P5 LDG.E R10, [R2.64+0x8]
        @P6 LDG.E R11, [R2.64+0xc]
    nothing:
        FFMA R0, R8, R9, R0
        @!PT LDS RZ, [RZ]
        BRA.DIV UR4, rare
    back:
        @P0 BRA top
        EXIT
    rare:
        FFMA R0, R8, R9, R0
        BRA back
    """
    found = judged(Flow(read(code)))
    assert found.opcodes == {
        "BRA": 4, "LDG.E.128": 1, "FFMA": 1, "@!PT LDS": 1, "BRA.DIV": 1,
    }  # fmt: skip
    assert found.bytes_a_load == 16.0 and found.bytes_a_shared_load is None


def test_of_two_copies_of_a_loop_the_one_that_stores_is_told():
    """A kernel that may leave out what only backward needs: judged with it."""
    without = "without:\nFFMA R0, R1, R2, R0\nSTG.E [R2.64], R0\n@P0 BRA without"
    whole = "whole:\nFFMA R0, R1, R2, R0\nSTG.E [R2.64], R0\nSTG.E.U8 [R4.64], R1\n@P0 BRA whole"
    for code in (f"{whole}\n{without}", f"{without}\n{whole}"):
        assert judged(Flow(read(f"{code}\nEXIT"))).instructions == 4


def test_the_rest_of_an_unrolled_loop_is_no_main_loop():
    """Rounds that are left over stand behind the loop: there the loop around has more work."""
    inner = "inner:\n" + "FFMA R0, R1, R2, R0\n" * 4 + "@P0 BRA inner\n"
    rest = "FFMA R0, R1, R2, R0\n" * 6 + "STG.E.128 [R2.64], R0\n"
    found = judged(Flow(read(f"outer:\nLDG.E R1, [R2.64]\n{inner}{rest}@P1 BRA outer\nEXIT")))
    assert found.opcodes == {"FFMA": 4, "BRA": 1}


def test_of_two_copies_of_a_loop_the_shorter_one_is_told():
    slow = "slow:\nFFMA R0, R1, R2, R0\nIMAD R4, R5, R6, R7\n@P0 BRA slow"
    fast = "fast:\nFFMA R0, R1, R2, R0\n@P0 BRA fast"
    for code in (f"{slow}\n{fast}", f"{fast}\n{slow}"):
        assert judged(Flow(read(f"{code}\nEXIT"))).opcodes == {"FFMA": 1, "BRA": 1}


def test_without_multiply_adds_the_loop_that_moves_most():
    few = "few:\nLDG.E R1, [R2.64]\nSTG.E [R2.64], R1\n@P0 BRA few"
    many = "many:\nLDG.E.128 R4, [R2.64]\nSTG.E.128 [R2.64], R4\n@P0 BRA many"
    found = judged(Flow(read(f"{few}\n{many}\nEXIT")))
    assert found.kind == "" and found.bytes_a_load == 16.0 and found.is_loop


def test_tensor_cores_outweigh_a_loop_of_fma():
    sums = "sums:\n" + "FFMA R0, R1, R2, R0\n" * 8 + "@P0 BRA sums"
    tiles = "tiles:\nHMMA.1688.F32.TF32 R0, R4, R6, R0\nLDL R9, [R1]\n@P0 BRA tiles"
    found = judged(Flow(read(f"{sums}\n{tiles}\nEXIT")))
    assert found.kind == "HMMA" and found.share("HMMA") == 1 / 3 and found.local == 1


# ---- what NVRTC makes ---------------------------------------------------------------------------

DOT = """
extern "C" __global__ void dot(const float4* a, const float4* b, float* y, int n)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        float4 u = a[i], v = b[i];
        sum += u.x * v.x; sum += u.y * v.y; sum += u.z * v.z; sum += u.w * v.w;
    }
    *y = sum;
}
"""


def compiled(text, name, arch="sm_90", **defines):
    return nvrtc.compile(Source.read(text, defines), [name], arch)[0]


@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
def test_a_loop_of_four_products(arch):
    found = main_loop(compiled(DOT, "dot", arch))
    assert found.is_loop and found.multiply_adds == {"FFMA": 4}
    assert found.loads == 2 and found.bytes_a_load == 16.0 and found.local == 0
    assert 4 + 2 + 2 <= found.instructions <= 20  # and counting, comparing, jumping


@pytest.mark.second
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_the_tiled_product_is_measured_with_its_loads(arch):
    """128 x 128: 64 multiply-adds for each of the 8 or more steps of k, and the loads around."""
    macros = {"GEMM_TILE": "128", "TRANSPOSE_A": "0", "TRANSPOSE_B": "0"}
    found = main_loop(compiled(kernel_file("matmul.cu"), "matmul<float>", arch, **macros))
    assert found.multiply_adds["FFMA"] >= 8 * 64 and found.multiply_adds["FFMA"] % 64 == 0
    assert found.loads > 0


@pytest.mark.second
@pytest.mark.parametrize(
    "a, b, number",
    [
        ("i", "i", 0),
        ("i / 7", "i / 8", 0),  # products and shifts
        ("i / n", "i", 0),  # the reciprocal is taken before the loop
        ("n / (i + 1)", "i", 1),
        ("n / (i + 1)", "n / (i + 2)", 2),
    ],
)
def test_integer_divisions_are_counted(a, b, number):
    text = DOT.replace("a[i]", f"a[{a}]").replace("b[i]", f"b[{b}]")
    assert main_loop(compiled(text, "dot")).divisions == number


@pytest.mark.second
def test_local_memory_shows():
    text = """
    extern "C" __global__ void pick(const int* at, float* y, int n)
    {
        float kept[8] = {};
        for (int i = 0; i < n; ++i) kept[at[i] & 7] += 1.0f;
        for (int i = 0; i < 8; ++i) y[i] = kept[i];
    }
    """
    assert main_loop(compiled(text, "pick")).local > 0


# ---- bounds ---------------------------------------------------------------------------------


def stated(tmp_path, text, name="dot<float, 4>", **defines):
    path = tmp_path / "dot.cu"
    path.write_text(text)
    return [str(bound) for bound in bounds(Instance(path, name, defines))]


def test_the_first_statement_that_fits(tmp_path):
    text = """
    // main loop of dot<double> (TILE=64): at least 0.25 DFMA
    // main loop of dot<T, 4> (TILE=64, MMA=1): at least 0.5 HMMA,
    //                                          at least 12 bytes a load
    /* main loop of dot: at most 70 instructions, at most 0 divisions */
    """
    tile = {"TILE": "64"}
    assert stated(tmp_path, text, **tile, MMA="1") == [
        "at least 0.5 HMMA",
        "at least 12 bytes a load",
    ]
    plain = ["at most 70 instructions", "at most 0 divisions"]
    assert stated(tmp_path, text, **tile) == plain
    assert stated(tmp_path, text, "dot<double, 4>", **tile) == ["at least 0.25 DFMA"]
    assert stated(tmp_path, text, "dot<double, 4>") == plain
    assert stated(tmp_path, text, "other") == []


@pytest.mark.parametrize(
    "statement, words",
    [
        ("at least 0.8", "at least 0.8"),
        ("over 0.8 FFMA", "over 0.8 FFMA"),
        ("at least 0.8 bytes", "at least 0.8 bytes"),
        ("", "got none"),
    ],
)
def test_a_statement_that_cannot_be_read(tmp_path, statement, words):
    with pytest.raises(ArgumentError, match=words) as error:
        stated(tmp_path, f"\n// main loop of dot: {statement}\n")
    assert "dot.cu:2" in str(error.value) and "bytes a load" in str(error.value)


def test_bounds_hold_at_their_number(tmp_path):
    path = tmp_path / "dot.cu"
    path.write_text("// main loop of dot: at least 0.5 FFMA, at most 8 instructions\n")
    share, number = bounds(Instance(path, "dot", {}))
    loop = MainLoop({"FFMA": 4, "LDG.E": 4})
    assert share.holds(loop.measure("FFMA")) and number.holds(loop.measure("instructions"))
    loop = MainLoop({"FFMA": 4, "LDG.E": 5})
    assert not share.holds(loop.measure("FFMA")) and not number.holds(loop.measure("instructions"))


# ---- the disassembler -----------------------------------------------------------------------


def test_without_a_disassembler_the_way_out_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(disassembly, "candidates", lambda: iter([tmp_path / "nvdisasm"]))
    with pytest.raises(KernelCompileError, match="pip install nvidia-cuda-nvdisasm"):
        disassembly.disassembler()


def test_what_is_no_machine_code_is_refused():
    with pytest.raises(KernelCompileError, match="to read the machine code"):
        disassemble(b"no cubin")


@pytest.mark.second
def test_instructions_are_those_of_the_text_form(tmp_path):
    """The JSON form against the text form of the same tool."""
    machine_code = compiled(DOT, "dot")
    path = tmp_path / "dot.cubin"
    path.write_bytes(machine_code.cubin)
    text = subprocess.run(
        [disassembly.disassembler(), "-c", "-novliw", path], capture_output=True, text=True
    ).stdout
    lines = [line.split("*/", 1)[1].strip(" ;") for line in text.splitlines() if "/*0" in line]
    found = disassemble(machine_code.cubin)[machine_code.symbol]
    assert len(lines) == len(found) > 20
    for line, instruction in zip(lines, found, strict=True):
        words = line.split()
        assert words[0] == (f"@{instruction.guard}" if instruction.guard else instruction.opcode)
        assert instruction.opcode in words[:2]
