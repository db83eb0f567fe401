"""What goes wrong in exercise 10; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_INDEX = "blockIdx.x * BLOCK + threadIdx.x"
_GUARD = "return i < n ? x[i] : 0.0f;"
_LOOP = "for (int half = BLOCK / 2; half > 0; half /= 2) {"
_BARRIER = "        __syncthreads();\n        if (t < half)\n"
_ADD = "            parts[t] += parts[t + half];\n"
_WRITE = "    if (threadIdx.x == 0)\n        sums[blockIdx.x] = parts[0];"
_SHUFFLE = "value += __shfl_down_sync(0xffffffffu, value, k);"
_ROUNDS = "for (int k = 16; k > 0; k /= 2)"

MISTAKES = [
    Mistake(
        1,
        "no-guard",
        "The last block has more threads than there are elements left: they read beyond the end\n"
        "of x, or one of them does. Only i < n has an element.",
        [(_GUARD, "return x[i];")],
    ),
    Mistake(
        1,
        "guard-one-too-far",
        "i <= n lets one thread too many through: it reads x[n], and the last element is\n"
        "x[n - 1].",
        [(_GUARD, "return i <= n ? x[i] : 0.0f;")],
    ),
    Mistake(
        1,
        "every-block-the-same",
        "Every block reads the first elements of x: threadIdx.x counts within the block alone.",
        [(_INDEX, "threadIdx.x")],
    ),
    Mistake(
        1,
        "block-and-thread-added",
        "blockIdx.x + threadIdx.x: blocks overlap. A block begins BLOCK elements after the one\n"
        "before it.",
        [(_INDEX, "blockIdx.x + threadIdx.x")],
    ),
    Mistake(
        1,
        "strided-by-blocks",
        "Your blocks take elements in turns. Here each block has BLOCK elements that lie side by\n"
        "side.",
        [(_INDEX, "threadIdx.x * gridDim.x + blockIdx.x")],
    ),
    Mistake(
        1,
        "last-element-for-the-tail",
        "Threads without an element bring the last one again. They bring 0: the sum shall not\n"
        "change.",
        [(_GUARD, "return x[i < n ? i : n - 1];")],
    ),
    Mistake(
        2,
        "no-barrier",
        "Nothing says that the others have written when a thread reads: between writing and\n"
        "reading by another thread there is a barrier, in every round.",
        [(_BARRIER, "        if (t < half)\n")],
    ),
    Mistake(
        2,
        "barrier-once",
        "There is one barrier, before the loop. What a round writes the next one reads: each\n"
        "round needs its own.",
        [(_LOOP, f"__syncthreads();\n    {_LOOP}"), (_BARRIER, "        if (t < half)\n")],
    ),
    Mistake(
        2,
        "barrier-after-alone",
        "Your barrier stands at the end of a round: the first round reads parts that others have\n"
        "only just written.",
        [(_BARRIER, "        if (t < half)\n"), (_ADD, f"{_ADD}        __syncthreads();\n")],
    ),
    Mistake(
        2,
        "barrier-inside-the-if",
        "Only some threads come to your barrier. A barrier waits for all threads of the block: it\n"
        "stands where all of them come by.",
        [
            (
                _BARRIER + _ADD,
                f"        if (t < half) {{\n            __syncthreads();\n{_ADD}        }}\n",
            )
        ],
    ),
    Mistake(
        2,
        "no-barrier-in-a-warp",
        "You leave the barrier out where 32 threads or fewer are left. Threads of a warp do not\n"
        "run in step: __syncwarp() at least.",
        [
            (
                _BARRIER,
                "        if (half >= 32)\n            __syncthreads();\n        if (t < half)\n",
            )
        ],
        [
            [
                (_LOOP, f"__syncthreads();\n    {_LOOP}"),
                (_BARRIER, "        if (t < half)\n"),
                (_ADD, f"{_ADD}        if (half > 32)\n            __syncthreads();\n"),
            ],
            [
                (_LOOP, f"__syncthreads();\n    {_LOOP}"),
                (_BARRIER, "        if (t < half)\n"),
                (_ADD, f"{_ADD}        if (half >= 32)\n            __syncthreads();\n"),
            ],
        ],
    ),
    Mistake(
        2,
        "upper-half-lost",
        "A round is missing: the upper half of the parts is in no sum.",
        [(_LOOP, "for (int half = BLOCK / 4; half > 0; half /= 2) {")],
    ),
    Mistake(
        2,
        "odd-parts-lost",
        "A round is missing: parts[1], parts[3] and so on do not come to parts[0].",
        [(_LOOP, "for (int half = BLOCK / 2; half > 1; half /= 2) {")],
    ),
    Mistake(
        2,
        "one-thread-too-many",
        "t <= half: thread `half` adds too, and changes a part that thread 0 reads in this round.",
        [(_BARRIER, "        __syncthreads();\n        if (t <= half)\n")],
    ),
    Mistake(
        2,
        "all-add",
        "All threads add in every round: the upper ones read beyond the parts, or what others are\n"
        "changing.",
        [(_BARRIER, "        __syncthreads();\n")],
    ),
    Mistake(
        3,
        "all-write",
        "All threads of the block write the same element. One is enough: thread 0, which has\n"
        "made the sum.",
        [(_WRITE, "    sums[blockIdx.x] = parts[0];")],
        [[(_WRITE, "    __syncthreads();\n    sums[blockIdx.x] = parts[0];")]],
    ),
    Mistake(
        3,
        "all-blocks-to-one",
        "Every block writes sums[0]. Each has an element of its own: sums[blockIdx.x].",
        [(_WRITE, "    if (threadIdx.x == 0)\n        sums[0] = parts[0];")],
    ),
    Mistake(
        3,
        "added-to-what-was-there",
        "You add to what lies in sums. Nobody has set it to 0, and only one thread writes there:\n"
        "assign.",
        [
            (
                _WRITE,
                "    if (threadIdx.x == 0)\n        atomicAdd(&sums[blockIdx.x], parts[0]);",
            )
        ],
    ),
    Mistake(
        3,
        "last-thread-writes",
        "The last thread writes, and nothing says that thread 0 has made the last sum before it\n"
        "reads parts[0].",
        [(_WRITE, "    if (threadIdx.x == BLOCK - 1)\n        sums[blockIdx.x] = parts[0];")],
    ),
    Mistake(
        4,
        "few-lanes-in-the-mask",
        "Your mask names half of the warp, and all lanes come: the value of a lane that the mask\n"
        "does not name is undefined.",
        [(_SHUFFLE, _SHUFFLE.replace("0xffffffffu", "0xffffu"))],
    ),
    Mistake(
        4,
        "half-a-warp",
        "Your rounds begin at 8: the upper 16 lanes are in no sum.",
        [(_ROUNDS, "for (int k = 8; k > 0; k /= 2)")],
    ),
    Mistake(
        4,
        "round-missing",
        "Your last round is k = 2: lane 1 is not added to lane 0.",
        [(_ROUNDS, "for (int k = 16; k > 1; k /= 2)")],
    ),
    Mistake(
        4,
        "next-lane-each-round",
        "Every round takes from the next lane: values near lane 0 are added several times, and\n"
        "those of far lanes never arrive. The distance is k.",
        [(_SHUFFLE, _SHUFFLE.replace("k)", "1)"))],
    ),
    Mistake(
        4,
        "shuffle-inside-an-if",
        "Only some lanes come to your shuffle, and its mask names all of them. All lanes call it;\n"
        "what the upper ones get harms nobody.",
        [(_SHUFFLE, f"if (threadIdx.x % 32 < k)\n            {_SHUFFLE}")],
    ),
    Mistake(
        4,
        "not-added",
        "You take the value of the other lane in the place of your own: add it.",
        [(_SHUFFLE, _SHUFFLE.replace("+=", "="))],
    ),
    Mistake(
        4,
        "upwards",
        "__shfl_up_sync takes from the lane before: the sum ends in lane 31, and lane 0 has added\n"
        "its own value again and again.",
        [(_SHUFFLE, _SHUFFLE.replace("down", "up"))],
    ),
]
