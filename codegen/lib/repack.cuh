// Byte i of piece j of a row's segment, from the row as the checkpoint stores it; padding is level 0.
template <class F>
__device__ inline uint8_t piece_byte(const uint8_t* row, int k, int segment, int j, int i) {
  constexpr uint8_t PADDING = F::BITS == 4 ? F::ZERO * 17 : 0;
  if constexpr (F::SCALES >= 0) {
    return row && segment * 128 < k ? grouped_piece_byte<F>(row + size_t(segment / 2) * F::SIZE, segment % 2 * 128, j, i) : uint8_t(0);
  } else if constexpr (F::SCALE >= 0) {
    const int block = segment * 4 + (F::BITS == 8 ? j / 2 : j);
    return row && block * 32 < k ? row[size_t(block) * F::SIZE + F::LEVELS + (F::BITS == 8 ? j % 2 * 16 : 0) + i] : PADDING;
  } else {
    const size_t at = size_t(segment) * 16 * F::BITS + j * 16 + i;
    return row && at < size_t(k) * F::SIZE ? row[at] : PADDING;
  }
}

// Level i of a K-quant's block as the checkpoint has it, unsigned.
template <class F>
__device__ inline unsigned stored_level(const uint8_t* block, int i) {
  unsigned level = block[F::LEVELS + i / (2 * F::RUN) * F::RUN + i % F::RUN] >> i / F::RUN % 2 * 4 & 15;
  if constexpr (F::HIGH >= 0) {
    constexpr int BITS = F::BITS - 4, EACH = 8 / BITS;
    level |= (block[F::HIGH + i / (32 * EACH) * 32 + i % 32] >> i / 32 % EACH * BITS & ((1 << BITS) - 1)) << 4;
  }
  return level;
}

// Byte i of piece j of a K-quant's segment, whose first level is `first` of the block: four pieces of nibbles, one for each
// 32 levels, of levels i and i + 16; then the bits above those of every 16 levels, from the lowest bits up.
template <class F>
__device__ inline uint8_t grouped_piece_byte(const uint8_t* block, int first, int j, int i) {
  if (j < 4) {
    const int at = first + j * 32 + i;
    return uint8_t((stored_level<F>(block, at) & 15) | (stored_level<F>(block, at + 16) & 15) << 4);
  }
  unsigned byte = 0;
  if constexpr (F::BITS > 4) {
    constexpr int BITS = F::BITS - 4, EACH = 8 / BITS;
    for (int e = 0; e < EACH; e++) byte |= stored_level<F>(block, first + ((j - 4) * EACH + e) * 16 + i) >> 4 << e * BITS;
  }
  return uint8_t(byte);
}

// A K-quant's scales of a row's segment as they are, those of 256 inputs with the first of its segments.
template <class F>
__device__ inline void repack_groups(const uint8_t* row, int k, int segment, int lane, uint8_t* scales) {
  const bool there = row && segment * 128 < k;
  const uint8_t* block = there ? row + size_t(segment / 2) * F::SIZE : nullptr;
  if constexpr (F::GROUP == 16) {
    for (int i = 0; i < 8; i++) scales[lane * 8 + i] = there ? block[F::SCALES + segment % 2 * 8 + i] : 0;
    if (segment % 2 == 0) {
      for (int i = 0; i < 2; i++) scales[256 + part_of_256<2>(lane) + i] = there ? block[F::SCALE + i] : 0;
    }
  } else if (segment % 2 == 0) {
    for (int i = 0; i < 16; i++) scales[part_of_256<16>(lane) + i] = there ? block[F::SCALE + i] : 0;
  }
}

// The half at byte `part` of a row's block; -0.0 where there is none: it adds nothing, bit for bit.
template <class F>
__device__ inline uint16_t scale_half(const uint8_t* row, int k, int block, int part) {
  if (!row || block * 32 >= k) return 0x8000;
  const uint8_t* at = row + size_t(block) * F::SIZE + part;
  return uint16_t(at[0] | at[1] << 8);
}

// One row's segment into its place in a tile; row is null for padding.
template <class F>
__device__ inline void repack_segment(const uint8_t* row, int k, int segment, int tile_row, uint8_t* tile) {
  const int lane = segment % 4 * 8 + tile_row;
  for (int j = 0; j < Tile<F>::PIECES; j++) {
    for (int i = 0; i < 16; i++) tile[j * 512 + lane * 16 + i] = piece_byte<F>(row, k, segment, j, i);
  }
  if constexpr (F::SCALES >= 0) {
    repack_groups<F>(row, k, segment, lane, tile + Tile<F>::PIECES * 512);
  } else if constexpr (F::SCALE >= 0) {
    uint16_t* scales = (uint16_t*)(tile + Tile<F>::PIECES * 512 + lane * Tile<F>::SCALE_BYTES);
    for (int b = 0; b < 4; b++) scales[b] = scale_half<F>(row, k, segment * 4 + b, F::SCALE);
    if constexpr (F::OFFSET >= 0) {
      for (int b = 0; b < 4; b++) scales[4 + b] = scale_half<F>(row, k, segment * 4 + b, F::OFFSET);
    }
  }
}

// This thread's segment of rows first_row .. first_row + rows - 1 of matrices of n rows (one, or experts) into tiles.
template <class F>
__device__ inline void repack_thread(const uint8_t* raw, size_t first_row, size_t rows, int n, int k, uint8_t* to) {
  const int segments = (k + 511) / 512 * 4;
  const size_t index = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= rows * segments) return;
  const size_t row_bytes = size_t(k) / F::BLOCK * F::SIZE, row = first_row + index / segments;
  const int segment = int(index % segments), inner = int(row % n), padded = (n + 7) / 8;
  uint8_t* tile = to + ((row / n * padded + inner / 8) * (segments / 4) + segment / 4) * Tile<F>::BYTES;
  repack_segment<F>(raw + index / segments * row_bytes, k, segment, inner % 8, tile);
  if (inner != n - 1) return;
  for (int pad = inner % 8 + 1; pad < 8; pad++) repack_segment<F>(nullptr, k, segment, pad, tile);
}

// Rows of a checkpoint's matrix into tiles: a thread a segment.
template <class F>
__global__ void repack_rows(const uint8_t* raw, size_t first_row, size_t rows, int n, int k, uint8_t* to) {
  repack_thread<F>(raw, first_row, rows, n, k, to);
}

// Element i of an array in an element format.
template <class F>
__device__ inline float element_at(const uint8_t* raw, size_t i) {
  if constexpr (F::BITS == 32) {
    return ((const float*)raw)[i];
  } else {
    return element_to_float<F>(((const uint16_t*)raw)[i]);
  }
}

// Elements of a plain array as f32.
template <class F>
__global__ void widen_elements(const uint8_t* raw, size_t count, float* to) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = element_at<F>(raw, i);
}
