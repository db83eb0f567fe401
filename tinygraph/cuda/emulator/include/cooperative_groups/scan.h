// cg::inclusive_scan and cg::exclusive_scan, for tiles and coalesced groups.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class T, class Operation>
T inclusive_scan(const tg_lane_group &group, T value, Operation operation, TG_HERE)
{
    T all[32];
    const unsigned here = tg_warp_exchange(group.mask, &value, sizeof(T), all, file, line);
    bool first = true;
    T sum = value;
    for (unsigned rest = here & ((2u << tg_lane()) - 1); rest; rest &= rest - 1, first = false)
        sum = first ? all[__ffs((int)rest) - 1] : operation(sum, all[__ffs((int)rest) - 1]);
    return sum;
}
template <class T> T inclusive_scan(const tg_lane_group &group, T value, TG_HERE)
{
    return inclusive_scan(group, value, plus<T>(), file, line);
}
template <class T, class Operation>
T exclusive_scan(const tg_lane_group &group, T value, Operation operation, TG_HERE)
{
    const T sum = inclusive_scan(group, value, operation, file, line);
    return group.shfl_up(sum, 1, file, line);
}
template <class T> T exclusive_scan(const tg_lane_group &group, T value, TG_HERE)
{
    const T before = exclusive_scan(group, value, plus<T>(), file, line);
    return group.tg_rank() ? before : T();
}

} // namespace cooperative_groups
