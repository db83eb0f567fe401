// make_float4 and its like stand beside the types.
#pragma once
#include "vector_types.h"
