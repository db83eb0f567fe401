// Lets a kernel file that includes <device_launch_parameters.h> compile unchanged: the device side of that header
// is always there on the emulator.
#pragma once
#include "cuda_emulator.h"
