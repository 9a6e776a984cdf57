// How a block of a projection with K inputs is cut: WARPS warps share the tiles of 8 * ROW_TILES outputs; MORE warps beside
// them make what the outputs are multiplied by. Where PARTS blocks, a cluster, share the tiles, each has so many warps.
template <int K, int ROW_TILES, int WARPS, int MORE = 0, int PARTS = 1>
struct LinearShape {
  static constexpr int SEGMENTS = (K + 127) / 128, GROUPS = (K + 511) / 512;
  static constexpr int ROW_TILES_EACH = ROW_TILES, WARPS_EACH = WARPS, PARTS_EACH = PARTS;
  static constexpr int STEP = HAS_CLUSTERS ? PARTS * WARPS : WARPS;  // from one tile of a warp to its next
  static constexpr int TILES = ROW_TILES * GROUPS, OUTPUTS = 8 * ROW_TILES, THREADS = 32 * (WARPS + MORE);
  __host__ __device__ static constexpr int blocks(int outputs) { return (outputs + OUTPUTS - 1) / OUTPUTS; }
  // A warp's first tile; one of MORE has none of so many.
  __device__ static int first_tile(int tiles) {
    return int(threadIdx.x) < 32 * WARPS ? int(blockIdx.x) % PARTS * WARPS + int(threadIdx.x) / 32 : tiles;
  }
};

// Partial dots of a block: [activation row][output][segment], one column more against bank conflicts.
template <class L, int ROWS>
struct LinearPartials {
  float part[ROWS][L::OUTPUTS][L::SEGMENTS + 1];
};

// Exact integer dot of a block's whole numbers with 32 words: its levels or, where halves have scales of their own, those
// times the levels, below 2^24 together.
template <class F>
__device__ inline int block_dot(const BlockLevels<F>& w, const int8_t* words) {
  const int4* x = (const int4*)words;
  if constexpr (F::GROUP == 16) return w.by[0] * dot16(w.low, x[0], 0) + w.by[1] * dot16(w.high, x[1], 0);
  return dot16(w.high, x[1], dot16(w.low, x[0], 0));
}

// Dots of a segment with rows first.. of quantized activations: the blocks in order, then the offsets in order.
template <class F, int K, int ROWS, class X>
__device__ inline void segment_dots(const Segment<F>& w, int segment, X x, int first, int rows, float (&p)[ROWS]) {
  constexpr int BLOCKS = K / 32;
  UNROLL
  for (int b = 0; b < 4; b++) {
    const int block = segment * 4 + b;
    if (BLOCKS % 4 && block >= BLOCKS) continue;
    const BlockLevels<F> levels = block_levels(w, b);
    UNROLL
    for (int r = 0; r < ROWS; r++) {
      if (first + r >= rows) continue;
      const size_t at = size_t(first + r) * BLOCKS + block;
      const float scale = block_scale(x, w.d[b] * x.scales[at]);
      const float dot = float(scaled_dot(x, levels, at * 32));
      p[r] = b == 0 ? scale * dot : fmaf(scale, dot, p[r]);
    }
  }
  if constexpr (F::OFFSET >= 0) {
    UNROLL
    for (int b = 0; b < 4; b++) {
      if (segment * 4 + b >= BLOCKS) continue;
      UNROLL
      for (int r = 0; r < ROWS; r++) {
        if (first + r < rows) p[r] = fmaf(w.m[b], x.sums[size_t(first + r) * BLOCKS + segment * 4 + b], p[r]);
      }
    }
  }
}

// A block's dot as an integer, and the scale that goes with it: one word a value.
template <class F>
__device__ inline int scaled_dot(Q8 x, const BlockLevels<F>& w, size_t at) { return block_dot(w, x.words + at); }

__device__ inline float block_scale(Q8, float scale) { return scale; }

// Two words a value: 128 * high + low as one integer (below 2^31 in every format), which is rounded once; the scale is a
// 128th.
template <class F>
__device__ inline int scaled_dot(Q8x2 x, const BlockLevels<F>& w, size_t at) {
  return 128 * block_dot(w, x.words + at) + block_dot(w, x.low + at);
}

