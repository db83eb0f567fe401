// cg::memcpy_async and cg::wait: copies of a group into shared memory that are there after the wait.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

// Each thread copies every size()-th piece; as on a GPU, nothing arrives before wait.
template <class Group>
void memcpy_async(const Group &group, void *to, const void *from, size_t bytes, TG_HERE)
{
    const size_t addresses = (size_t)to | (size_t)from | bytes;
    const size_t piece = addresses % 16 == 0 ? 16 : addresses % 4 == 0 ? 4 : 1;
    for (size_t at = group.thread_rank() * piece; at < bytes; at += group.size() * piece)
        tg_copy_later((char *)to + at, (const char *)from + at, (unsigned)piece, file, line);
    tg_copy_commit();
}
template <class Group> void wait(const Group &group, TG_HERE)
{
    tg_copy_wait(0);
    group.sync(file, line);
}
template <unsigned LEFT, class Group> void wait_prior(const Group &group, TG_HERE)
{
    tg_copy_wait(LEFT);
    group.sync(file, line);
}

} // namespace cooperative_groups
