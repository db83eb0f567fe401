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

/* Nothing destroys what a thread was called with: it leaves from within the call. */
extern "C" void tg_thread_returns(void) __attribute__((noreturn));

/* An argument that is no copy: the parameter is a reference. */
template <class T> struct tg_alias { T *object; };
template <unsigned long mask> struct tg_references {}; /* bit i: parameter i is one */

/* How a parameter comes from what the launch keeps: bit by bit.  A class with a copy constructor or
 * a destructor of its own goes by an address (Itanium C++ ABI), and so does one of raw bytes that
 * has them, too; the copy is made and destroyed by the host, once for the launch. */
template <class T> struct tg_raw {
    alignas(T) char bytes[sizeof(T)];
    TG_UNINSTRUMENTED tg_raw(const tg_raw &other)
    {
        __builtin_memcpy(bytes, other.bytes, sizeof(T));
    }
    ~tg_raw() {}
    static TG_UNSEEN tg_raw copy(const tg_raw &other) { return other; }
};
template <class T> struct tg_is_plain { /* goes by its value */
    static const bool value = std::is_trivially_copy_constructible<T>::value &&
        (std::is_trivially_move_constructible<T>::value || !std::is_move_constructible<T>::value);
};
template <class T>
TG_UNINSTRUMENTED typename std::enable_if<tg_is_plain<T>::value, T &>::type tg_given(T &value)
{
    return value;
}
template <class T>
TG_UNINSTRUMENTED typename std::enable_if<!tg_is_plain<T>::value, T>::type tg_given(T &value)
{
    T (*volatile copy)(const T &) = (T (*)(const T &))tg_raw<T>::copy;
    return copy(value);
}
template <class T> TG_UNINSTRUMENTED T &tg_given(tg_alias<T> &alias) { return *alias.object; }
template <class T> struct tg_loan { T *object; }; /* the host makes no copy either */
template <class T>
TG_UNINSTRUMENTED auto tg_given(tg_loan<T> &loan) -> decltype(tg_given(*loan.object))
{
    return tg_given(*loan.object);
}

/* Behind the call of a kernel, in the same expression: what it was called with is still there. */
template <class T> struct tg_lasts : std::is_trivially_destructible<T> {};
template <class T> struct tg_lasts<tg_loan<T>> : tg_lasts<T> {};
template <class... T> TG_UNINSTRUMENTED void tg_returned(T &...)
{
    if (!(tg_lasts<T>::value && ...)) tg_thread_returns();
}

template <__SIZE_TYPE__ I, class T> struct tg_argument { T value; };
template <class F, class Indices, class... A> struct tg_packed;
template <class F, __SIZE_TYPE__... I, class... A>
struct tg_packed<F, tg_indices<I...>, A...> : tg_argument<I, A>... {
    F kernel;
    tg_packed(const F &kernel, const A &...a) : tg_argument<I, A>{a}..., kernel(kernel) {}
    static TG_UNINSTRUMENTED void enter(const char *packed)
    {
        tg_packed &p = *(tg_packed *)packed;
        p.kernel(static_cast<tg_argument<I, A> &>(p).value...);
    }
};

/* What is kept of an argument until the launch is done. */
template <bool reference, class A> struct tg_kept {
    typedef typename std::decay<A>::type type;
    static const A &of(const A &argument) { return argument; }
};
template <class A> struct tg_kept<true, A> {
    typedef tg_alias<A> type;
    static type of(const A &argument) { return {const_cast<A *>(&argument)}; }
};

template <class F, unsigned long mask = 0> struct tg_configured {
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
        return launch(together, typename tg_count<sizeof...(A)>::type(), arguments...);
    }
    template <__SIZE_TYPE__... I, class... A>
    cudaError_t launch(bool together, tg_indices<I...> indices, const A &...arguments) const
    {
        typedef tg_packed<F, decltype(indices),
                          typename tg_kept<(mask >> I & 1), A>::type...> Packed;
        const Packed packed(kernel, tg_kept<(mask >> I & 1), A>::of(arguments)...);
        return tg_program_launch(name, Packed::enter, &packed, sizeof packed, &grid, &block, shared,
                                 together, file, line);
    }
};

template <class F, unsigned long mask = 0> struct tg_launch {
    const char *name, *file;
    int line;
    F kernel;
    tg_launch(const char *name, F kernel, tg_references<mask> = {}, TG_HERE)
        : name(name), file(file), line(line), kernel(kernel) {}
    tg_configured<F, mask> with(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = 0) const
    {
        return {kernel, name, file, line, grid, block, shared};
    }
};

/* A kernel by its name, which may be overloaded, a template, or a variable: called where it is used. */
#define TG_KERNEL(...) \
    [&](auto &...tg_a) TG_UNSEEN { __VA_ARGS__(tg_given(tg_a)...), tg_returned(tg_a...); }

/* ---- launches by address: arguments are pointers to values ---------------------------------------------- */

template <class T> struct tg_value {
    typedef typename std::remove_cv<T>::type type;
    static tg_loan<type> of(void *argument) { return {(type *)argument}; }
};
template <class T> struct tg_value<T &> { /* whose value is an address */
    static T &of(void *argument) { return **(T **)argument; }
};
template <class... P, __SIZE_TYPE__... I> constexpr unsigned long tg_mask(tg_indices<I...>)
{
    return (0 | ... | ((unsigned long)std::is_reference<P>::value << I));
}

template <class... P, __SIZE_TYPE__... I>
cudaError_t tg_launch_pointers(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments,
                               size_t shared, int together, const char *file, int line, tg_indices<I...>)
{
    auto call = [kernel](auto &...values) TG_UNSEEN {
        kernel(tg_given(values)...), tg_returned(values...);
    };
    tg_configured<decltype(call), tg_mask<P...>(tg_indices<I...>())> launch{
        call, "", file, line, grid, block, shared};
    (void)arguments;
    return launch.launch(together, tg_value<P>::of(arguments[I])...);
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
