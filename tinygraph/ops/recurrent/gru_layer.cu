// Gated recurrent units: one step (see recurrent.cuh).
//
// instances: recurrent_forward<T, GruLayer>, recurrent_backward<T, GruLayer> for T in float, double
// operations of recurrent_forward: 17 * n  # 3 fewer without a bias
// operations of recurrent_backward: 17 * n
//
// numpy: r, z = sigmoid(i1 + h1), sigmoid(i2 + h2); new = np.tanh(i3 + r * h3)
//        h_after = new + z * (h - new)

#include "recurrent.cuh"

struct GruLayer {
    static constexpr int GATES = 3, STATES = 1, KEPT = 4;

    FORMULA void forward(const T (&from_input)[3], const T (&from_state)[3], const T (&before)[2],
                         T (&after)[2], T (&kept)[5])
    {
        const T r = logistic(from_input[0] + from_state[0]);
        const T z = logistic(from_input[1] + from_state[1]);
        const T n = tanh(from_input[2] + r * from_state[2]);
        after[0] = n + z * (before[0] - n);
        kept[0] = r;
        kept[1] = z;
        kept[2] = n;
        kept[3] = from_state[2];
    }

    FORMULA void backward(const T (&kept)[5], const T (&before)[2], const T (&)[2], T (&grad)[2],
                          T (&of_input)[3], T (&of_state)[3])
    {
        const T r = kept[0], z = kept[1], n = kept[2];
        const T q = grad[0] * (T(1) - z) * (T(1) - n * n);
        of_input[0] = of_state[0] = q * kept[3] * r * (T(1) - r);
        of_input[1] = of_state[1] = grad[0] * (before[0] - n) * z * (T(1) - z);
        of_input[2] = q;
        of_state[2] = q * r;
        grad[0] *= z;
    }
};
