// A value's place among all floats, above its index: NaN is the greatest, both zeros are equal, the lower index counts more.
__device__ inline long long choice_key(float value, int index) {
  const int bits = int(bits_of(value)), place = bits < 0 ? -(bits & 0x7fffffff) : bits;
  return (value != value ? 0x7fffffffll : (long long)place) * 0x100000000ll + (0xffffffffll - index);
}

// The index that a key has.
__device__ inline int index_of_key(long long key) { return int(0xffffffffll - (key & 0xffffffffll)); }

// The greatest key of as many neighbouring lanes, a power of two; every one of them gets it.
template <int LANES>
__device__ inline long long greatest_key(long long key) {
  for (int step = 1; step < LANES; step *= 2) {
    const long long other = __shfl_xor_sync(~0u, key, step);
    if (other > key) key = other;
  }
  return key;
}

// The key of a group of 32 values of a row of N, one a lane.
template <int N>
__device__ inline void choice_key_warp(float value, int row, int n, long long* keys) {
  const long long key = greatest_key<32>(choice_key(value, n));
  if (n % 32 == 0) keys[(size_t(row) * N + n) / 32] = key;
}

// The keys of the groups of 32 columns that this thread holds values of: 8 threads share one.
template <int D, int COUNT>
__device__ inline void choice_keys_of_values(const float (&value)[COUNT], int row, int first, int stride, long long* keys) {
  for (int c = 0; c < COUNT / 4; c++) {
    const int d = first + c * stride;
    long long key = -0x7fffffffffffffffll - 1;
    for (int e = 0; e < 4; e++) {
      const long long other = choice_key(value[4 * c + e], d + e);
      if (d + e < D && other > key) key = other;
    }
    key = greatest_key<8>(key);
    if (d < D && threadIdx.x % 8 == 0) keys[size_t(row) * ((D + 31) / 32) + d / 32] = key;
  }
}

// The same of a whole row, as each_value holds it.
template <int D, int THREADS, int COUNT>
__device__ inline void choice_keys_row(const float (&value)[COUNT], int row, long long* keys) {
  choice_keys_of_values<D>(value, row, int(threadIdx.x) * 4, 4 * THREADS, keys);
}

// The same of a chunk of a row, as each_value_of_chunk holds it.
template <int D, int THREADS, int COUNT>
__device__ inline void choice_keys_chunk(const float (&value)[COUNT], int row, long long* keys) {
  choice_keys_of_values<D>(value, row, (int(blockIdx.y) * THREADS + int(threadIdx.x)) * 4, 0, keys);
}
