// A row of D values over THREADS threads, a block or (32) each warp of it: thread t holds four neighbours of each chunk
// of 4 * THREADS.
template <int D, int THREADS>
constexpr int ROW_VALUES = 4 * ((D + 4 * THREADS - 1) / (4 * THREADS));

// Calls body(i, d) for the columns of a row that this thread holds: register i, column d.
template <int D, int THREADS, class Body>
__device__ inline void each_value(Body body) {
  for (int i = 0; i < ROW_VALUES<D, THREADS>; i++) {
    const int d = (i / 4 * THREADS + int(threadIdx.x % THREADS)) * 4 + i % 4;
    if (d < D) body(i, d);
  }
}

// The same where blocks share a row: block y holds the y-th chunk.
template <int D, int THREADS, class Body>
__device__ inline void each_value_of_chunk(Body body) {
  for (int i = 0; i < 4; i++) {
    const int d = (int(blockIdx.y) * THREADS + int(threadIdx.x)) * 4 + i;
    if (d < D) body(i, d);
  }
}

// What a block's reductions exchange: a partial result of each warp for each chunk.
template <class T, int COUNT>
struct RowPartials {
  T part[COUNT];
};

// A warp's join of the four values that each thread holds of a chunk, in order; all its threads get it.
template <int D, int THREADS, class T, class Join>
__device__ inline T chunk_reduce(const T* value, int chunk, T nothing, Join join) {
  const int d = (chunk * THREADS + int(threadIdx.x % THREADS)) * 4;
  const T v0 = d < D ? value[4 * chunk] : nothing, v1 = d + 1 < D ? value[4 * chunk + 1] : nothing;
  const T v2 = d + 2 < D ? value[4 * chunk + 2] : nothing, v3 = d + 3 < D ? value[4 * chunk + 3] : nothing;
  T v = join(join(v0, v1), join(v2, v3));
  for (int step = 1; step < 32; step *= 2) v = join(v, __shfl_xor_sync(~0u, v, step));
  return v;
}

// Joins N values in place, a power of two, as the adjacent-first binary tree.
template <int N, class T, class Join>
__device__ inline T tree_of(T (&value)[N], Join join) {
  for (int width = N / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; i++) value[i] = join(value[2 * i], value[2 * i + 1]);
  }
  return value[0];
}

// The least power of two that is no less than n.
__host__ __device__ constexpr int power_of_two(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

// Reduces a row with `join` as the adjacent-first binary tree, padded with `nothing`; all threads get the result.
template <int D, int THREADS, class T, class Join>
__device__ inline T tree_reduce(const T* value, T nothing, Join join) {
  constexpr int CHUNKS = ROW_VALUES<D, THREADS> / 4;
  if constexpr (THREADS == 32) {
    constexpr int PADDED = power_of_two(CHUNKS);
    T chunk[PADDED];
    for (int c = 0; c < PADDED; c++) chunk[c] = c < CHUNKS ? chunk_reduce<D, THREADS>(value, c, nothing, join) : nothing;
    return tree_of(chunk, join);
  } else {
    constexpr int WARPS = THREADS / 32, COUNT = CHUNKS * WARPS, EACH = power_of_two((COUNT + 31) / 32);
    static_assert(COUNT <= 2048, "a row is at most 262,144 long");
    auto& s = shared<RowPartials<T, COUNT>>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int c = 0; c < CHUNKS; c++) {
      const T v = chunk_reduce<D, THREADS>(value, c, nothing, join);
      if (lane == 0) s.part[c * WARPS + warp] = v;
    }
    __syncthreads();
    T mine[EACH];
    for (int i = 0; i < EACH; i++) mine[i] = lane * EACH + i < COUNT ? s.part[lane * EACH + i] : nothing;
    T v = tree_of(mine, join);
    for (int step = 1; step < 32; step *= 2) v = join(v, __shfl_xor_sync(~0u, v, step));
    __syncthreads();
    return v;
  }
}

// The neutral element of a sum: -0.0 changes no value, not even -0.0.
__device__ inline float no_summand(float) { return -0.0f; }

__device__ inline int no_summand(int) { return 0; }

__device__ inline long long no_summand(long long) { return 0; }

// Sum of a row: the adjacent-first binary tree over the length padded to a power of two.
template <int D, int THREADS, class T>
__device__ inline T row_sum(const T* value) {
  return tree_reduce<D, THREADS>(value, no_summand(T()), [](T a, T b) { return T(a + b); });
}