__device__ inline float block_scale(Q8x2, float scale) { return scale * 0.0078125f; }

// Dots of a segment with rows of f32 activations: one chain, a fused multiply-add a weight.
template <class F, int K, int ROWS>
__device__ inline void segment_dots(const Segment<F>& w, int segment, const float* x, int first, int rows, float (&p)[ROWS]) {
  UNROLL
  for (int b = 0; b < 4; b++) {
    const int k = segment * 128 + b * 32;
    if (k >= K) continue;
    float weight[32];
    block_values(w, b, weight);
    UNROLL
    for (int r = 0; r < ROWS; r++) {
      if (first + r < rows) p[r] = chain<K>(weight, x + size_t(first + r) * K, k, b == 0, p[r]);
    }
  }
}

// Goes on with a chain of fused multiply-adds over the 32 weights from input k; the first product begins it.
template <int K>
__device__ inline float chain(const float (&weight)[32], const float* x, int k, bool begins, float p) {
  p = begins ? weight[0] * x[k] : fmaf(weight[0], x[k], p);
  UNROLL
  for (int i = 1; i < 32; i++) {
    if (K % 32 == 0 || k + i < K) p = fmaf(weight[i], x[k + i], p);
  }
  return p;
}

// This lane's segment of a tile of a block's outputs: those with the first weight, then with the next; of none beyond.
template <class W, int N, int K, class L, int WEIGHTS>
__device__ inline Segment<W> block_segment(int block, int tile, const uint8_t* const (&weights)[WEIGHTS]) {
  const uint8_t* weight = weights[0];
  UNROLL
  for (int i = 1; i < WEIGHTS; i++) weight = tile < i * L::TILES ? weight : weights[i];
  const int lane = threadIdx.x % 32, of_weight = tile % L::TILES;
  const int row_tile = block * (L::OUTPUTS / 8) + of_weight / L::GROUPS, group = of_weight % L::GROUPS;
  const bool there = tile < WEIGHTS * L::TILES && row_tile * 8 < N && group * 4 + lane / 8 < L::SEGMENTS;
  Segment<W> w = {};
  if (there) w = load_segment<W>(weight + tile_at<W, K>(row_tile, group), lane);
  return w;
}

// The tile that a warp works on, and the one behind it.
template <class W>
struct WarpTiles {
  Segment<W> now, next;
};

// What a warp of the block begins with: weights alone, so that it may be loaded before grid_dependency_wait.
template <class W, int N, int K, class L, int WEIGHTS>
__device__ inline WarpTiles<W> first_tiles(int block, const uint8_t* const (&weights)[WEIGHTS]) {
  constexpr int TILES = WEIGHTS * L::TILES;
  const int tile = L::first_tile(TILES);
  WarpTiles<W> w = {block_segment<W, N, K, L>(block, tile, weights), {}};
  if constexpr (TILES > L::STEP) w.next = block_segment<W, N, K, L>(block, tile + L::STEP, weights);
  return w;
}

// Partial dots of ROWS activation rows from `first` with a block's outputs, segment by segment, of each weight; a barrier
// must follow. `w` are the warp's first_tiles; a tile is loaded while the one before it is worked on.
template <class W, int N, int K, class L, int ROWS, class X, int WEIGHTS>
__device__ inline void partial_dots(LinearPartials<L, ROWS>* of, int block, const uint8_t* const (&weights)[WEIGHTS], WarpTiles<W> w, X x, int first, int rows) {
  constexpr int TILES = WEIGHTS * L::TILES;
  const int lane = threadIdx.x % 32;
  bool begun = L::PARTS_EACH == 1;  // whether the block runs whose memory takes the dots
  for (int tile = L::first_tile(TILES); tile < TILES; tile += L::STEP) {
    auto& s = of[tile / L::TILES];
    const int of_weight = tile % L::TILES, segment = of_weight % L::GROUPS * 4 + lane / 8, output = of_weight / L::GROUPS * 8 + lane % 8;
    float p[ROWS] = {};
    if (segment < L::SEGMENTS) segment_dots<W, K, ROWS>(w.now, segment, x, first, rows, p);
    if (!begun) cluster_wait();
    begun = true;
    UNROLL
    for (int r = 0; r < ROWS; r++) {
      if (segment < L::SEGMENTS && first + r < rows) s.part[r][output][segment] = p[r];
    }
    if constexpr (TILES > L::STEP) {
      w.now = w.next;
      w.next = block_segment<W, N, K, L>(block, tile + 2 * L::STEP, weights);
    }
  }
  if (!begun) cluster_wait();
}

