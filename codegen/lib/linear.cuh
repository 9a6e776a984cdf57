// How a block of a projection with K inputs is cut: WARPS warps share the tiles of 8 * ROW_TILES outputs.
template <int K, int ROW_TILES, int WARPS>
struct LinearShape {
  static constexpr int SEGMENTS = (K + 127) / 128, GROUPS = (K + 511) / 512;
  static constexpr int ROW_TILES_EACH = ROW_TILES, WARPS_EACH = WARPS;
  static constexpr int TILES = ROW_TILES * GROUPS, OUTPUTS = 8 * ROW_TILES, THREADS = 32 * WARPS;
};

// Partial dots of a block: [activation row][output][segment], one column more against bank conflicts.
template <class L, int ROWS>
struct LinearPartials {
  float part[ROWS][L::OUTPUTS][L::SEGMENTS + 1];
};

// The int8 dot of a segment with quantized activations: blocks in order, then the offsets in order.
template <class F, int K>
__device__ inline float segment_dot(const Segment<F>& w, int segment, Q8 x, int row) {
  constexpr int BLOCKS = K / 32;
  float p = -0.0f, scale[4];
  UNROLL
  for (int b = 0; b < 4; b++) {
    const int block = segment * 4 + b;
    if (block >= BLOCKS) continue;
    const int4* words = (const int4*)(x.words + size_t(row) * K + block * 32);
    const int4 low = words[0], high = words[1];
    int dot = dp4a(level_word(w, b, 0), low.x, 0);
    dot = dp4a(level_word(w, b, 1), low.y, dot);
    dot = dp4a(level_word(w, b, 2), low.z, dot);
    dot = dp4a(level_word(w, b, 3), low.w, dot);
    dot = dp4a(level_word(w, b, 4), high.x, dot);
    dot = dp4a(level_word(w, b, 5), high.y, dot);
    dot = dp4a(level_word(w, b, 6), high.z, dot);
    dot = dp4a(level_word(w, b, 7), high.w, dot);
    scale[b] = half_to_float(w.d[b]) * x.scales[size_t(row) * BLOCKS + block];
    p = b == 0 ? scale[b] * float(dot) : fmaf(scale[b], float(dot), p);
  }
  if constexpr (F::OFFSET >= 0) {
    UNROLL
    for (int b = 0; b < 4; b++) {
      if (segment * 4 + b < BLOCKS) p = fmaf(half_to_float(w.m[b]), x.sums[size_t(row) * BLOCKS + segment * 4 + b], p);
    }
  }
  return p;
}

// The same with two words a value: 128 * high + low as one integer, rounded once.
template <class F, int K>
__device__ inline float segment_dot(const Segment<F>& w, int segment, Q8x2 x, int row) {
  constexpr int BLOCKS = K / 32;
  float p = -0.0f;
  UNROLL
  for (int b = 0; b < 4; b++) {
    const int block = segment * 4 + b;
    if (block >= BLOCKS) continue;
    const int* high = (const int*)(x.words + size_t(row) * K + block * 32);
    const int* low = (const int*)(x.low + size_t(row) * K + block * 32);
    int first = 0, second = 0;
    UNROLL
    for (int i = 0; i < 8; i++) {
      const int level = level_word(w, b, i);
      first = dp4a(level, high[i], first);
      second = dp4a(level, low[i], second);
    }
    const float scale = (half_to_float(w.d[b]) * x.scales[size_t(row) * BLOCKS + block]) * 0.0078125f;
    const float dot = float(128 * first + second);
    p = b == 0 ? scale * dot : fmaf(scale, dot, p);
  }
  if constexpr (F::OFFSET >= 0) {
    UNROLL
    for (int b = 0; b < 4; b++) {
      if (segment * 4 + b < BLOCKS) p = fmaf(half_to_float(w.m[b]), x.sums[size_t(row) * BLOCKS + segment * 4 + b], p);
    }
  }
  return p;
}

// The f32 dot of a segment: one chain, a fused multiply-add a weight.
template <class F, int K>
__device__ inline float segment_dot(const Segment<F>& w, int segment, const float* x, int row) {
  const float* value = x + size_t(row) * K + segment * 128;
  float p = weight_value(w, 0) * value[0];
  UNROLL
  for (int k = 1; k < 128; k++) {
    if (segment * 128 + k < K) p = fmaf(weight_value(w, k), value[k], p);
  }
  return p;
}

// ROWS activation rows from `first` times a block's outputs; store(row, output, dot) is called once for each that exists.
template <class F, int N, int K, class L, int ROWS, class X, class Store>
__device__ inline void linear_block(int block, const uint8_t* weight, X x, int first, int rows, Store store) {
  auto& s = shared<LinearPartials<L, ROWS>>();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int tile = warp; tile < L::TILES; tile += L::WARPS_EACH) {
    const int row_tile = block * L::ROW_TILES_EACH + tile / L::GROUPS, group = tile % L::GROUPS;
    const int segment = group * 4 + lane / 8, output = tile / L::GROUPS * 8 + lane % 8;
    if (row_tile * 8 >= N || segment >= L::SEGMENTS) continue;
    const Segment<F> w = load_segment<F>(weight + tile_at<F, K>(row_tile, group), lane);
    for (int r = 0; r < ROWS; r++) {
      if (first + r < rows) s.part[r][output][segment] = segment_dot<F, K>(w, segment, x, first + r);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * L::OUTPUTS; i += L::THREADS) {
    const int r = i / L::OUTPUTS, n = block * L::OUTPUTS + i % L::OUTPUTS;
    if (first + r >= rows || n >= N) continue;
    const float* part = s.part[r][i % L::OUTPUTS];
    float t = part[0];
    for (int segment = 1; segment < L::SEGMENTS; segment++) t = t + part[segment];
    store(first + r, n, t);
  }
}
