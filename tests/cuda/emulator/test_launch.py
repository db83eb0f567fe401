"""Launches and the process around them: threads, forks, signals, memory; and the same bits."""

import threading

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_alive, check, in_child, run
from tinygraph.base.errors import KernelLaunchError

# Sums whose last bits depend on the order: an order that moves would show.
SUMS = """
__global__ void sums(const float* x, float* y, int n) {
    __shared__ float part[128];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) sum += x[i] * x[i] / 3;
    part[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    float total = part[0];
    for (int i = 16; i > 0; i /= 2) total += __shfl_xor_sync(0xffffffff, total * t, i);
    y[blockIdx.x * 128 + t] = total;
}"""
RACY = """
__global__ void racy(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[63 - threadIdx.x];
}"""


def sums(n=30_000, grid=40):
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    y = np.zeros(grid * 128, np.float32)
    run(SUMS, grid, 128, x, y, n)
    return y


def test_two_launches_give_the_same_bits():
    assert sums().tobytes() == sums().tobytes()


@pytest.mark.second
def test_one_and_several_threads_of_the_system_give_the_same_bits():
    code = """
import hashlib
from tests.cuda.emulator.test_launch import sums
y = sums()
workers = len(os.listdir("/proc/self/task"))
print(hashlib.sha256(y.tobytes()).hexdigest(), workers)
"""
    told = [in_child(code, TINYGRAPH_EMULATOR_THREADS=n).stdout.split() for n in ("1", "2", "4")]
    assert len({bits for bits, _ in told}) == 1
    counts = [int(workers) for _, workers in told]
    assert counts[1] == counts[0] + 1 and counts[2] == counts[0] + 3


# ---- several threads of Python -------------------------------------------------------------------


def in_threads(*tasks):
    """Run functions at the same time, each in a thread; raise the first error of any."""
    errors, gate = [], threading.Barrier(len(tasks))

    def guarded(task):
        gate.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_threads_launch_while_others_check():
    """The checker's books are of one launch; a plain launch beside it leaves no trace in them."""
    expected = sums().tobytes()

    def launches():
        for _ in range(20):
            assert sums().tobytes() == expected

    def checks():
        for _ in range(5):
            report = check(RACY, 1, 64, np.zeros(64, np.float32))
            assert [f.kind for f in report.findings] == ["uninitialized", "race"], report.text()
            x, y = np.ones(500, np.float32), np.zeros(256, np.float32)
            report = check(SUMS, 2, 128, x, y, 500)
            assert report.ok, report.text()

    in_threads(launches, checks, launches, checks)


def test_threads_meet_a_kernel_that_nobody_has_compiled():
    text = SUMS.replace("sums(", "sums_of_many(").replace("/ 3", "/ 5")
    results = []

    def task():
        x, y = np.ones(1000, np.float32), np.zeros(512, np.float32)
        run(text, 4, 128, x, y, 1000)
        results.append(y.tobytes())

    in_threads(*[task] * 4)
    assert len(results) == 4 and len(set(results)) == 1


def test_threads_fail_while_others_go_on():
    expected = sums().tobytes()

    def fails():
        for _ in range(10):
            with pytest.raises(KernelLaunchError, match="assertion failed: blockIdx"):
                run(
                    "__global__ void k(int* y) { assert(blockIdx.x < 30); y[blockIdx.x] = 1; }",
                    64,
                    64,
                    np.zeros(64, np.int32),
                )

    def launches():
        for _ in range(20):
            assert sums().tobytes() == expected

    in_threads(fails, launches, fails)


# ---- processes -----------------------------------------------------------------------------------


