// Word i of a tensor with this key: a hash of a counter in integers alone (runtime/hashed_weights.py makes the same bytes).
__device__ inline uint32_t hashed_word(uint32_t key, uint32_t i) {
  uint32_t x = i * 0x9E3779B9u + key;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  return x ^ x >> 16;
}

// The power of two of a scale, or of elements, for which sums of k products are about as large as what is multiplied.
template <class F>
__device__ inline int hashed_exponent(int k) {
  int halved = 0;
  while (k >> 2 * halved > 1) halved++;  // about log2 of the root of k
  return -halved - (F::BLOCK == 1 ? 1 : F::BITS - 1 + (F::SCALES >= 0 ? 5 : 0));
}

// An f16's upper byte for this power of two, with the two bits of the fraction that `hashed` has there.
__device__ inline uint8_t hashed_half(int exponent, uint8_t hashed) {
  return uint8_t((exponent > -15 ? 15 + exponent : 0) << 2 | (hashed & 3));
}

// An element: hashed sign and fraction, or, of a vector, 1 and up to a quarter more.
template <class F>
__device__ inline void hashed_element(uint32_t word, int k, bool vector, uint8_t* to) {
  constexpr int FRACTION = F::BITS == 32 ? 23 : F::GGML == 1 ? 10 : 7, BIAS = F::GGML == 1 ? 15 : 127;
  const uint32_t fraction = (1u << FRACTION) - 1, sign = 1u << (F::BITS - 1);
  const uint32_t exponent = uint32_t(BIAS + (vector ? 0 : hashed_exponent<F>(k))) << FRACTION;
  const uint32_t bits = exponent | (word & (vector ? fraction >> 2 : fraction | sign));
  for (int i = 0; i < F::SIZE; i++) to[i] = uint8_t(bits >> 8 * i);
}

// A block: hashed bytes, whose scale (and offset, against the levels' middle) gets its exponent; of 8 bits no level is -128.
template <class F>
__device__ inline void hashed_block(uint32_t key, uint32_t block, int k, uint8_t* to) {
  constexpr int WORDS = (F::SIZE + 3) / 4;
  for (int w = 0; w < WORDS; w++) {
    const uint32_t word = hashed_word(key, block * WORDS + w);
    for (int i = 0; i < 4 && w * 4 + i < F::SIZE; i++) to[w * 4 + i] = uint8_t(word >> 8 * i);
  }
  for (int i = 0; F::BITS == 8 && i < F::BLOCK; i++) {
    if (to[F::LEVELS + i] == 128) to[F::LEVELS + i] = 129;
  }
  const int exponent = hashed_exponent<F>(k);
  to[F::SCALE + 1] = hashed_half(exponent, to[F::SCALE + 1]);
  if constexpr (F::OFFSET >= 0) {
    const int sign = F::SCALES >= 0 ? 0 : 128;
    to[F::OFFSET + 1] = uint8_t(sign | hashed_half(exponent + F::BITS - 1, to[F::OFFSET + 1]));
  }
}

// Blocks of a synthetic tensor with rows of k as a checkpoint stores them, from block `first` on: a thread a block.
template <class F>
__global__ void fill_hashed(uint32_t key, size_t first, size_t blocks, int k, bool vector, uint8_t* raw) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= blocks) return;
  if constexpr (F::BLOCK == 1) {
    hashed_element<F>(hashed_word(key, uint32_t(first + i)), k, vector, raw + i * F::SIZE);
  } else {
    hashed_block<F>(key, uint32_t(first + i), k, raw + i * F::SIZE);
  }
}
