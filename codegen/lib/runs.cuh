// N values side by side, moved as one.
template <class T, int N>
struct Run {
  alignas(N * sizeof(T)) T value[N];
};

// Halves are two a word.
template <int N>
struct Run<uint16_t, N> {
  alignas(2 * N) unsigned word[N / 2];
};

template <>
struct Run<uint16_t, 1> {
  uint16_t half;
};

// The run that begins at an element.
template <int N, class T>
__device__ inline Run<T, N>& run_at(T* at) { return *(Run<T, N>*)at; }

template <int N, class T>
__device__ inline const Run<T, N>& run_at(const T* at) { return *(const Run<T, N>*)at; }

// The values of a run as floats.
template <int N>
__device__ inline void unpack(const Run<float, N>& run, float (&value)[N]) {
  UNROLL
  for (int i = 0; i < N; i++) value[i] = run.value[i];
}

template <int N>
__device__ inline void unpack(const Run<uint16_t, N>& run, float (&value)[N]) {
  const Run<uint16_t, N> whole = run;  // one load: the conversions would keep its words apart
  UNROLL
  for (int i = 0; i < N / 2; i++) halves_to_floats(whole.word[i], value[2 * i], value[2 * i + 1]);
}

__device__ inline void unpack(const Run<uint16_t, 1>& run, float (&value)[1]) { value[0] = half_to_float(run.half); }

// Two halves of a word, the low one first.
__device__ inline void halves_to_floats(unsigned word, float& low, float& high) {
#ifdef __CUDA_ARCH__
  asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
      : "=f"(low), "=f"(high)
      : "r"(word));
#else
  low = half_to_float(uint16_t(word));
  high = half_to_float(uint16_t(word >> 16));
#endif
}

// The greatest power of two, at most `most`, that divides n.
__host__ __device__ constexpr int run_length(int n, int most) {
  int length = 1;
  while (length < most && n % (2 * length) == 0) length *= 2;
  return length;
}
