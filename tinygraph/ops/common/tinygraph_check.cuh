// Words from a kernel to the checker of the emulator. On a GPU they are nothing at all.
//
// The checker understands barriers, and a fence followed by an atomic or a volatile access (one
// thread publishes, another picks up). For an order that comes about in another way:
//
//     TG_HAPPENS_BEFORE(p);   what this thread did so far comes before ...
//     TG_HAPPENS_AFTER(p);    ... what a thread does that passes here later, with the same address
//
// p is any pointer; only its value matters. A wrong mark hides a race: write down why it holds.
#pragma once

#ifdef TINYGRAPH_EMULATOR
extern "C" void tg_happens(int after, const void* address);
#define TG_HAPPENS_BEFORE(p) tg_happens(0, (const void*)(p))
#define TG_HAPPENS_AFTER(p) tg_happens(1, (const void*)(p))
#else
#define TG_HAPPENS_BEFORE(p) ((void)0)
#define TG_HAPPENS_AFTER(p) ((void)0)
#endif
