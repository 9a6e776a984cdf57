// Weight (n, k) of a matrix in tiles with K inputs, in f32.
template <class W, int K>
__device__ inline float tile_value(const uint8_t* tiles, int n, int k) {
  const uint8_t* tile = tiles + tile_at<W, K>(n / 8, k / 512);
  const int lane = k % 512 / 128 * 8 + n % 8, i = k % 128;
  constexpr int PER_PIECE = 128 / Tile<W>::PIECES;
  const uint8_t* piece = tile + i / PER_PIECE * 512 + lane * 16;
  if constexpr (W::SCALE < 0) {
    return element_value<W>(piece, i % PER_PIECE);
  } else {
    int level = int8_t(piece[i % 16]);
    if constexpr (W::BITS < 8) level = tile_level<W>(tile, lane, i) - W::ZERO;
    if constexpr (W::SCALES >= 0) return group_value<W>(tile + Tile<W>::PIECES * 512, lane, i, float(level));
    const uint16_t* scales = (const uint16_t*)(tile + Tile<W>::PIECES * 512 + lane * Tile<W>::SCALE_BYTES);
    const float value = half_to_float(scales[i / 32]) * float(level);
    if constexpr (W::OFFSET >= 0) return value + half_to_float(scales[4 + i / 32]);
    return value;
  }
}

// Level i of a lane's segment, unsigned: a nibble, and bits above it in the pieces behind those of nibbles.
template <class W>
__device__ inline int tile_level(const uint8_t* tile, int lane, int i) {
  const uint8_t* byte = tile + lane * 16 + i % 16;
  int level = byte[i / 32 * 512] >> i / 16 % 2 * 4 & 15;
  if constexpr (W::BITS > 4) {
    constexpr int BITS = W::BITS - 4, EACH = 8 / BITS;
    level |= (byte[(4 + i / 16 / EACH) * 512] >> i / 16 % EACH * BITS & ((1 << BITS) - 1)) << 4;
  }
  return level;
}

// A K-quant's weight i of a lane's segment, from its level.
template <class W>
__device__ inline float group_value(const uint8_t* scales, int lane, int i, float level) {
  if constexpr (W::GROUP == 16) {
    const float d = half_to_float(*(const uint16_t*)(scales + 256 + part_of_256<2>(lane)));
    return d * float(int8_t(scales[lane * 8 + i / 16])) * level;
  } else {
    const uint4 row = *(const uint4*)(scales + part_of_256<16>(lane));
    const SixBits whole = six_bits(row, lane / 8);
    const float d = half_to_float(uint16_t(row.x)) * byte_value(whole.scales, i / 32);
    return d * level + -(half_to_float(uint16_t(row.x >> 16)) * byte_value(whole.offsets, i / 32));
  }
}

// Element i of 16 bytes of a format without blocks, in f32.
template <class W>
__device__ inline float element_value(const uint8_t* piece, int i) {
  if constexpr (W::BITS == 32) {
    return ((const float*)piece)[i];
  } else {
    return element_to_float<W>(((const uint16_t*)piece)[i]);
  }
}

// Column d of a token's row of a table; of a token that is none NaN, which the driver never lets through.
template <class W, int V, int D>
__device__ inline float embedded(const uint8_t* table, int token, int d) {
  return token >= 0 && token < V ? tile_value<W, D>(table, token, d) : not_a_number();
}
