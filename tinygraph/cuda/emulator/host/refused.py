"""What the emulator does not have, by name, with the way out."""

from __future__ import annotations

import re

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.reading.source import Source

_LIBRARIES = {
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "curand": "cuRAND",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "nvjpeg": "nvJPEG",
    "npp": "NPP",
    "nccl": "NCCL",
    "nvrtc": "NVRTC",
    "nvml": "NVML",
    "nvToolsExt": "NVTX",
    "nvtx3/": "NVTX",
    "thrust/": "Thrust",
    "cub/": "CUB",
    "cuda/": "libcu++",
    "nv/": "libcu++",
    "GL/": "OpenGL",
    "cuda_gl_interop": "OpenGL",
    "helper_gl": "OpenGL",
    "cudaEGL": "EGL",
    "mpi": "MPI",
}
_HEADERS = {
    "cuda.h": "the emulator has the runtime API (cudaMalloc, <<<>>>), not the driver API (cuInit, "
    "cuLaunchKernel)",
    "mma.h": "the emulator has no nvcuda::wmma; mma.sync is in tinygraph's mma.cuh",
    "pipeline": "the emulator has no cuda::pipeline",
}
# Why something is not there, and the beginnings of the names that belong to it.
_REASONS = {
    "the emulator has no CUDA graphs: launch the kernels one after the other": (
        "cudaGraph cudaStreamBeginCapture cudaStreamEndCapture cudaStreamCapture "
        "cudaStreamGetCaptureInfo cudaStreamUpdateCaptureDependencies cudaKernelNode"
    ),
    "the emulator has no textures: read the array through a pointer": (
        "cudaCreateTextureObject cudaDestroyTextureObject cudaTexture cudaBindTexture cudaResource "
        "tex1D tex2D tex3D texCubemap texture cudaAddressMode cudaFilterMode cudaReadMode"
    ),
    "the emulator has no surfaces: write the array through a pointer": (
        "cudaCreateSurfaceObject cudaDestroySurfaceObject cudaSurface surf"
    ),
    "the emulator has no CUDA arrays, which serve textures: use cudaMalloc": (
        "cudaMallocArray cudaMalloc3D cudaMallocMipmappedArray cudaArray cudaChannelFormat "
        "cudaCreateChannelDesc cudaFreeArray cudaMemcpyToArray cudaMemcpy2DToArray cudaMemcpy3D "
        "cudaMemcpyFromArray cudaGetMipmapped cudaFreeMipmapped"
    ),
    "the emulator shares no memory between processes": "cudaIpc",
    "the emulator has one pool of memory: cudaMalloc and cudaFree": (
        "cudaMemPool cudaDeviceGetDefaultMemPool cudaDeviceGraphMem cudaMallocFromPoolAsync "
        "cudaMemAccess"
    ),
    "the emulator draws nothing: it has no OpenGL and no Direct3D": "cudaGraphics cudaGL cudaD3D",
    "the emulator has no nvcuda::wmma: mma.sync is in tinygraph's mma.cuh": "nvcuda wmma",
    "the emulator has one device: this_grid() is the widest group": "multi_grid this_multi_grid",
    "the emulator has tiles of at most 32 threads": "block_tile_memory",
    "the emulator has no cache of which a part could be set aside": (
        "cudaAccessPolicyWindow cudaAccessProperty cudaStreamAttr cudaStreamSetAttribute"
    ),
    "the emulator launches with <<<>>> and cudaLaunchKernel": (
        "cudaLaunchAttribute cudaLaunchConfig cudaLaunchKernelEx"
    ),
}
_NAMES = {start: why for why, starts in _REASONS.items() for start in starts.split()}
_UNKNOWN = "the emulator does not have this part of the CUDA runtime"

_MISSING = re.compile(r"error: (?P<header>[^\s:]+): No such file or directory")
_UNDECLARED = re.compile(
    r"error: .*?['‘’](?:\w+::)*(?P<name>\w+)['’](?: in namespace '[^']*')? "
    r"(?:was not declared|has not been declared|does not name a (?:template )?type|is not a member)"
)
# The assembler's errors begin with a capital letter.
_ASSEMBLY = re.compile(
    r"^(?P<file>\S+?):(?P<line>\d+)(?::\d+)?: "
    r"(?:Error: (?:no such instruction: `(?P<name>[^\s']+))?|error: )",
    re.MULTILINE,
)
_UNDEFINED = re.compile(r"undefined reference to [`'](?P<name>[^'(]+)")
_TWICE = re.compile(r"(?:multiple definition of [`']|duplicate symbol: )(?P<name>[^'(\n]+)")
_FILE = re.compile(r"^(?P<place>\S+?:\d+)(?::\d+)?: error: ", re.MULTILINE)


def explained(source: Source, error: KernelCompileError) -> KernelCompileError:
    """An error of the compiler; where it stems from something that the emulator lacks, one that
    says so."""
    text = str(error)
    undefined = _UNDEFINED.search(text)
    if undefined:
        name = undefined["name"]
        return KernelCompileError(
            f"{source.name}: {name}: no file of the program defines it; name the others with "
            "--with FILE"
        )
    twice = _TWICE.search(text)
    if twice:
        return KernelCompileError(
            f"{source.name}: {twice['name']}: two files of the program define it; write static or "
            "inline before one that stands in a header, or leave out a file of --with"
        )
    for match in _ASSEMBLY.finditer(text):
        file, line = match["file"], int(match["line"])
        if "Error" in match.group() or re.search(r"\basm\b", source.line(file, line)):
            return KernelCompileError(
                f"{file}:{line}: {match['name'] or 'asm'}: the emulator has no PTX: write in C++ "
                "what asm does here, or run the program on a GPU"
            )
    for match in re.finditer(r"^.*error: .*$", text, re.MULTILINE):
        why = _why(match.group())
        if why:
            place = _FILE.match(match.group())
            where = place["place"] if place else source.name
            return KernelCompileError(f"{where}: {why}")
    return error


def _why(line: str) -> str:
    """Why the emulator lacks what an error names; nothing for another error.

    >>> _why("k.cu:3: error: 'cudaIpcGetMemHandle' was not declared in this scope")
    'cudaIpcGetMemHandle: the emulator shares no memory between processes'
    """
    header = _MISSING.search(line)
    if header:
        return _why_header(header["header"])
    match = _UNDECLARED.search(line.replace("‘", "'").replace("’", "'"))
    if not match:
        return ""
    name = match["name"]
    starts = [start for start in _NAMES if name.startswith(start)]
    if starts:
        return f"{name}: {_NAMES[max(starts, key=len)]}"
    return f"{name}: {_UNKNOWN}" if re.match(r"cuda[A-Z]", name) else ""


def _why_header(header: str) -> str:
    if header in _HEADERS:
        return f"{header}: {_HEADERS[header]}"
    for start, library in _LIBRARIES.items():
        if header.startswith(start):
            return (
                f"{header}: the emulator runs kernels of your own and not {library}: "
                "write this step as a kernel, or run the program on a GPU"
            )
    return f"{header}: no such header here; name its folder with --include DIR"
