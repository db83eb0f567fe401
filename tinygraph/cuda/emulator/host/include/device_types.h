/* Its contents are always there on the emulator. */
#pragma once
#include "cuda_runtime.h"
