// Modules, functions and launches.  A launch is held to the limits of compute capability 9.0 and to
// what the cubin says of its kernel; then Python is told, which has it run by the emulator.
#include "machine.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>

namespace {

constexpr long long MOST_GRID_X = 2147483647, MOST_GRID_YZ = 65535;
constexpr unsigned MOST_THREADS = 1024, MOST_BLOCK_Z = 64, WARP = 32, REGISTERS = 65536;
constexpr int SHARED = 48 << 10, SHARED_OPT_IN = 227 << 10;

// Modules and functions stay to the end of the process: their addresses name them for Python.
CUresult load(CUmodule *module, std::string image) {
    if (image.compare(0, SELFMAG, ELFMAG) != 0)
        return violation(CUDA_ERROR_INVALID_IMAGE, "loaded what is no cubin");
    *module = new CUmod_st{std::move(image)};
    return CUDA_SUCCESS;
}

unsigned rounded(unsigned number, unsigned unit) { return (number + unit - 1) / unit * unit; }

CUresult check(const CUfunc_st *f, const unsigned *grid, const unsigned *block, unsigned shared) {
    const unsigned long long threads = 1ull * block[0] * block[1] * block[2];
    if (!threads || !grid[0] || !grid[1] || !grid[2])
        return violation(CUDA_ERROR_INVALID_VALUE, f->name + ": an empty grid or block");
    if (grid[0] > MOST_GRID_X || grid[1] > MOST_GRID_YZ || grid[2] > MOST_GRID_YZ)
        return violation(CUDA_ERROR_INVALID_VALUE, f->name + ": a grid that is too large");
    if (threads > MOST_THREADS || block[2] > MOST_BLOCK_Z || threads > unsigned(f->most_threads))
        return violation(CUDA_ERROR_INVALID_VALUE, f->name + ": a block that is too large");
    if (shared > unsigned(f->dynamic_shared))
        return violation(CUDA_ERROR_INVALID_VALUE,
                         f->name + ": more shared memory than was asked for");
    // registers are given to whole warps, in units of 8 a thread
    if (rounded(f->registers, 8) * rounded(threads, WARP) > REGISTERS)
        return violation(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, f->name + ": too many registers");
    return CUDA_SUCCESS;
}

}  // namespace

API const char *machine_function_name(CUfunction function) { return function->name.c_str(); }
API void *machine_function_module(CUfunction function) { return function->module; }
API const char *machine_image(CUmodule module) { return module->image.data(); }
API size_t machine_image_size(CUmodule module) { return module->image.size(); }

API CUresult cuModuleLoad(CUmodule *module, const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return violation(CUDA_ERROR_FILE_NOT_FOUND, std::string("no file ") + path);
    return load(module, std::string(std::istreambuf_iterator<char>(file), {}));
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const auto *head = static_cast<const Elf64_Ehdr *>(image);
    if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return load(module, "");
    // the table of sections stands last, or that of segments behind it
    const size_t sections = head->e_shoff + size_t(head->e_shentsize) * head->e_shnum;
    const size_t segments = head->e_phoff + size_t(head->e_phentsize) * head->e_phnum;
    return load(module, {static_cast<const char *>(image), std::max(sections, segments)});
}

API CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    auto found = new CUfunc_st{module, name};
    if (!describe(module->image, found))
        return violation(CUDA_ERROR_NOT_FOUND, found->name + ": the cubin has no such kernel");
    found->dynamic_shared = SHARED - found->static_shared;
    *function = found;
    return CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute what, CUfunction function) {
    COUNTED;
    const CUfunc_st &f = *function;
    switch (what) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = f.most_threads; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = f.static_shared; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = f.registers; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f.dynamic_shared; break;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute what, int value) {
    COUNTED;
    if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value < 0 || value + function->static_shared > SHARED_OPT_IN)
        return violation(CUDA_ERROR_INVALID_VALUE,
                         function->name + ": more shared memory than a block can have");
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            CUstream handle, void **parameters, void **) {
    COUNTED;
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    CUresult wrong = check(function, grid, block, shared);
    if (wrong == CUDA_SUCCESS) wrong = CUresult(check_legacy(stream_of(handle)));
    if (wrong != CUDA_SUCCESS) return wrong;
    const bool captured = stream_of(handle)->capturing;
    const long number =
        launched && !idle ? launched(function, grid, block, shared, parameters, captured) : 0;
    if (number < 0) return CUresult(-number);
    if (!captured) return CUDA_SUCCESS;
    return CUresult(queue(handle, Work{Work::LAUNCH, nullptr, nullptr, 0, 0, number}));
}
