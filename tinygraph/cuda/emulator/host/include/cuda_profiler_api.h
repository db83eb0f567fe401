/* cudaProfilerStart and cudaProfilerStop stand with the rest of the API. */
#pragma once
#include "cuda_runtime.h"
