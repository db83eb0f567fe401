/* What stands before the text of a program: the C++ library, then CUDA. */
#pragma once
#define TINYGRAPH_PROGRAM 1
#define __NVCC__ 1
#ifndef TINYGRAPH_HOST_FILE
#define __CUDACC__ 1
#endif
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

/* On the heap of the device in a kernel, on that of the process elsewhere. */
extern "C" void *tg_malloc(size_t bytes);
extern "C" void tg_free(void *pointer);

#include "cuda_runtime.h"
