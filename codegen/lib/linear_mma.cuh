// Levels with a zero of 8 are loaded 16-fold, which takes fewer instructions, where the dots' floats can make up for it.
template <class W, class X>
struct LevelLoad {
  static constexpr bool SIXTEENFOLD = W::BITS == 4 && W::ZERO == 8 && X::WORDS == 1;
  // 1.5 * 2^23, or 1.5 * 2^19 whose last bit is worth a 16th.
  static constexpr int START = SIXTEENFOLD ? 0x49400000 : 0x4b400000;
};

// Integer dots of a tile of mma, 4 blocks, and one of them as a float. A sum of one word's products is below 2^22, even
// 16-fold from nibbles: it grows in the mantissa of START, and one subtraction gives it as a float.
template <class W>
__device__ inline void mma_dots(Q8, int (&d)[4][4], const unsigned (&a)[1][4][4], const unsigned (&b)[4][2]) {
  UNROLL
  for (int i = 0; i < 16; i++) d[i / 4][i % 4] = LevelLoad<W, Q8>::START;
  mma_s8(d, a[0], b);
}

template <class W>
__device__ inline float dot_value(Q8, int d) {
  return float_of(unsigned(d)) - float_of(unsigned(LevelLoad<W, Q8>::START));
}

// Two words a value: 128 * high + low, rounded once.
template <class W>
__device__ inline void mma_dots(Q8x2, int (&d)[4][4], const unsigned (&a)[2][4][4], const unsigned (&b)[4][2]) {
  UNROLL
  for (int i = 0; i < 16; i++) d[i / 4][i % 4] = 0;
  mma_s8(d, a[0], b);
  UNROLL
  for (int i = 0; i < 16; i++) d[i / 4][i % 4] *= 128;
  mma_s8(d, a[1], b);
}

template <class W>
__device__ inline float dot_value(Q8x2, int d) { return float(d); }

// Where a lane's parts of a segment lie, in bytes: words of its row of a (those of block b are at words ^ 32 * b), levels,
// scales of its rows and of its outputs.
template <class W, class L>
struct LanePlaces {
  int words, levels, rest, rows, outputs;  // rest: levels of the last pieces, where there are 5 or 6
  __device__ LanePlaces() {
    const int lane = threadIdx.x % 32, row = L::first_row(), output = L::first_output();
    words = (row + lane % 16) * 128 + (lane / 16 ^ lane % 8) * 16;
    levels = output / 8 * Tile<W>::PIECES * 128 + lane * 16;
    rest = output / 8 * Tile<W>::PIECES * 128 + (Tile<W>::PIECES == 6 ? lane / 8 % 2 * 128 : 0) + lane % 8 * 16;
    rows = (row + lane / 4) * 16;
    outputs = (output + lane % 4 * 2) * 16;
  }
};

// Four floats that lie together.
struct Four {
  alignas(16) float value[4];
};

__device__ inline Four four_at(const void* part, int place) { return *(const Four*)((const char*)part + place); }

// What mma takes of 16 rows' segment, with scales and sums of a lane's two rows.
template <class W, class X>
struct RowPart {
  unsigned words[X::WORDS][4][4];
  Four d[2], y[2];
  template <class L>
  __device__ void load(const TileSegment<W, X, L>& s, LanePlaces<W, L> at_lane, int row) {
    UNROLL
    for (int p = 0; p < X::WORDS; p++) {
      const void* at[4];
      UNROLL
      for (int b = 0; b < 4; b++) at[b] = s.words[p][row] + (at_lane.words ^ b * 32);
      load_matrices(words[p], at);
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
      d[half] = four_at(s.scales[row + half * 8], at_lane.rows);
      if constexpr (W::OFFSET >= 0) y[half] = four_at(s.sums[row + half * 8], at_lane.rows);
    }
  }
};