// Sum of a row's squares, each rounded before it is added.
template <int D, int THREADS>
__device__ inline float row_sum_of_squares(const float* value) {
  float square[ROW_VALUES<D, THREADS>];
  each_value<D, THREADS>([&](int i, int) { square[i] = value[i] * value[i]; });
  return row_sum<D, THREADS>(square);
}

// Largest value of a row; NaN wins.
template <int D, int THREADS>
__device__ inline float row_max(const float* value) {
  return tree_reduce<D, THREADS>(value, float_of(0xff800000u), [](float a, float b) { return max_of(a, b); });
}

template <int D, int THREADS>
__device__ inline int row_max(const int* value) {
  return tree_reduce<D, THREADS>(value, int(0x80000000), [](int a, int b) { return a > b ? a : b; });
}

template <int D, int THREADS>
__device__ inline long long row_max(const long long* value) {
  return tree_reduce<D, THREADS>(value, (long long)(0x8000000000000000ull), [](long long a, long long b) { return a > b ? a : b; });
}

// 1 / sqrt(mean of squares + eps): what an rmsnorm multiplies by.
template <int D, int THREADS>
__device__ inline float rms_factor(const float* value, float eps) {
  return 1.0f / sqrtf(row_sum_of_squares<D, THREADS>(value) / float(D) + eps);
}

// Quantizes the values that this thread holds: 8 threads share a group of 32 columns. D is a multiple of 32.
template <int D, int COUNT, class Q>
__device__ inline void quantize_values(const float (&value)[COUNT], int row, int first, int stride, Q out) {
  for (int c = 0; c < COUNT / 4; c++) {
    const int d = first + c * stride;
    float amax = 0.0f;
    for (int e = 0; e < 4; e++) amax = d < D ? max_of(amax, fabsf(value[4 * c + e])) : amax;
    for (int step = 1; step < 8; step *= 2) amax = max_of(amax, __shfl_xor_sync(~0u, amax, step));
    const float scale = group_scale(amax);
    int sum = 0;
    for (int e = 0; e < 4; e++) sum += d < D ? store_word(out, size_t(row) * D + d + e, value[4 * c + e], scale) : 0;
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (d < D && threadIdx.x % 8 == 0) store_scale(out, (size_t(row) * D + d) / 32, scale, sum);
  }
}

// Quantizes a whole row, as each_value holds it.
template <int D, int THREADS, int COUNT, class Q>
__device__ inline void quantize_row(const float (&value)[COUNT], int row, Q out) {
  quantize_values<D>(value, row, int(threadIdx.x) * 4, 4 * THREADS, out);
}

// Quantizes a chunk of a row, as each_value_of_chunk holds it.
template <int D, int THREADS, int COUNT, class Q>
__device__ inline void quantize_chunk(const float (&value)[COUNT], int row, Q out) {
  quantize_values<D>(value, row, (int(blockIdx.y) * THREADS + int(threadIdx.x)) * 4, 0, out);
}

// Sums of squares of the groups of 32 columns that this thread holds values of: 8 threads share one, as the adjacent-first tree.
template <int D, int COUNT>
__device__ inline void square_sums_of_values(const float (&value)[COUNT], int row, int first, int stride, float* out) {
  for (int c = 0; c < COUNT / 4; c++) {
    const int d = first + c * stride;
    float square[4];
    for (int e = 0; e < 4; e++) square[e] = d + e < D ? value[4 * c + e] * value[4 * c + e] : -0.0f;
    float v = (square[0] + square[1]) + (square[2] + square[3]);
    for (int step = 1; step < 8; step *= 2) v = v + __shfl_xor_sync(~0u, v, step);
    if (d < D && threadIdx.x % 8 == 0) out[size_t(row) * ((D + 31) / 32) + d / 32] = v;
  }
}

// The same of a whole row, as each_value holds it.
template <int D, int THREADS, int COUNT>
__device__ inline void square_sums_row(const float (&value)[COUNT], int row, float* out) {
  square_sums_of_values<D>(value, row, int(threadIdx.x) * 4, 4 * THREADS, out);
}

// The same of a chunk of a row, as each_value_of_chunk holds it.
template <int D, int THREADS, int COUNT>
__device__ inline void square_sums_chunk(const float (&value)[COUNT], int row, float* out) {
  square_sums_of_values<D>(value, row, (int(blockIdx.y) * THREADS + int(threadIdx.x)) * 4, 0, out);
}
