// A weight's device layout: tiles of 8 rows x 4 segments of 128 inputs, [piece][segment][row][16 B], then the scales
// [segment][row]. A warp's lane holds row lane % 8, segment lane / 8, so each of its loads is 512 bytes in a row.
template <class F>
struct Tile {
  static constexpr int PIECES = F::BITS;  // 128 weights of BITS bits are BITS pieces of 16 bytes
  static constexpr int SCALE_BYTES = F::SCALE < 0 ? 0 : F::OFFSET < 0 ? 8 : 16;  // 4 halves d, then 4 halves m
  static constexpr int BYTES = PIECES * 512 + 32 * SCALE_BYTES;
};

// What one lane holds of a tile.
template <class F>
struct Segment {
  int4 piece[Tile<F>::PIECES];
  uint16_t d[F::SCALE < 0 ? 1 : 4], m[F::OFFSET < 0 ? 1 : 4];
};

// Loads this lane's segment of the tile at `tile`.
template <class F>
__device__ inline Segment<F> load_segment(const uint8_t* tile, int lane) {
  Segment<F> s;
  UNROLL
  for (int j = 0; j < Tile<F>::PIECES; j++) s.piece[j] = load_stream((const int4*)(tile + j * 512 + lane * 16));
  if constexpr (F::SCALE >= 0) {
    const uint16_t* scales = (const uint16_t*)(tile + Tile<F>::PIECES * 512 + lane * Tile<F>::SCALE_BYTES);
    UNROLL
    for (int b = 0; b < 4; b++) s.d[b] = scales[b];
    if constexpr (F::OFFSET >= 0) {
      UNROLL
      for (int b = 0; b < 4; b++) s.m[b] = scales[4 + b];
    }
  }
  return s;
}

// The four levels of byte-packed word `w` (0..7) of block `b` (0..3), as signed bytes.
template <class F>
__device__ inline int level_word(const Segment<F>& s, int b, int w) {
  if constexpr (F::BITS == 8) {
    return ((const int*)&s.piece[2 * b + w / 4])[w % 4];
  } else {
    const unsigned packed = unsigned(((const int*)&s.piece[b])[w % 4]);
    const unsigned nibbles = (w < 4 ? packed : packed >> 4) & 0x0f0f0f0fu;
    constexpr unsigned ZERO = F::ZERO * 0x01010101u;  // taken off each byte without a borrow between bytes
    return int(((nibbles | 0x80808080u) - ZERO) ^ 0x80808080u);
  }
}

// The value of weight k (0..127) of a segment, in f32.
template <class F>
__device__ inline float weight_value(const Segment<F>& s, int k) {
  if constexpr (F::SCALE >= 0) {
    const int level = int8_t(unsigned(level_word(s, k / 32, k % 32 / 4)) >> (k % 4 * 8));
    const float value = half_to_float(s.d[k / 32]) * float(level);
    if constexpr (F::OFFSET >= 0) return value + half_to_float(s.m[k / 32]);
    return value;
  } else if constexpr (F::BITS == 32) {
    return float_of(unsigned(((const int*)&s.piece[k / 4])[k % 4]));
  } else {
    const unsigned pair = unsigned(((const int*)&s.piece[k / 8])[k % 8 / 2]);
    return element_to_float<F>(uint16_t(k % 2 ? pair >> 16 : pair));
  }
}

// Where tile (row tile, group of 512 inputs) of a matrix with K inputs starts.
template <class F, int K>
__device__ inline size_t tile_at(size_t row_tile, int group) {
  return (row_tile * ((K + 511) / 512) + group) * Tile<F>::BYTES;
}

// An element of a 16-bit format, from its bits.
template <class F>
__device__ inline float element_to_float(uint16_t bits) {
  if constexpr (F::GGML == 30) return bfloat_to_float(bits);  // bf16
  else return half_to_float(bits);
}
