/* A launch: a kernel with copies of its arguments, run by the emulator (runtime/launch.c). */
#pragma once

extern "C" cudaError_t tg_program_launch(const char *name, void (*entry)(const char *packed),
                                         const void *packed, size_t bytes, const uint3 *grid,
                                         const uint3 *block, size_t shared, int cooperative,
                                         const char *file, int line);
extern "C" void tg_register_kernel(const void *kernel, cudaError_t (*launch)(const void *, dim3, dim3,
                                   void **, size_t, int, const char *, int));
extern "C" cudaError_t tg_launch_registered(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                            size_t shared, int cooperative, const char *file, int line);

/* A call that the checker does not see: what it reads are the arguments of the launch. */
#define TG_UNSEEN __attribute__((noinline, no_sanitize("thread")))

template <__SIZE_TYPE__ I, class T> struct tg_argument { T value; };
template <class F, class Indices, class... A> struct tg_packed;
template <class F, __SIZE_TYPE__... I, class... A>
struct tg_packed<F, tg_indices<I...>, A...> : tg_argument<I, A>... {
    F kernel;
    tg_packed(const F &kernel, const A &...a) : tg_argument<I, A>{a}..., kernel(kernel) {}
    static TG_UNINSTRUMENTED void enter(const char *packed)
    {
        const tg_packed &p = *(const tg_packed *)packed;
        p.kernel(static_cast<const tg_argument<I, A> &>(p).value...);
    }
};

template <class F> struct tg_configured {
    F kernel;
    const char *name, *file;
    int line;
    uint3 grid, block;
    size_t shared;

    template <class... A> void operator()(const A &...arguments) const
    {
        launch(false, arguments...);
    }
    template <class... A> cudaError_t launch(bool together, const A &...arguments) const
    {
        typedef tg_packed<F, typename tg_count<sizeof...(A)>::type, typename std::decay<A>::type...> Packed;
        const Packed packed(kernel, arguments...);
        return tg_program_launch(name, Packed::enter, &packed, sizeof packed, &grid, &block, shared,
                                 together, file, line);
    }
};

template <class F> struct tg_launch {
    const char *name, *file;
    int line;
    F kernel;
    tg_launch(const char *name, F kernel, TG_HERE) : name(name), file(file), line(line), kernel(kernel) {}
    tg_configured<F> with(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = 0) const
    {
        return {kernel, name, file, line, grid, block, shared};
    }
};

/* A kernel by its name, which may be overloaded, a template, or a variable: called where it is used. */
#define TG_KERNEL(...) [&](auto... tg_a) TG_UNSEEN { __VA_ARGS__(tg_a...); }

/* ---- launches by address: arguments are pointers to values ---------------------------------------------- */

template <class T> struct tg_value { typedef typename std::remove_cv<typename std::remove_reference<T>::type>::type type; };

template <class... P, __SIZE_TYPE__... I>
cudaError_t tg_launch_pointers(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments,
                               size_t shared, int together, const char *file, int line, tg_indices<I...>)
{
    auto call = [kernel](const P &...values) TG_UNSEEN { kernel(values...); };
    tg_configured<decltype(call)> launch{call, "", file, line, grid, block, shared};
    (void)arguments;
    return launch.launch(together, *(const typename tg_value<P>::type *)arguments[I]...);
}

/* `(void *)kernel` forgets the types of the parameters: the translator wraps it, so that they are known. */
template <class... P> struct tg_known_kernel {
    static cudaError_t launch(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                              int together, const char *file, int line)
    {
        return tg_launch_pointers((void (*)(P...))kernel, grid, block, arguments, shared, together, file,
                                  line, typename tg_count<sizeof...(P)>::type());
    }
};
template <class... P> auto tg_known(void (*kernel)(P...)) -> void (*)(P...)
{
    tg_register_kernel((const void *)kernel, tg_known_kernel<P...>::launch);
    return kernel;
}

#define TG_LAUNCH_BY_ADDRESS(function, together)                                                    \
    inline cudaError_t function(const void *kernel, dim3 grid, dim3 block, void **arguments,        \
                                size_t shared = 0, cudaStream_t = 0, TG_HERE)                       \
    {                                                                                               \
        return tg_launch_registered(kernel, grid, block, arguments, shared, together, file, line);  \
    }                                                                                               \
    template <class... P>                                                                           \
    cudaError_t function(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments,             \
                         size_t shared = 0, cudaStream_t = 0, TG_HERE)                              \
    {                                                                                               \
        return tg_known_kernel<P...>::launch((const void *)kernel, grid, block, arguments, shared,  \
                                             together, file, line);                                 \
    }
TG_LAUNCH_BY_ADDRESS(cudaLaunchKernel, 0)
TG_LAUNCH_BY_ADDRESS(cudaLaunchCooperativeKernel, 1)
#undef TG_LAUNCH_BY_ADDRESS
