"""What goes wrong in step 3 of exercise 13, convolution, ReLU and pooling in one launch."""

from tinygraph_course.content.exercise import Mistake

_MACRO = "#ifndef K\n#define K 3\n#endif\n"
_GUARD = "    if (i >= N * D * PH * PW)\n        return;\n"
_WHICH = (
    "    const int v = i % PW, u = i / PW % PH, d = i / (PW * PH) % D, n = i / (PW * PH * D);\n"
)
_SUMS = "    float sum[4] = {};\n    for (int c = 0; c < C; ++c) {\n"
_PATCH = "        float pixel[K + 1][K + 1];\n"
_LOAD = (
    "        for (int r = 0; r <= K; ++r)\n"
    "            for (int s = 0; s <= K; ++s)\n"
    "                pixel[r][s] = x[((n * C + c) * H + 2 * u + r) * W + 2 * v + s];\n"
)
_TAPS = "        for (int r = 0; r < K; ++r)\n            for (int s = 0; s < K; ++s) {\n"
_WEIGHT = "                const float weight = w[((d * C + c) * K + r) * K + s];\n"
_ADD = (
    "                for (int q = 0; q < 4; ++q)\n"
    "                    sum[q] += weight * pixel[q / 2 + r][q % 2 + s];\n"
    "            }\n"
)
_FIRST = "    float best = -1.0f;  // below whatever ReLU gives\n"
_Z = "        const float z = sum[q] + b[d];\n"
_A = "        const float a = z > 0.0f ? z : 0.0f;\n"
_LARGER = "        if (a > best) {\n"
_KEEP = "            where = q;\n"
_OUT = "    y[i] = best;\n"
_PLACE = "    argmax[i] = where;\n"