// A dot: its segments' partial dots, added in order.
template <class L, int ROWS>
__device__ inline float folded_dot(const LinearPartials<L, ROWS>& s, int r, int output) {
  const float* part = s.part[r][output];
  float t = part[0];
  for (int segment = 1; segment < L::SEGMENTS; segment++) t = t + part[segment];
  return t;
}

// Calls store(r, n, output) for activation row first + r and output n, `output` of the block; neighbours in a warp are
// neighbours in n, and where OUTPUTS and N are multiples of 32 a warp has one whole group of 32.
template <int N, class L, int ROWS, class Store>
__device__ inline void each_output(int block, int first, int rows, Store store) {
  for (int i = threadIdx.x; i < ROWS * L::OUTPUTS; i += L::THREADS) {
    const int r = i / L::OUTPUTS, output = i % L::OUTPUTS, n = block * L::OUTPUTS + output;
    if (first + r < rows && n < N) store(r, n, output);
  }
}

// An operand of an output, read while the dots are made where a thread has one output at most.
template <bool ONE>
struct Ahead {
  static constexpr bool there = ONE;
  float value;
};

template <int N, class L, int ROWS>
__device__ inline auto read_ahead(const float* from, int block, int first, int rows) {
  const int r = int(threadIdx.x) / L::OUTPUTS, n = block * L::OUTPUTS + int(threadIdx.x) % L::OUTPUTS;
  const bool mine = ROWS * L::OUTPUTS <= L::THREADS && r < ROWS && first + r < rows && n < N;
  return Ahead<ROWS * L::OUTPUTS <= L::THREADS>{mine ? from[size_t(first + r) * N + n] : 0.0f};
}

template <int N, class L, int ROWS>
__device__ inline auto read_ahead(const float* from, int block) {
  const int n = block * L::OUTPUTS + int(threadIdx.x) % L::OUTPUTS;
  using Mine = Ahead<ROWS * L::OUTPUTS <= L::THREADS>;
  return Mine{Mine::there && n < N ? from[n] : 0.0f};
}

// The sums of squares that a producer left for each 32 values of ROWS normed rows; the last warp has rows 0, WARPS, ..., the
// one before it the next. They are read before the dots where registers can hold them, and folded behind the dots.
template <int COUNT, int ROWS, int WARPS>
struct RootSums {
  static constexpr int EACH = COUNT <= 32 ? 1 : COUNT <= 64 ? 2 : COUNT <= 128 ? 4 : COUNT <= 256 ? 8 : COUNT <= 512 ? 16 : 32;
  static constexpr int TURNS = (ROWS + WARPS - 1) / WARPS;
  static constexpr bool EARLY = TURNS * EACH <= 32;
  static_assert(COUNT <= 1024, "a normed row is at most 32,768 long");
  const float* sums;
  int first, rows;
  float value[EARLY ? TURNS : 1][EACH];
  __device__ int row(int turn) const { return WARPS - 1 - int(threadIdx.x) / 32 + turn * WARPS; }
  __device__ void load(float (&to)[EACH], int turn) const {
    const int r = row(turn);
    UNROLL
    for (int i = 0; i < EACH; i++) {
      const int group = int(threadIdx.x) % 32 * EACH + i;
      to[i] = r < ROWS && first + r < rows && group < COUNT ? sums[size_t(first + r) * COUNT + group] : -0.0f;
    }
  }
};

