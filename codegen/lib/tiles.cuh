// A weight's device layout: tiles of 8 rows x 4 segments of 128 inputs, [piece][segment][row][16 B], then the scales
// [segment][row]. A warp's lane holds row lane % 8, segment lane / 8, so each of its loads is 512 bytes in a row.
template <class F>
struct Tile {
  static constexpr int PIECES = F::BITS;  // 128 weights of BITS bits are BITS pieces of 16 bytes
  static constexpr int SCALE_BYTES = F::SCALE < 0 ? 0 : F::OFFSET < 0 ? 8 : 16;  // 4 halves d, then 4 halves m
  static constexpr int BYTES = PIECES * 512 + 32 * SCALE_BYTES;
};

// What one lane holds of a tile: a row's segment, 4 blocks of 32 weights with their scales d and offsets m.
template <class F>
struct Segment {
  int4 piece[Tile<F>::PIECES];
  float d[F::SCALE < 0 ? 1 : 4], m[F::OFFSET < 0 ? 1 : 4];
};

// Four halves as floats.
__device__ inline void half_quad(uint2 packed, float (&out)[4]) {
  out[0] = half_to_float(uint16_t(packed.x));
  out[1] = half_to_float(uint16_t(packed.x >> 16));
  out[2] = half_to_float(uint16_t(packed.y));
  out[3] = half_to_float(uint16_t(packed.y >> 16));
}

// Loads this lane's segment of the tile at `tile`.
template <class F>
__device__ inline Segment<F> load_segment(const uint8_t* tile, int lane) {
  Segment<F> s;
  UNROLL
  for (int j = 0; j < Tile<F>::PIECES; j++) s.piece[j] = load_stream((const int4*)(tile + j * 512 + lane * 16));
  if constexpr (F::SCALE >= 0) {
    const uint8_t* scales = tile + Tile<F>::PIECES * 512 + lane * Tile<F>::SCALE_BYTES;
    half_quad(*(const uint2*)scales, s.d);
    if constexpr (F::OFFSET >= 0) half_quad(*(const uint2*)(scales + 8), s.m);
  }
  return s;
}

// Four nibbles as signed levels, a byte each: `zero` is taken off every byte without a borrow between them.
template <int ZERO>
__device__ inline int nibble_levels(unsigned nibbles) {
  return int((((nibbles & 0x0f0f0f0fu) | 0x80808080u) - ZERO * 0x01010101u) ^ 0x80808080u);
}

// Levels 16 * half .. 16 * half + 15 of block b, as signed bytes.
template <class F>
__device__ inline int4 levels(const Segment<F>& s, int b, int half) {
  if constexpr (F::BITS == 8) {
    return s.piece[2 * b + half];
  } else {
    const int4 v = s.piece[b];
    const int shift = 4 * half;
    return make_int4(nibble_levels<F::ZERO>(unsigned(v.x) >> shift), nibble_levels<F::ZERO>(unsigned(v.y) >> shift),
                     nibble_levels<F::ZERO>(unsigned(v.z) >> shift), nibble_levels<F::ZERO>(unsigned(v.w) >> shift));
  }
}

// The 32 weights of block b in f32, as the format's meaning has them.
template <class F>
__device__ inline void block_values(const Segment<F>& s, int b, float (&value)[32]) {
  if constexpr (F::SCALE >= 0) {
    UNROLL
    for (int half = 0; half < 2; half++) {
      const int4 packed = levels(s, b, half);
      UNROLL
      for (int i = 0; i < 16; i++) {
        const int word = i < 4 ? packed.x : i < 8 ? packed.y : i < 12 ? packed.z : packed.w;
        const float v = s.d[b] * float(int8_t(unsigned(word) >> (i % 4 * 8)));
        if constexpr (F::OFFSET >= 0) value[16 * half + i] = v + s.m[b];
        else value[16 * half + i] = v;
      }
    }
  } else {
    constexpr int EACH = 128 / F::BITS, PER_WORD = 32 / F::BITS;  // weights a piece, a word
    UNROLL
    for (int i = 0; i < 32; i++) {
      const int4 piece = s.piece[(32 * b + i) / EACH];
      const int w = i % EACH / PER_WORD;
      const unsigned word = unsigned(w == 0 ? piece.x : w == 1 ? piece.y : w == 2 ? piece.z : piece.w);
      if constexpr (F::BITS == 32) value[i] = float_of(word);
      else value[i] = element_to_float<F>(uint16_t(word >> (i % 2 * 16)));
    }
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
