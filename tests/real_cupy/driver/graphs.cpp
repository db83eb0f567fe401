// What was captured, as a list: a graph of one stream is one.
#include "machine.h"

#include <cstring>

cudaError_t run(const Work &work) {
    if (idle) return cudaSuccess;
    switch (work.kind) {
        case Work::COPY:
            std::memmove(work.to, work.from, work.bytes);
            return cudaSuccess;
        case Work::FILL:
            std::memset(work.to, work.value, work.bytes);
            return cudaSuccess;
        case Work::LAUNCH:
            return replayed ? cudaError_t(replayed(work.launch)) : cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
    COUNTED;
    *made = new CUgraphExec_st{graph->work};
    return cudaSuccess;
}

API cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    COUNTED;
    if (stream_of(stream)->capturing)
        return violation(cudaErrorNotSupported, "a graph within a graph is not simulated");
    for (const Work &work : graph->work) {
        // Whoever captured a step has to keep its memory: here it is seen when it was freed.
        if (work.kind == Work::COPY && !on_device(work.from, work.bytes) &&
            !is_pinned(work.from, work.bytes))
            return violation(cudaErrorIllegalAddress, "a graph reads memory that was freed");
        if (work.kind != Work::LAUNCH && !on_device(work.to, work.bytes) &&
            !is_pinned(work.to, work.bytes))
            return violation(cudaErrorIllegalAddress, "a graph writes memory that was freed");
        const cudaError_t wrong = run(work);
        if (wrong != cudaSuccess) return wrong;
    }
    return cudaSuccess;
}

API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete graph;
    return cudaSuccess;
}

API long machine_graph_length(cudaGraphExec_t graph) { return long(graph->work.size()); }
