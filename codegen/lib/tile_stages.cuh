// How a projection of many rows is cut: a block makes TILE_ROWS x TILE_OUTPUTS dots, those with WEIGHTS weights side by
// side, each of its warps WARP_ROWS x WARP_OUTPUTS of them; STAGES segments of 128 inputs are in shared memory or on their
// way there.
template <int TILE_ROWS, int TILE_OUTPUTS, int WARP_ROWS, int WARP_OUTPUTS, int STAGES, int WEIGHTS = 1>
struct DotTile {
  static constexpr int ROWS = TILE_ROWS, WIDTH = TILE_OUTPUTS, DEPTH = STAGES, WEIGHTS_EACH = WEIGHTS;
  static constexpr int OUTPUTS = WIDTH / WEIGHTS;  // of each weight
  static constexpr int WARPS_DOWN = ROWS / WARP_ROWS, WARPS = WARPS_DOWN * (WIDTH / WARP_OUTPUTS), THREADS = 32 * WARPS;
  static constexpr int DOWN = WARP_ROWS / 16, ACROSS = WARP_OUTPUTS / 8;  // of a warp, in tiles of mma
  __host__ __device__ static constexpr int blocks(int outputs) { return (outputs + OUTPUTS - 1) / OUTPUTS; }
  __device__ static int first_row() { return int(threadIdx.x) / 32 % WARPS_DOWN * WARP_ROWS; }
  __device__ static int first_output() { return int(threadIdx.x) / 32 / WARPS_DOWN * WARP_OUTPUTS; }
};

// A segment's inputs of a tile of dots: 16-byte pieces of the rows' words, piece p of row r at p ^ r % 8; the outputs'
// levels as the device layout has them.
template <class W, class X, class L>
struct TileSegment {
  alignas(128) int8_t words[X::WORDS][L::ROWS][128];
  alignas(128) uint8_t levels[L::WIDTH / 8][Tile<W>::PIECES][128];
  alignas(16) float scales[L::ROWS][4], sums[W::OFFSET < 0 ? 1 : L::ROWS][4];
};

// A segment's scales and offsets of the outputs, in f32; where 16 weights share a scale, the whole numbers that d is
// multiplied by too.
template <class W, class L>
struct WideScales {
  alignas(16) float d[L::WIDTH][4], m[W::OFFSET < 0 ? 1 : L::WIDTH][4], by[W::GROUP == 32 ? 1 : L::WIDTH][8];
};

// What a block works on, before it has dots.
template <class W, class X, class L>
struct TileStages {
  TileSegment<W, X, L> segment[L::DEPTH];
  WideScales<W, L> wide[2];
};

// What a block shares: the segments that it works on, of any format, then the dots (a row is longer by 8, against bank
// conflicts); and the factors of its rows.
template <class L, int WORDS, int FACTORS>
struct TileShared {
  static constexpr int SEGMENT_BYTES = L::ROWS * (128 * WORDS + 32) + L::WIDTH * 128;
  union {
    alignas(128) uint8_t stages[L::DEPTH * SEGMENT_BYTES + L::DEPTH * 128 + L::WIDTH * 64];
    float dots[L::ROWS][L::WIDTH + 8];
  };
  float factor[FACTORS][L::ROWS];
};

// A lane's dots of a warp: rows lane / 4 and 8 more, outputs lane % 4 * 2 and one more of each tile of mma.
template <class L>
struct TileDots {
  float t[L::DOWN][L::ACROSS][4];
};

// Which words of an activation: the high ones, and of two words a value then the low ones.
__device__ inline const int8_t* word_plane(Q8 x, int) { return x.words; }

__device__ inline const int8_t* word_plane(Q8x2 x, int plane) { return plane == 0 ? x.words : x.low; }

// Copies 4 floats of a row of BLOCKS; where blocks are lacking, zeros.
template <int BLOCKS>
__device__ inline void copy_block_floats(AsyncCopies& copies, float* to, const float* from, int block, bool present) {
  constexpr int EACH = BLOCKS % 4 == 0 ? 4 : BLOCKS % 2 == 0 ? 2 : 1;  // as far as rows are aligned
  UNROLL
  for (int b = 0; b < 4; b += EACH) {
    copy_async<4 * EACH>(copies, to + b, from + b, present && (BLOCKS % 4 == 0 || block + b < BLOCKS));
  }
}

