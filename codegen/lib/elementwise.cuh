// a + b; integers wrap, which signed ones of C++ may not.
template <class T> __device__ inline T add_wrap(T a, T b) {
    return (T)((unsigned long long)a + (unsigned long long)b);
}

// a - b of integers, wrapping.
template <class T> __device__ inline T sub_wrap(T a, T b) {
    return (T)((unsigned long long)a - (unsigned long long)b);
}

// a * b of integers, wrapping.
template <class T> __device__ inline T mul_wrap(T a, T b) {
    return (T)((unsigned long long)a * (unsigned long long)b);
}

// -a of an integer, wrapping.
template <class T> __device__ inline T neg_wrap(T a) {
    return (T)(0ull - (unsigned long long)a);
}

// max(x, 0): NaN stays NaN, -0 becomes 0.
__device__ inline float relu32(float x) {
    return max_of(x, 0.0f);
}

// log(1 + exp(x)), without overflow.
__device__ inline float softplus32(float x) {
    return max_of(x, 0.0f) + log32(1.0f + exp32(-fabsf(x)));
}

// gelu by its tanh approximation; sqrt(2 / pi) is 0.7978846.
__device__ inline float gelu_tanh32(float x) {
    float inner = 0.797884583f * (x + 0.044715f * (x * x * x));
    return 0.5f * x * (1.0f + tanh32(inner));
}

// gelu: x times the normal distribution's integral up to x; sqrt(1 / 2) is 0.7071068.
__device__ inline float gelu_erf32(float x) {
    return 0.5f * x * (1.0f + erf32(x * 0.707106769f));
}

// A real as i32, toward zero: NaN gives 0, what is too great the last one on its side.
__device__ inline int float_to_int(float x) {
    if (x != x) return 0;
    if (x >= 0x1p+31f) return 0x7fffffff;
    return x < -0x1p+31f ? -0x7fffffff - 1 : (int)x;
}

// A real as i64, toward zero: NaN gives 0, what is too great the last one on its side.
__device__ inline long long float_to_long(float x) {
    if (x != x) return 0;
    if (x >= 0x1p+63f) return 0x7fffffffffffffffll;
    return x < -0x1p+63f ? -0x7fffffffffffffffll - 1 : (long long)x;
}
