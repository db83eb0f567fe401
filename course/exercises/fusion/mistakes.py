"""What goes wrong in exercise 13; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.fusion.mistakes_in_the_stage import IN_THE_STAGE

# Step 1
_GUARD = "    if (i >= N * C * P)\n        return;\n"
_SUM = "    const float z = x[i] + b[i / P % C];\n"
_RELU = "    y[i] = z > 0.0f ? z : 0.0f;\n"
# Step 2
_ROWS = "    if (i >= N * IN)\n        return;\n"
_BEGIN = "    float sum = 0.0f;\n"
_LOOP = "    for (int k = 0; k < OUT; ++k)\n"
_ADD = "        sum += gy[n * OUT + k] * w[k * IN + j];\n"
_MASK = "    gx[i] = h[i] > 0.0f ? sum : 0.0f;\n"
# Step 4
_WARPS = "    const long long warps = (long long)N * IN / 32;\n"
_PER_K = "    long long sectors = OUT * (1 + 4);  // for each k one number of gy, 32 of w\n"
_ENDS = "    sectors += 4 + 4;  // h is read, gx is written\n"
_BETWEEN = "    if (!fused)\n        sectors += 4 + 4;  // gx is written and read in between\n"
_BYTES = "    return 32 * warps * sectors;\n"

MISTAKES = [
    Mistake(
        1,
        "relu-before-bias",
        "You take ReLU of x and add the bias to it: the result may be negative. The bias comes\n"
        "first.",
        [(_SUM + _RELU, "    y[i] = (x[i] > 0.0f ? x[i] : 0.0f) + b[i / P % C];\n")],
    ),
    Mistake(
        1,
        "bias-alone",
        "Your kernel adds the bias alone: ReLU would be a second launch, which reads all of it\n"
        "and writes it once more. Do both before you write.",
        [(_RELU, "    y[i] = z;\n")],
    ),
    Mistake(
        1,
        "relu-alone",
        "The bias is missing: y = relu(x + b).",
        [(_SUM, "    const float z = x[i];\n")],
    ),
    Mistake(
        1,
        "bias-by-pixel",
        "Your bias goes by elements, not by channels: i % C changes with every pixel. A channel\n"
        "has P pixels that share one bias, i / P % C.",
        [(_SUM, _SUM.replace("i / P % C", "i % C"))],
    ),
    Mistake(
        1,
        "bias-by-row",
        "i / P counts the channels of all images, and b has those of one: you read beyond its\n"
        "end. The remainder by C begins anew in each image.",
        [(_SUM, _SUM.replace("i / P % C", "i / P"))],
    ),
    Mistake(
        1,
        "bias-by-image",
        "Your bias goes by images: i / (P * C) is n. The channel is i / P % C.",
        [(_SUM, _SUM.replace("i / P % C", "i / (P * C) % C"))],
    ),
    Mistake(
        1,
        "bias-of-the-first-channel",
        "All channels get b[0].",
        [(_SUM, _SUM.replace("i / P % C", "0"))],
    ),
    Mistake(
        1,
        "intermediate-written",
        "You write x + b to y, read it back and write it again: that is what two launches do.\n"
        "Keep it in a variable.",
        [
            (_SUM, "    y[i] = x[i] + b[i / P % C];\n"),
            (_RELU, "    if (y[i] < 0.0f)\n        y[i] = 0.0f;\n"),
        ],
    ),
    Mistake(
        1,
        "sides-exchanged",
        "Negative numbers keep their value, and positive ones become 0: the two sides of your\n"
        "choice are exchanged.",
        [(_RELU, "    y[i] = z > 0.0f ? 0.0f : z;\n")],
    ),
    Mistake(
        1,
        "zeros-not-written",
        "Where z is negative you write nothing: y holds what was there before. Memory on a GPU is\n"
        "not set to 0.",
        [(_RELU, "    if (z > 0.0f)\n        y[i] = z;\n")],
    ),
    Mistake(
        1,
        "no-guard",
        "The last block has more threads than there are elements left, and they read and write\n"
        "beyond the end. Only i < N * C * P has an element.",
        [(_GUARD, "")],
    ),
    Mistake(
        2,
        "mask-of-the-gradient",
        "You let a gradient pass where it is itself above 0. What counts is whether the ReLU was\n"
        "open, and that says h, its result.",
        [(_MASK, "    gx[i] = sum > 0.0f ? sum : 0.0f;\n")],
    ),
    Mistake(
        2,
        "mask-missing",
        "The gradient passes everywhere: the derivative is missing, which would be a second\n"
        "launch, or h >= 0, which is always so. It passes where h is above 0.",
        [(_MASK, "    gx[i] = sum;\n")],
        [[(_MASK, _MASK.replace("> 0", ">= 0"))]],
    ),
    Mistake(
        2,
        "mask-turned",
        "The gradient passes where the ReLU was closed: the two sides of your choice are\n"
        "exchanged.",
        [(_MASK, "    gx[i] = h[i] > 0.0f ? 0.0f : sum;\n")],
    ),
    Mistake(
        2,
        "times-h",
        "You multiply by h. The derivative of ReLU is 1 where h is above 0: the gradient passes\n"
        "as it is.",
        [(_MASK, "    gx[i] = sum * h[i];\n")],
    ),
    Mistake(
        2,
        "closed-not-written",
        "Where h is 0 you write nothing: gx holds what was there before.",
        [(_MASK, "    if (h[i] > 0.0f)\n        gx[i] = sum;\n")],
    ),
    Mistake(
        2,
        "weight-turned",
        "You read w[j, k]: w has a row of IN numbers for each output k.",
        [(_ADD, _ADD.replace("k * IN + j", "j * OUT + k"))],
    ),
    Mistake(
        2,
        "gradient-turned",
        "You read gy[k, n]: gy has a row of OUT numbers for each sample n.",
        [(_ADD, _ADD.replace("n * OUT + k", "k * N + n"))],
    ),
    Mistake(
        2,
        "gradient-of-sample-0",
        "All samples get the gradient of the first one: row n of gy begins at n * OUT.",
        [(_ADD, _ADD.replace("n * OUT + k", "k"))],
    ),
    Mistake(
        2,
        "summed-over-inputs",
        "Your sum goes to IN: it is taken over the OUT outputs, for each of which w has a row.",
        [(_LOOP, "    for (int k = 0; k < IN; ++k)\n")],
    ),
    Mistake(
        2,
        "last-output-alone",
        "Each product takes the place of the sum: an input goes into all OUT outputs, so add what\n"
        "comes back from each.",
        [(_ADD, _ADD.replace("+=", "="))],
    ),
    Mistake(
        2,
        "sum-not-zeroed",
        "Your sum begins with whatever was in the register: give it the value 0.",
        [(_BEGIN + _LOOP, "    float sum;\n" + _LOOP)],
    ),
    Mistake(
        2,
        "product-written",
        "You write the product to gx and read it back for the mask: that is what two launches do.\n"
        "Keep it in a variable.",
        [(_MASK, "    gx[i] = sum;\n    gx[i] = h[i] > 0.0f ? gx[i] : 0.0f;\n")],
        [[(_MASK, "    gx[i] = sum;\n    if (h[i] <= 0.0f)\n        gx[i] = 0.0f;\n")]],
    ),
    Mistake(
        2,
        "summed-in-memory",
        "Your sum lies in gx: each of its OUT steps reads global memory and writes it. Sum up in\n"
        "a variable, and write once.",
        [
            (_BEGIN + _LOOP, "    gx[i] = 0.0f;\n" + _LOOP),
            (_ADD, _ADD.replace("sum", "gx[i]")),
            (_MASK, "    if (h[i] <= 0.0f)\n        gx[i] = 0.0f;\n"),
        ],
    ),
    Mistake(
        2,
        "inputs-without-guard",
        "The last block has more threads than gx has elements left, and they read and write\n"
        "beyond the end. Only i < N * IN has an element.",
        [(_ROWS, "")],
    ),
    *IN_THE_STAGE,
    Mistake(
        4,
        "elements-counted",
        "You count what each lane reads, 4 bytes. Lanes that read the same number share a sector:\n"
        "one number of gy for 32 lanes is 32 bytes, not 128.",
        [(_PER_K, _PER_K.replace("(1 + 4)", "(4 + 4)"))],
    ),
    Mistake(
        4,
        "one-number-four-bytes",
        "You count 4 bytes for the number of gy that a warp reads. Memory comes in sectors: one\n"
        "number brings 32 bytes.",
        [(_BYTES, "    return 32 * warps * sectors - warps * OUT * 28;\n")],
    ),
    Mistake(
        4,
        "each-array-once",
        "You count every array once. There is no cache in this account: w is read by each row of\n"
        "gx anew, and gy by each warp.",
        [
            (
                _BYTES,
                "    const long long all = (long long)N * OUT + (long long)OUT * IN;\n"
                "    return 4 * (all + (fused ? 2LL : 4LL) * N * IN);\n",
            )
        ],
    ),
    Mistake(
        4,
        "sectors-for-bytes",
        "You count sectors, or numbers: a sector has 32 bytes, and a float 4.",
        [(_BYTES, "    return warps * sectors;\n")],
        [[(_BYTES, "    return 8 * warps * sectors;\n")]],
    ),
    Mistake(
        4,
        "ends-forgotten",
        "h and gx are missing, or one of them: a warp reads 4 sectors of h, and writes 4 of gx.",
        [(_ENDS, "")],
        [[(_ENDS, "    sectors += 4;\n")]],
    ),
    Mistake(
        4,
        "gradients-left-out",
        "The numbers of gy are missing: each k costs one sector of gy and four of w.",
        [(_PER_K, _PER_K.replace("(1 + 4)", "4"))],
    ),
    Mistake(
        4,
        "weights-left-out",
        "w is missing, or counted once for a warp: each k costs 4 sectors of another row of w.",
        [(_PER_K, _PER_K.replace("OUT * (1 + 4)", "OUT"))],
        [[(_PER_K, _PER_K.replace("OUT * (1 + 4)", "OUT + 4"))]],
    ),
    Mistake(
        4,
        "two-as-one",
        "Two launches cost as much as one in your count, or too little more: gx is written by the\n"
        "first, read by the second, and written again.",
        [(_BETWEEN, "")],
        [[(_BETWEEN, _BETWEEN.replace("4 + 4", "4"))]],
    ),
    Mistake(
        4,
        "fused-turned",
        "In your count one launch costs more than two.",
        [(_BETWEEN, _BETWEEN.replace("!", ""))],
    ),
    Mistake(
        4,
        "everything-twice",
        "You double the whole for two launches. The product is computed once: what is added is\n"
        "gx, written and read.",
        [(_BETWEEN, "    if (!fused)\n        sectors *= 2;\n")],
    ),
    Mistake(
        4,
        "int-overflow",
        "Your numbers are of type int, which ends at 2,147,483,647: a large layer moves more\n"
        "bytes. Take long long before you multiply.",
        [
            (_WARPS, "    const int warps = N * IN / 32;\n"),
            (_PER_K, _PER_K.replace("long long", "int")),
        ],
    ),
    Mistake(
        4,
        "threads-for-warps",
        "You multiply by threads, N * IN: a warp of 32 asks together, and the sectors are those\n"
        "of a warp.",
        [(_WARPS, "    const long long warps = (long long)N * IN;\n")],
    ),
]
