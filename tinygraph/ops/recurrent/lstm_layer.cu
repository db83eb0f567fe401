// Long short-term memory: one step (see recurrent.cuh).
//
// instances: recurrent_forward<T, LstmLayer>, recurrent_backward<T, LstmLayer> for T in float, double
// operations of recurrent_forward: 23 * n  # 4 fewer without a bias
// operations of recurrent_backward: 26 * n
//
// numpy: i, f, g, o = sigmoid(a1), sigmoid(a2), tanh(a3), sigmoid(a4); c_after = f * c + i * g
//        h_after = o * np.tanh(c_after)

#include "recurrent.cuh"

struct LstmLayer {
    static constexpr int GATES = 4, STATES = 2, KEPT = 4;

    FORMULA void forward(const T (&from_input)[4], const T (&from_state)[4], const T (&before)[2],
                         T (&after)[2], T (&kept)[5])
    {
        const T i = logistic(from_input[0] + from_state[0]);
        const T f = logistic(from_input[1] + from_state[1]);
        const T g = tanh(from_input[2] + from_state[2]);
        const T o = logistic(from_input[3] + from_state[3]);
        after[1] = f * before[1] + i * g;
        after[0] = o * tanh(after[1]);
        kept[0] = i;
        kept[1] = f;
        kept[2] = g;
        kept[3] = o;
    }

    FORMULA void backward(const T (&kept)[5], const T (&before)[2], const T (&after)[2], T (&grad)[2],
                          T (&of_input)[4], T (&of_state)[4])
    {
        const T i = kept[0], f = kept[1], g = kept[2], o = kept[3], t = tanh(after[1]);
        const T q = grad[1] + grad[0] * o * (T(1) - t * t);
        of_input[0] = q * g * i * (T(1) - i);
        of_input[1] = q * before[1] * f * (T(1) - f);
        of_input[2] = q * i * (T(1) - g * g);
        of_input[3] = grad[0] * t * o * (T(1) - o);
#pragma unroll
        for (int k = 0; k < 4; ++k) of_state[k] = of_input[k];
        grad[0] = T(0);
        grad[1] = q * f;
    }
};