// What mma takes of 8 outputs' segment, with scales and offsets of a lane's two outputs.
template <class W, class X>
struct OutputPart {
  unsigned levels[4][2];
  Four d[2], m[2], by[W::GROUP == 32 ? 1 : 2][2];
  template <class L>
  __device__ void load(const TileSegment<W, X, L>& s, const WideScales<W, L>& wide, LanePlaces<W, L> at_lane, int tile) {
    constexpr int COUNT = (Tile<W>::PIECES + 3) / 4, REST = Tile<W>::PIECES % 4;
    unsigned word[COUNT][4];
    const void* at[COUNT];
    UNROLL
    for (int i = 0; i < COUNT; i++) at[i] = s.levels[tile][i * 4] + at_lane.levels;
    if constexpr (REST > 0) at[COUNT - 1] = s.levels[tile][4] + at_lane.rest;
    load_matrices(word, at);
    UNROLL
    for (int b = 0; b < 4; b++) spread(b, word);
    UNROLL
    for (int side = 0; side < 2; side++) {
      d[side] = four_at(wide.d[tile * 8 + side], at_lane.outputs);
      if constexpr (W::OFFSET >= 0) m[side] = four_at(wide.m[tile * 8 + side], at_lane.outputs);
      if constexpr (W::GROUP == 16) {
        UNROLL
        for (int i = 0; i < 2; i++) by[side][i] = four_at(wide.by[tile * 8 + side], 2 * at_lane.outputs + i * 16);
      }
    }
  }
  // Block b's levels from the loaded words; perhaps 16-fold.
  template <int COUNT>
  __device__ void spread(int b, const unsigned (&word)[COUNT][4]) {
    if constexpr (W::BITS == 8) {
      levels[b][0] = word[b / 2][b % 2 * 2];
      levels[b][1] = word[b / 2][b % 2 * 2 + 1];
    } else if constexpr (LevelLoad<W, X>::SIXTEENFOLD) {
      const unsigned nibbles = word[0][b] ^ 0x88888888u;  // signed
      levels[b][0] = nibbles << 4 & 0xf0f0f0f0u;
      levels[b][1] = nibbles & 0xf0f0f0f0u;
    } else {
      UNROLL
      for (int half = 0; half < 2; half++) {
        levels[b][half] = unsigned(four_levels<W>(word[0][b] >> half * 4, b, half, {word[COUNT - 1][0], word[COUNT - 1][1]}));
      }
    }
  }
};

// Sums of a tile of mma's dots, four blocks of four outputs; where 16 weights share a scale, of halves of blocks.
template <class W, class X>
struct BlockDots {
  static constexpr int HALVES = 32 / W::GROUP;
  int dot[HALVES][4][4];
  __device__ BlockDots(const RowPart<W, X>& rows, const OutputPart<W, X>& outputs) {
    if constexpr (HALVES == 1) {
      mma_dots<W>(X{}, dot[0], rows.words, outputs.levels);
    } else {
      UNROLL
      for (int half = 0; half < 2; half++) {
        unsigned levels[4][2] = {};  // of this half; zeros are the other one's
        UNROLL
        for (int b = 0; b < 4; b++) levels[b][half] = outputs.levels[b][half];
        mma_dots<W>(X{}, dot[half], rows.words, levels);
      }
    }
  }
  // The dot of block b and output e of the lane's, as one float.
  __device__ float value(const OutputPart<W, X>& outputs, int b, int e) const {
    if constexpr (HALVES == 1) {
      return dot_value<W>(X{}, dot[0][b][e]);
    } else {
      const Four& by = outputs.by[e % 2][b / 2];
      return halves_value<W>(X{}, dot[0][b][e], by.value[b % 2 * 2], dot[1][b][e], by.value[b % 2 * 2 + 1]);
    }
  }
};

// Two halves of a dot, each times its whole number: below 2^24, so that floats have them.
template <class W>
__device__ inline float halves_value(Q8 x, int low, float by_low, int high, float by_high) {
  return fmaf(dot_value<W>(x, high), by_high, dot_value<W>(x, low) * by_low);
}

// The same of two words a value, rounded once.
template <class W>
__device__ inline float halves_value(Q8x2, int low, float by_low, int high, float by_high) {
  return float(low * int(by_low) + high * int(by_high));
}

// Adds a segment to 16 x 8 dots, 4 of them a lane's.
template <class W, class X>
__device__ inline void add_tile(float (&t)[4], const RowPart<W, X>& rows, const OutputPart<W, X>& outputs) {
  const BlockDots<W, X> dots(rows, outputs);
  UNROLL
  for (int e = 0; e < 4; e++) {
    const int row = e / 2, output = e % 2;
    float p = -0.0f;  // changes no first term
    UNROLL
    for (int b = 0; b < 4; b++) {
      const float scale = block_scale(X{}, outputs.d[output].value[b] * rows.d[row].value[b]);
      p = fmaf(scale, dots.value(outputs, b, e), p);
    }
    if constexpr (W::OFFSET >= 0) {
      UNROLL
      for (int b = 0; b < 4; b++) p = fmaf(outputs.m[output].value[b], rows.y[row].value[b], p);
    }
    t[e] = t[e] + p;
  }
}

