// A weight's device layout: tiles of 8 rows x 4 segments of 128 inputs, [piece][segment][row][16 B], then the scales, as
// many bytes as the checkpoint has. A warp's lane holds row lane % 8, segment lane / 8, so each of its loads is 512 bytes in
// a row. Scales are [segment][row] 4 halves d, then 4 halves m; those of K-quants stay whole numbers: [256 inputs][row] d, m
// and 12 bytes of six_bits, or [segment][row] 8 signed bytes, then [256 inputs][row] d.
template <class F>
struct Tile {
  static constexpr int PIECES = F::BITS;  // 128 weights of BITS bits are BITS pieces of 16 bytes
  static constexpr int SCALE_BYTES = F::SCALE < 0 ? 0 : (F::SIZE - F::BLOCK * F::BITS / 8) * 128 / F::BLOCK;  // a segment's
  static constexpr int BYTES = PIECES * 512 + 32 * SCALE_BYTES;
};

// What one lane holds of a tile: a row's segment, 4 blocks of 32 weights with their scales d and offsets m. Where 16 weights
// share a scale it is d times a signed byte of `by`.
template <class F>
struct Segment {
  int4 piece[Tile<F>::PIECES];
  float d[F::SCALE < 0 ? 1 : 4], m[F::OFFSET < 0 ? 1 : 4];
  unsigned by[F::GROUP == 16 ? 2 : 1];
};

// Scales and offsets of a segment's four blocks, a byte each, from a row's 12 bytes of 6 bits each for 256 inputs: the first
// four of each are the low bits of 8 bytes, whose two high bits belong to the other four.
struct SixBits {
  unsigned scales, offsets;
};
__device__ inline SixBits six_bits(uint4 row, int segment) {
  if (segment % 2 == 0) return {row.y & 0x3f3f3f3fu, row.z & 0x3f3f3f3fu};
  return {(row.w & 0x0f0f0f0fu) | (row.y >> 2 & 0x30303030u), (row.w >> 4 & 0x0f0f0f0fu) | (row.z >> 2 & 0x30303030u)};
}

// Where in a tile's scales the part of a lane's 256 inputs begins, parts being EACH bytes.
template <int EACH>
__device__ inline int part_of_256(int lane) { return (lane / 16 * 8 + lane % 8) * EACH; }

// Byte i of a word.
__device__ inline float byte_value(unsigned word, int i) { return float(word >> i * 8 & 255); }

__device__ inline int signed_byte(unsigned word, int i) { return int8_t(word >> i * 8); }

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
  if constexpr (F::SCALE >= 0) load_scales(s, tile + Tile<F>::PIECES * 512, lane);
  return s;
}

// A lane's scales and offsets from its tile's.
template <class F>
__device__ inline void load_scales(Segment<F>& s, const uint8_t* scales, int lane) {
  if constexpr (F::SCALES < 0) {
    scales += lane * Tile<F>::SCALE_BYTES;
    half_quad(*(const uint2*)scales, s.d);
    if constexpr (F::OFFSET >= 0) half_quad(*(const uint2*)(scales + 8), s.m);
  } else if constexpr (F::GROUP == 16) {
    const uint2 by = *(const uint2*)(scales + lane * 8);
    s.by[0] = by.x;
    s.by[1] = by.y;
    const float d = half_to_float(*(const uint16_t*)(scales + 256 + part_of_256<2>(lane)));
    UNROLL
    for (int b = 0; b < 4; b++) s.d[b] = d;
  } else {
    const uint4 row = *(const uint4*)(scales + part_of_256<16>(lane));
    const SixBits whole = six_bits(row, lane / 8);
    const float d = half_to_float(uint16_t(row.x)), m = half_to_float(uint16_t(row.x >> 16));
    UNROLL
    for (int b = 0; b < 4; b++) {
      s.d[b] = d * byte_value(whole.scales, b);
      s.m[b] = -(m * byte_value(whole.offsets, b));
    }
  }
}

// Four unsigned levels, a byte each, as signed ones: `zero` is taken off every byte without a borrow between them.
template <int ZERO>
__device__ inline int signed_levels(unsigned bytes) {
  return int(((bytes | 0x80808080u) - ZERO * 0x01010101u) ^ 0x80808080u);
}

// Four signed levels of a half of block b: their nibbles, and where a format has more bits the words with those of all 8
// halves, from the lowest bits up.
template <class F>
__device__ inline int four_levels(unsigned nibbles, int b, int half, [[maybe_unused]] const unsigned (&high)[2]) {
  unsigned bytes = nibbles & 0x0f0f0f0fu;
  if constexpr (F::BITS > 4) {
    constexpr int BITS = F::BITS - 4;
    const int bit = (2 * b + half) * BITS;
    bytes |= (high[bit / 8] >> bit % 8 & 0x01010101u * ((1 << BITS) - 1)) << 4;
  }
  return signed_levels<F::ZERO>(bytes);
}

// Levels 16 * half .. 16 * half + 15 of block b, as signed bytes.
template <class F>
__device__ inline int4 levels(const Segment<F>& s, int b, int half) {
  if constexpr (F::BITS == 8) {
    return s.piece[2 * b + half];
  } else {
    constexpr int HIGH = F::BITS > 4 ? 4 : 0, LAST = F::BITS > 4 ? F::BITS - 1 : 0;  // pieces of the bits above four
    const int4 v = s.piece[b], h = s.piece[HIGH], l = s.piece[LAST];
    const int shift = 4 * half;
    return make_int4(four_levels<F>(unsigned(v.x) >> shift, b, half, {unsigned(h.x), unsigned(l.x)}),
                     four_levels<F>(unsigned(v.y) >> shift, b, half, {unsigned(h.y), unsigned(l.y)}),
                     four_levels<F>(unsigned(v.z) >> shift, b, half, {unsigned(h.z), unsigned(l.z)}),
                     four_levels<F>(unsigned(v.w) >> shift, b, half, {unsigned(h.w), unsigned(l.w)}));
  }
}

// The levels of a block and, where its halves have scales of their own, those whole numbers.
template <class F>
struct BlockLevels {
  int4 low, high;
  int by[F::GROUP == 16 ? 2 : 1];
};

template <class F>
__device__ inline BlockLevels<F> block_levels(const Segment<F>& s, int b) {
  BlockLevels<F> block = {levels(s, b, 0), levels(s, b, 1), {}};
  if constexpr (F::GROUP == 16) {
    UNROLL
    for (int half = 0; half < 2; half++) block.by[half] = signed_byte(s.by[b / 2], b % 2 * 2 + half);
  }
  return block;
}

// The 32 weights of block b in f32, as the format's meaning has them.
template <class F>
__device__ inline void block_values(const Segment<F>& s, int b, float (&value)[32]) {
  if constexpr (F::SCALE >= 0) {
    UNROLL
    for (int half = 0; half < 2; half++) {
      const int4 packed = levels(s, b, half);
      float d = s.d[b];
      if constexpr (F::GROUP == 16) d = d * float(signed_byte(s.by[b / 2], b % 2 * 2 + half));
      UNROLL
      for (int i = 0; i < 16; i++) {
        const int word = i < 4 ? packed.x : i < 8 ? packed.y : i < 12 ? packed.z : packed.w;
        const float v = d * float(int8_t(unsigned(word) >> (i % 4 * 8)));
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