IN_THE_STAGE = [
    Mistake(
        3,
        "pooled-before-relu",
        "You pool before ReLU. The largest number is the same, but where all four are below 0\n"
        "ReLU makes them equal, and argmax is the first of them, 0.",
        [
            (_FIRST, "    float best = -INFINITY;\n"),
            (_A, "        const float a = z;\n"),
            (_OUT, "    y[i] = best > 0.0f ? best : 0.0f;\n"),
        ],
    ),
    Mistake(
        3,
        "relu-left-out",
        "ReLU is missing: a window of negative outputs gives 0.",
        [(_FIRST, "    float best = -INFINITY;\n"), (_A, "        const float a = z;\n")],
    ),
    Mistake(
        3,
        "stage-relu-before-bias",
        "You take ReLU of the sum and add the bias to it. The bias comes first.",
        [
            (_FIRST, "    float best = -INFINITY;\n"),
            (_Z + _A, "        const float a = (sum[q] > 0.0f ? sum[q] : 0.0f) + b[d];\n"),
        ],
    ),
    Mistake(
        3,
        "bias-left-out",
        "The bias is missing: each of the four outputs is its sum and b[d].",
        [(_Z, "        const float z = sum[q];\n")],
    ),
    Mistake(
        3,
        "bias-by-image-or-place",
        "Your bias goes by images or by places. A filter has one: b[d].",
        [(_Z, _Z.replace("b[d]", "b[n % D]"))],
        [[(_Z, _Z.replace("b[d]", "b[q % D]"))], [(_Z, _Z.replace("b[d]", "b[i % D]"))]],
    ),
    Mistake(
        3,
        "filters-of-3-alone",
        "You write 3 where K is meant, or set K to 3 whatever the launch says: with -DK=2 it\n"
        "computes something else. The default holds where nothing was said, #ifndef K.",
        [
            (
                _PATCH + _LOAD + _TAPS + _WEIGHT,
                (_PATCH + _LOAD + _TAPS + _WEIGHT).replace("K", "3"),
            )
        ],
        [
            [(_WEIGHT, _WEIGHT.replace("K", "3"))],
            [(_MACRO, "#undef K\n#define K 3\n")],
        ],
    ),
    Mistake(
        3,
        "windows-1-apart",
        "Your windows lie one output apart: window (u, v) begins at output (2 * u, 2 * v).",
        [(_LOAD, _LOAD.replace("2 * ", ""))],
    ),
    Mistake(
        3,
        "filter-flipped",
        "Your filter is turned round: weight (r, s) meets pixel (r, s) of the window, as in\n"
        "exercise 7.",
        [
            (
                _WEIGHT,
                "                const float weight = w[((d * C + c) * K + K - 1 - r) * K\n"
                "                                       + K - 1 - s];\n",
            )
        ],
    ),
    Mistake(
        3,
        "filter-turned",
        "You read weight (s, r) for pixel (r, s): rows and columns of the filter are exchanged.",
        [(_WEIGHT, _WEIGHT.replace("* K + r) * K + s", "* K + s) * K + r"))],
    ),
    Mistake(
        3,
        "filters-and-channels-exchanged",
        "You read w[c, d]: w is (D, C, K, K), filter after filter.",
        [(_WEIGHT, _WEIGHT.replace("d * C + c", "c * D + d"))],
    ),
    Mistake(
        3,
        "channels-not-summed",
        "Each channel begins anew, and the last one remains: a filter sums over all channels.",
        [
            (
                _SUMS,
                "    float sum[4] = {};\n    for (int c = 0; c < C; ++c) {\n"
                "        for (int q = 0; q < 4; ++q)\n            sum[q] = 0.0f;\n",
            )
        ],
    ),
    Mistake(
        3,
        "channel-0-alone",
        "You read the pixels of channel 0 for every channel.",
        [(_LOAD, _LOAD.replace("n * C + c", "n * C"))],
    ),
    Mistake(
        3,
        "image-0-alone",
        "All images get the outputs of the first one: the planes of image n begin at n * C.",
        [(_LOAD, _LOAD.replace("n * C + c", "c"))],
    ),
    Mistake(
        3,
        "sums-without-a-value",
        "Your sums begin with whatever was in the registers: give all four the value 0.",
        [(_SUMS, _SUMS.replace(" = {};", ";"))],
    ),
    Mistake(
        3,
        "last-of-equals",
        "Of equal outputs the last one wins: >= lets it, and after ReLU zeros are often equal.",
        [(_LARGER, _LARGER.replace(">", ">="))],
    ),
    Mistake(
        3,
        "place-in-the-image",
        "argmax is a place in the image. It is 0, 1, 2 or 3: which of the four outputs has won.",
        [
            (
                _PLACE,
                "    argmax[i] = (2 * u + where / 2) * (W - K + 1) + 2 * v + where % 2;\n",
            )
        ],
        [[(_PLACE, "    argmax[i] = (2 * u + where / 2) * W + 2 * v + where % 2;\n")]],
    ),
    Mistake(
        3,
        "place-not-kept",
        "argmax stays 0: keep the place with the value.",
        [(_KEEP, "")],
    ),
    Mistake(
        3,
        "places-turned",
        "Your four outputs are numbered column by column: 1 is the one to the right, 2 the one\n"
        "below.",
        [(_ADD, _ADD.replace("q / 2", "Q").replace("q % 2", "q / 2").replace("Q", "q % 2"))],
    ),
    Mistake(
        3,
        "windows-down-first",
        "Your windows are numbered column by column: v, across, is the last index of y.",
        [(_WHICH, _WHICH.replace("v = i % PW, u = i / PW % PH", "u = i % PH, v = i / PH % PW"))],
    ),
    Mistake(
        3,
        "images-inside-filters",
        "Your outputs go filter by filter, and image by image in each: y is (N, D, PH, PW).",
        [
            (
                _WHICH,
                _WHICH.replace(
                    "d = i / (PW * PH) % D, n = i / (PW * PH * D)",
                    "n = i / (PW * PH) % N, d = i / (PW * PH * N)",
                ),
            )
        ],
    ),
    Mistake(
        3,
        "averaged",
        "You take the mean of the four: the pooling takes the largest.",
        [
            (_FIRST, "    float best = 0.0f;\n"),
            (_LARGER, "        best += a / 4;\n        if (a > sum[where] + b[d]) {\n"),
            ("            best = a;\n", ""),
        ],
    ),
    Mistake(
        3,
        "pixels-read-for-each-output",
        "Each of the four outputs reads its own K x K pixels: most of them are the same. Read\n"
        "(K + 1) x (K + 1) into an array, and use them four times.",
        [
            (_PATCH + _LOAD, ""),
            (
                _ADD,
                _ADD.replace(
                    "pixel[q / 2 + r][q % 2 + s]",
                    "x[((n * C + c) * H + 2 * u + q / 2 + r) * W + 2 * v + q % 2 + s]",
                ),
            ),
        ],
    ),
    Mistake(
        3,
        "weights-read-for-each-output",
        "Each of the four outputs reads the weights anew: one reading serves all four.",
        [
            (
                _TAPS + _WEIGHT + _ADD,
                "        for (int q = 0; q < 4; ++q)\n"
                "            for (int r = 0; r < K; ++r)\n"
                "                for (int s = 0; s < K; ++s)\n"
                "                    sum[q] += w[((d * C + c) * K + r) * K + s]\n"
                "                              * pixel[q / 2 + r][q % 2 + s];\n",
            )
        ],
    ),
    Mistake(
        3,
        "no-guard-for-windows",
        "The last block has more threads than there are windows left, and they write behind y and\n"
        "argmax. Only i < N * D * PH * PW has a window.",
        [(_GUARD, "")],
    ),
]
