// cg::reduce and its operators, for tiles and coalesced groups: every thread gets the result.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T> struct plus { TG_INLINE T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { TG_INLINE T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { TG_INLINE T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { TG_INLINE T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { TG_INLINE T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { TG_INLINE T operator()(T a, T b) const { return a ^ b; } };

// As a tree, in the order in which shfl_down would add; a GPU may add in another one.
template <class T, class Operation>
T reduce(const tg_lane_group &group, T value, Operation operation, TG_HERE)
{
    T all[32];
    const unsigned here = tg_warp_exchange(group.mask, &value, sizeof(T), all, file, line);
    unsigned count = 0;
    T ranked[32];
    for (unsigned rest = here; rest; rest &= rest - 1) ranked[count++] = all[__ffs((int)rest) - 1];
    for (unsigned half = 16; half; half /= 2)
        for (unsigned i = 0; i < half && i + half < count; i++)
            ranked[i] = operation(ranked[i], ranked[i + half]);
    return ranked[0];
}

} // namespace cooperative_groups