// Adds a segment to a warp's dots. Where there are registers for it, the next outputs are on their way while some are
// worked on.
template <class W, class X, class L>
__device__ inline void add_segment(TileDots<L>& dots, const TileSegment<W, X, L>& s, const WideScales<W, L>& wide, LanePlaces<W, L> at_lane) {
  constexpr bool EARLY = W::OFFSET < 0 && X::WORDS == 1;
  RowPart<W, X> rows[L::DOWN];
  UNROLL
  for (int i = 0; i < L::DOWN; i++) rows[i].load(s, at_lane, i * 16);
  OutputPart<W, X> next;
  if (EARLY) next.load(s, wide, at_lane, 0);
  UNROLL
  for (int j = 0; j < L::ACROSS; j++) {
    if (!EARLY) next.load(s, wide, at_lane, j);
    const OutputPart<W, X> outputs = next;
    if (EARLY && j + 1 < L::ACROSS) next.load(s, wide, at_lane, j + 1);
    if (EARLY && j % 2 == 1) hold_loads();
    UNROLL
    for (int i = 0; i < L::DOWN; i++) add_tile(dots.t[i][j], rows[i], outputs);
  }
}

// All dots of a block's tile with its weights, to s.dots; a barrier must follow.
template <class W, int N, int K, class L, class X, int WEIGHTS, int FACTORS>
__device__ inline void tile_dots(TileShared<L, X::WORDS, FACTORS>& s, int block, const uint8_t* const (&weights)[WEIGHTS], X x, int first, int rows) {
  constexpr int SEGMENTS = (K + 127) / 128, DEPTH = L::DEPTH;
  const LanePlaces<W, L> at_lane;
  const bool works = first + L::first_row() < rows;
  AsyncCopies copies;
  RowCopies<W, K, X, L> row_copies(x, first, rows);
  LevelCopies<W, N, K, X, L> level_copies(weights, block);
  ScaleCopies<W, N, K, L> scale_copies(weights, block);
  static_assert(sizeof(TileStages<W, X, L>) <= sizeof(s.stages), "a format's segments are larger than thought");
  auto& stages = *(TileStages<W, X, L>*)s.stages;
  const auto fetch = [&](int segment) {
    if (segment < SEGMENTS) {
      row_copies.next(stages.segment[segment % DEPTH], copies);
      level_copies.next(stages.segment[segment % DEPTH], copies);
    }
    commit_copies(copies);
  };
  TileDots<L> dots;
  UNROLL
  for (int i = 0; i < L::DOWN * L::ACROSS * 4; i++) dots.t[i / 4 / L::ACROSS][i / 4 % L::ACROSS][i % 4] = -0.0f;
  for (int segment = 0; segment < DEPTH - 1; segment++) fetch(segment);
  scale_copies.load();
  scale_copies.store(stages.wide[0]);
  if (SEGMENTS > 1) scale_copies.load();
  for (int segment = 0; segment < SEGMENTS; segment++) {
    wait_copies<DEPTH - 2>(copies);
    __syncthreads();  // this segment has landed, and nobody works on the last one still
    fetch(segment + DEPTH - 1);
    scale_copies.store(stages.wide[(segment + 1) % 2]);
    if (segment + 2 < SEGMENTS) scale_copies.load();
    if (works) add_segment(dots, stages.segment[segment % DEPTH], stages.wide[segment % 2], at_lane);
  }
  wait_copies<0>(copies);
  __syncthreads();
  if (works) store_dots(dots, s.dots);
}

// A warp's dots to shared memory.
template <class L>
__device__ inline void store_dots(const TileDots<L>& dots, float (&to)[L::ROWS][L::WIDTH + 8]) {
  const int lane = threadIdx.x % 32, row = L::first_row() + lane / 4, output = L::first_output() + lane % 4 * 2;
  UNROLL
  for (int i = 0; i < L::DOWN; i++) {
    UNROLL
    for (int j = 0; j < L::ACROSS; j++) {
      UNROLL
      for (int e = 0; e < 4; e++) to[row + i * 16 + e / 2 * 8][output + j * 8 + e % 2] = dots.t[i][j][e];
    }
  }
}
