// Plain recurrent cells: one step (see recurrent.cuh).
//
// instances: recurrent_forward<T, TanhLayer>, recurrent_backward<T, TanhLayer>,
//            recurrent_forward<T, ReluLayer>, recurrent_backward<T, ReluLayer> for T in float, double
// operations of recurrent_forward<T, TanhLayer>: 3 * n  # 1 fewer without a bias
// operations of recurrent_forward: 2 * n  # 1 fewer without a bias
// operations of recurrent_backward<T, TanhLayer>: 5 * n
// operations of recurrent_backward: 2 * n
//
// numpy: h_after = np.tanh(i1 + h1), or np.maximum(i1 + h1, 0)

#include "recurrent.cuh"

struct TanhLayer {
    static constexpr int GATES = 1, STATES = 1, KEPT = 0;

    FORMULA void forward(const T (&from_input)[1], const T (&from_state)[1], const T (&)[2],
                         T (&after)[2], T (&)[1])
    {
        after[0] = tanh(from_input[0] + from_state[0]);
    }

    FORMULA void backward(const T (&)[1], const T (&)[2], const T (&after)[2], T (&grad)[2],
                          T (&of_input)[1], T (&of_state)[1])
    {
        of_input[0] = of_state[0] = grad[0] * (T(1) - after[0] * after[0]);
        grad[0] = T(0);
    }
};

struct ReluLayer {
    static constexpr int GATES = 1, STATES = 1, KEPT = 0;

    FORMULA void forward(const T (&from_input)[1], const T (&from_state)[1], const T (&)[2],
                         T (&after)[2], T (&)[1])
    {
        const T a = from_input[0] + from_state[0];
        after[0] = a <= T(0) ? T(0) : a;  // this way round NaN stays NaN
    }

    FORMULA void backward(const T (&)[1], const T (&)[2], const T (&after)[2], T (&grad)[2],
                          T (&of_input)[1], T (&of_state)[1])
    {
        of_input[0] = of_state[0] = after[0] != T(0) ? grad[0] : T(0);
        grad[0] = T(0);
    }
};
