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
    if constexpr (W::BITS == 4) level = (i % 32 < 16 ? piece[i % 16] & 15 : piece[i % 16] >> 4) - W::ZERO;
    const uint16_t* scales = (const uint16_t*)(tile + Tile<W>::PIECES * 512 + lane * Tile<W>::SCALE_BYTES);
    const float value = half_to_float(scales[i / 32]) * float(level);
    if constexpr (W::OFFSET >= 0) return value + half_to_float(scales[4 + i / 32]);
    return value;
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