template <int COUNT, int ROWS, class L>
__device__ inline RootSums<COUNT, ROWS, L::THREADS / 32> load_root_sums(const float* sums, int first, int rows) {
  using Sums = RootSums<COUNT, ROWS, L::THREADS / 32>;
  Sums mine = {sums, first, rows, {}};
  if constexpr (Sums::EARLY) {
    UNROLL
    for (int j = 0; j < Sums::TURNS; j++) mine.load(mine.value[j], j);
  }
  return mine;
}

// The factors of ROWS normed rows: 1 / sqrt(mean of squares + eps), the sums folded as the adjacent-first tree.
template <int COUNT, int ROWS, int WARPS>
__device__ inline void fold_root_sums(float (&factor)[ROWS], RootSums<COUNT, ROWS, WARPS> mine, float n, float eps) {
  UNROLL
  for (int j = 0; j < mine.TURNS; j++) {
    auto& value = mine.value[mine.EARLY ? j : 0];
    if (!mine.EARLY) mine.load(value, j);
    UNROLL
    for (int width = mine.EACH / 2; width > 0; width /= 2) {
      UNROLL
      for (int i = 0; i < width; i++) value[i] = value[2 * i] + value[2 * i + 1];
    }
    float v = value[0];
    for (int step = 1; step < 32; step *= 2) v = v + __shfl_xor_sync(~0u, v, step);
    const int r = mine.row(j);
    if (threadIdx.x % 32 == 0 && r < ROWS) factor[r] = 1.0f / sqrtf(v / n + eps);
  }
}

// The factors of ROWS normed rows, from the sums of squares that their producer left for each 32 values; a warp a row.
template <int COUNT, int ROWS>
__device__ inline void root_factors(float (&factor)[ROWS], const float* sums, int first, int rows, float n, float eps) {
  constexpr int EACH = COUNT <= 32 ? 1 : COUNT <= 64 ? 2 : COUNT <= 128 ? 4 : COUNT <= 256 ? 8 : COUNT <= 512 ? 16 : 32;
  static_assert(COUNT <= 1024, "a normed row is at most 32,768 long");
  const int lane = threadIdx.x % 32;
  for (int r = threadIdx.x / 32; r < ROWS && first + r < rows; r += blockDim.x / 32) {
    const float* sum = sums + size_t(first + r) * COUNT;
    float mine[EACH];
    UNROLL
    for (int i = 0; i < EACH; i++) mine[i] = lane * EACH + i < COUNT ? sum[lane * EACH + i] : -0.0f;
    UNROLL
    for (int width = EACH / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; i++) mine[i] = mine[2 * i] + mine[2 * i + 1];
    }
    float v = mine[0];
    for (int step = 1; step < 32; step *= 2) v = v + __shfl_xor_sync(~0u, v, step);
    if (lane == 0) factor[r] = 1.0f / sqrtf(v / n + eps);
  }
}

// The factors of ROWS rows, as another launch left them.
template <int ROWS>
__device__ inline void load_factors(float (&factor)[ROWS], const float* from, int first, int rows) {
  const int r = threadIdx.x;
  if (r < ROWS && first + r < rows) factor[r] = from[first + r];
}

// What a projection's block shares: partial dots of each weight, and the factors of its rows.
template <class L, int ROWS, int WEIGHTS, int FACTORS>
struct LinearShared {
  LinearPartials<L, ROWS> partials[WEIGHTS];
  float factor[FACTORS][ROWS];
};

// Quantizes a group of 32 values of a row, one a lane.
template <int N, class Q>
__device__ inline void quantize_warp(float value, int row, int n, Q out) {
  const float scale = group_scale(warp_max(fabsf(value)));
  const int sum = warp_sum(store_word(out, size_t(row) * N + n, value, scale));
  if (n % 32 == 0) store_scale(out, (size_t(row) * N + n) / 32, scale, sum);
}

// The sum of squares of a group of 32 values of a row, one a lane, as the adjacent-first tree.
template <int N>
__device__ inline void square_sum_warp(float value, int row, int n, float* sums) {
  float v = value * value;
  for (int step = 1; step < 32; step *= 2) v = v + __shfl_xor_sync(~0u, v, step);
  if (n % 32 == 0) sums[(size_t(row) * N + n) / 32] = v;
}