// This thread's part of copying the rows, segment by segment; rows beyond the last are zeros.
template <class W, int K, class X, class L>
struct RowCopies {
  static constexpr int STEP = L::THREADS / 8, SCALE_STEP = L::THREADS;  // rows that the block copies at once
  const int8_t* words[X::WORDS];
  const float *scales, *sums;
  int left, scales_left, block = 0;  // rows from this thread's first one on
  __device__ RowCopies(X x, int first, int rows) : left(rows - first - int(threadIdx.x) / 8), scales_left(rows - first - int(threadIdx.x)) {
    const size_t row = first + int(threadIdx.x) / 8, scale_row = first + int(threadIdx.x);
    for (int p = 0; p < X::WORDS; p++) words[p] = word_plane(x, p) + row * K + threadIdx.x % 8 * 16;
    scales = x.scales + scale_row * (K / 32);
    sums = x.sums + scale_row * (K / 32);
  }
  __device__ void next(TileSegment<W, X, L>& s, AsyncCopies& copies) {
    const int piece = threadIdx.x % 8, row = threadIdx.x / 8;
    const bool within = K % 128 == 0 || block * 32 + piece * 16 < K;
    UNROLL
    for (int p = 0; p < X::WORDS; p++) {
      UNROLL
      for (int i = 0; i < L::ROWS; i += STEP) {
        copy_async<16>(copies, &s.words[p][row + i][(piece ^ row % 8) * 16], words[p] + i * K, within && i < left);
      }
      words[p] += 128;
    }
    UNROLL
    for (int i = 0; i < L::ROWS; i += SCALE_STEP) {
      const int at = threadIdx.x + i, from = i * (K / 32);
      if (i + SCALE_STEP > L::ROWS && at >= L::ROWS) break;
      copy_block_floats<K / 32>(copies, s.scales[at], scales + from, block, i < scales_left);
      if constexpr (W::OFFSET >= 0) copy_block_floats<K / 32>(copies, s.sums[at], sums + from, block, i < scales_left);
    }
    scales += 4;
    sums += 4;
    block += 4;
  }
};

// This thread's part of copying COUNT pieces of the outputs from piece FIRST on, segment by segment; outputs beyond the last
// tile are zeros. A block has as many outputs of each weight, one weight's after the other's.
template <class W, int N, int K, class X, class L, int FIRST, int COUNT>
struct PieceCopies {
  static constexpr int THREADS_A_TILE = 8 * COUNT, STEP = L::THREADS / THREADS_A_TILE;  // tiles copied at once
  static constexpr int WEIGHTS = L::WEIGHTS_EACH, TILES = L::OUTPUTS / 8;  // of each weight
  static constexpr int PLACES = STEP <= TILES ? WEIGHTS : 1;  // a turn has one weight, or each thread has one
  static constexpr bool SOME_REST = STEP > TILES * WEIGHTS;  // threads without a tile
  static_assert(TILES % STEP == 0 || STEP >= TILES * WEIGHTS, "a thread's turns go over whole weights");
  const uint8_t* levels[PLACES];
  int left, segment = 0;  // tiles from this thread's first one on
  __device__ PieceCopies(const uint8_t* const (&weights)[WEIGHTS], int block) {
    const int thread = threadIdx.x, of_turn = thread / THREADS_A_TILE, tile = block * TILES + of_turn % TILES;
    const size_t at = tile_at<W, K>(tile, 0) + (FIRST + thread % THREADS_A_TILE / 8) * 512 + thread % 8 * 16;
    for (int w = 0; w < PLACES; w++) levels[w] = weights[PLACES == 1 ? of_turn / TILES % WEIGHTS : w] + at;
    left = (N + 7) / 8 - tile;
  }
  __device__ void next(TileSegment<W, X, L>& s, AsyncCopies& copies) {
    const int thread = threadIdx.x, of_turn = thread / THREADS_A_TILE;
    if (SOME_REST && of_turn >= TILES * WEIGHTS) return;
    uint8_t* to = s.levels[of_turn][FIRST] + thread % THREADS_A_TILE * 16;
    UNROLL
    for (int i = 0; i < TILES * WEIGHTS; i += STEP) {
      const uint8_t* from = levels[i / TILES % PLACES] + tile_at<W, K>(i % TILES, 0);
      copy_async<16>(copies, to + i * int(sizeof s.levels[0]), from, N % (TILES * 8) == 0 || i % TILES < left);
    }
    const int step = ++segment % 4 == 0 ? Tile<W>::BYTES - 384 : 128;
    for (int w = 0; w < PLACES; w++) levels[w] += step;
  }
};