@pytest.mark.second
def test_a_child_launches_after_a_fork():
    """The pool's threads and the watchdog are not there in a child; it makes its own."""
    child = in_child(
        """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
from tests.cuda.emulator.test_launch import RACY, sums
expected = sums().tobytes()
for _ in range(6):
    time.sleep(0.12)  # the parent's watchdog has gone to sleep, in some of the forks
    if (pid := os.fork()) == 0:
        status = 1
        try:
            good = sums().tobytes() == expected and not check(RACY, 1, 64, np.zeros(64, "f4")).ok
            time.sleep(0.12)  # the child's too: it must be woken
            try:
                run("__global__ void k(int* y) { while (*(volatile int*)y == 0) {} }", 1, 1,
                    np.zeros(1, np.int32))
            except Exception as error:  # the watchdog of the child
                status = 0 if good and "not done after" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert sums().tobytes() == expected
print("alive")
""",
        TINYGRAPH_KERNEL_TIMEOUT="0.3",
    )
    assert_alive(child, "alive")


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.second
def test_launches_inside_multiprocessing(tmp_path, method):
    script = tmp_path / "pool.py"
    script.write_text(f"""
import multiprocessing, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from tests.cuda.emulator.test_launch import sums

def bits(_):
    return sums().tobytes()

if __name__ == "__main__":
    expected = bits(0)
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        assert pool.map(bits, range(4)) == [expected] * 4
    print("alive")
""")
    child = in_child(
        f"import runpy; sys.argv = [{str(script)!r}]\n"
        f"os.execv(sys.executable, [sys.executable, {str(script)!r}])"
    )
    assert_alive(child, "alive")


@pytest.mark.second
def test_ctrl_c_during_a_launch_raises_afterwards():
    child = in_child("""
LONG = '''__global__ void busy(double* y, volatile int* begun) {
    *begun = 1;
    double v = threadIdx.x;
    for (int i = 0; i < 4000000; i++) v = v * 0.999 + 1;
    y[blockIdx.x * blockDim.x + threadIdx.x] = v;
}'''
y, begun = np.zeros(32), np.zeros(1, np.int32)

def interrupt():
    while not begun[0]:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
kernel(LONG)(1, 1, y, begun)  # compiles
y[:], begun[:] = 0, 0
threading.Thread(target=interrupt).start()
try:
    run(LONG, 1, 32, y, begun)
    time.sleep(5)
    print("no KeyboardInterrupt")
except KeyboardInterrupt:
    print("interrupted", (y > 0).all())
launch_right()
print("alive")
""")
    assert_alive(child, "interrupted True", "alive")


# ---- thousands of launches -----------------------------------------------------------------------


@pytest.mark.second
def test_launches_keep_neither_memory_nor_threads():
    child = in_child(
        """
import resource
from tests.cuda.emulator.test_launch import RACY, SUMS
x, y = np.ones(3000, np.float32), np.zeros(24 * 128, np.float32)
WILD = "__global__ void wild(int* y) { if (threadIdx.x == 40) y[1 << 28] = 1; __syncthreads(); }"

def round_of_launches(times):
    for _ in range(times):
        run(SUMS, 24, 128, x, y, x.size)
    for _ in range(times // 10):
        check(RACY, 1, 64, np.zeros(64, np.float32))
        check(RACY, 1, 64, np.zeros(64, np.float32), profile=True)
        try:
            run(WILD, 1, 64, np.zeros(1, np.int32))
        except Exception as error:
            assert "y[268435456] lies outside of the array" in str(error)
    for _ in range(times // 50):  # a thread that launched takes its stacks with it
        thread = threading.Thread(target=run, args=(SUMS, 24, 128, x, y, x.size))
        thread.start()
        thread.join()

def mappings():
    return sum(1 for _ in open("/proc/self/maps"))

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6

def held():
    time.sleep(0.5)  # a thread that has been joined may still be giving its stacks back
    return len(os.listdir("/proc/self/task")), mappings(), resident()

round_of_launches(200)
before = held()
round_of_launches(1000)
after = held()
print("threads", after[0] - before[0], "mappings", after[1] - before[1] < 50,
      "memory", after[2] - before[2] < 8, before, after)
""",
        seconds=120,
        TINYGRAPH_EMULATOR_THREADS="2",
    )
    assert_alive(child, "threads 0 mappings True memory True")
