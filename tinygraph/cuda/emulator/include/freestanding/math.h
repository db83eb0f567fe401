// Kernels that include <math.h> get CUDA's functions; C files get the C library's header.
#ifdef __cplusplus
#include "cuda_emulator.h"
#else
#include_next <math.h>
#endif