// The same of all pieces: of 5 or 6 first the four of nibbles, then the others.
template <class W, int N, int K, class X, class L>
struct LevelCopies {
  static constexpr int PIECES = Tile<W>::PIECES, FIRST = PIECES % 4 ? 4 : PIECES, REST = PIECES - FIRST;
  PieceCopies<W, N, K, X, L, 0, FIRST> first;
  PieceCopies<W, N, K, X, L, FIRST, REST ? REST : 1> rest;
  __device__ LevelCopies(const uint8_t* const (&weights)[L::WEIGHTS_EACH], int block) : first(weights, block), rest(weights, block) {}
  __device__ void next(TileSegment<W, X, L>& s, AsyncCopies& copies) {
    first.next(s, copies);
    if constexpr (REST > 0) rest.next(s, copies);
  }
};

// This thread's part of the outputs' scales, which go through registers on their way to become f32.
template <class W, int N, int K, class L, bool GROUPS = (W::SCALES >= 0)>
struct ScaleCopies {
  static constexpr int WEIGHTS = L::WEIGHTS_EACH, TILES = L::OUTPUTS / 8, EACH_TILE = Tile<W>::SCALE_BYTES * 4;  // halves
  static constexpr int EACH = L::WIDTH / 8 * EACH_TILE / L::THREADS;
  static_assert(EACH >= 1 && EACH <= 4, "a thread has some halves of one output's scales or offsets");
  unsigned held[(EACH + 1) / 2];
  const uint8_t* halves;
  int segment = 0;
  __device__ ScaleCopies(const uint8_t* const (&weights)[WEIGHTS], int block) {
    const int half = threadIdx.x * EACH, of_block = half / EACH_TILE;
    const int tile = min(block * TILES + of_block % TILES, (N + 7) / 8 - 1);  // beyond the last, something
    halves = weights[of_block / TILES] + tile_at<W, K>(tile, 0) + Tile<W>::PIECES * 512 + half % EACH_TILE * 2;
  }
  __device__ void load() {
    UNROLL
    for (int i = 0; i < (EACH + 1) / 2; i++) held[i] = EACH == 1 ? *(const uint16_t*)halves : ((const unsigned*)halves)[i];
    halves += ++segment % 4 == 0 ? Tile<W>::BYTES - EACH_TILE * 6 : EACH_TILE * 2;
  }
  __device__ void store(WideScales<W, L>& wide) const {
    const int half = threadIdx.x * EACH, each = Tile<W>::SCALE_BYTES / 2, part = half % each;
    float* to = W::OFFSET < 0 || part < 4 ? &wide.d[half / each][part % 4] : &wide.m[half / each][part % 4];
    UNROLL
    for (int i = 0; i < EACH; i++) to[i] = half_to_float(uint16_t(held[i / 2] >> i % 2 * 16));
  }
};

// This thread's part of a K-quant's scales: an output's of a segment, its offsets, or half of its scales of 16 weights.
template <class W, int N, int K, class L>
struct ScaleCopies<W, N, K, L, true> {
  static constexpr int TILES = L::OUTPUTS / 8;
  static_assert(L::THREADS >= 2 * L::WIDTH, "two threads an output");
  uint4 held;
  const uint8_t* scales;
  int segment = 0;  // the next one's
  __device__ ScaleCopies(const uint8_t* const (&weights)[L::WEIGHTS_EACH], int block) {
    const int of_block = threadIdx.x % L::WIDTH / 8;
    const int tile = min(block * TILES + of_block % TILES, (N + 7) / 8 - 1);  // beyond the last, something
    scales = weights[of_block / TILES] + tile_at<W, K>(tile, 0) + Tile<W>::PIECES * 512;
  }
  __device__ void load() {
    const int lane = segment % 4 * 8 + threadIdx.x % 8, part = threadIdx.x / L::WIDTH % 2;
    if constexpr (W::GROUP == 16) {
      held.x = *(const uint16_t*)(scales + 256 + part_of_256<2>(lane));
      held.y = *(const unsigned*)(scales + lane * 8 + part * 4);
    } else {
      held = *(const uint4*)(scales + part_of_256<16>(lane));
    }
    if (++segment % 4 == 0) scales += Tile<W>::BYTES;
  }
  __device__ void store(WideScales<W, L>& wide) const {
    const int output = threadIdx.x % L::WIDTH, part = threadIdx.x / L::WIDTH;
    if (part > 1) return;
    UNROLL
    for (int b = 0; b < 4; b++) {
      if constexpr (W::GROUP == 16) {
        wide.by[output][part * 4 + b] = float(signed_byte(held.y, b));
        if (b / 2 == part) wide.d[output][b] = half_to_float(uint16_t(held.x));
      } else {
        const SixBits whole = six_bits(held, segment - 1);
        if (part == 0) wide.d[output][b] = half_to_float(uint16_t(held.x)) * byte_value(whole.scales, b);
        else wide.m[output][b] = -(half_to_float(uint16_t(held.x >> 16)) * byte_value(whole.offsets, b));
      }
    }
  }
};
