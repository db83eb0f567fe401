"""What tries step 4: the numbers, and which way led to them.

It stands behind the learner's file.
"""


def tg_gemm(*problem):
    """`gemm`, and how often it has called `im2col` and `direct`."""
    global im2col, direct
    before, calls = (im2col, direct), {"im2col": 0, "direct": 0}

    def counted(function, name):
        def call(*arguments, **options):
            calls[name] += 1
            return function(*arguments, **options)

        return call

    im2col, direct = counted(im2col, "im2col"), counted(direct, "direct")
    try:
        y = gemm(*problem)
    finally:
        im2col, direct = before
    return [y, calls["im2col"], calls["direct"]]
