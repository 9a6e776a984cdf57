// Bytes of one expert's matrix [N, K] in tiles.
template <class W, int N, int K>
constexpr size_t EXPERT_BYTES = size_t((N + 7) / 8) * ((K + 511) / 512) * Tile<W>::BYTES;

// The weighted sum of a row's P picks at column n: a chain of fused multiply-adds in the order of the picks.
template <int P, int N>
__device__ inline float combined(const float* y, const float* share, int row, int n) {
  const float* part = y + size_t(row) * P * N + n;
  const float* weight = share + size_t(row) * P;
  float total = weight[0] * part[0];
  UNROLL
  for (int p = 1; p < P; p++) total = fmaf(weight[p], part[size_t(p) * N], total);
  return total;
}

// A score's place in the order of choices: a greater one has a greater integer, equal ones (NaNs too) have the same.
__device__ inline int order_of(float score) {
  const int bits = int(bits_of(score == score ? score + 0.0f : not_a_number()));  // -0 is 0
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}

// The K greatest of a row of N scores, greatest first and equal ones by the lowest index, with where they stand; a warp
// holds both as each_value does.
template <int N, int K, int COUNT, int PICKS>
__device__ inline void top_k_of_warp(const float (&score)[COUNT], float (&value)[PICKS], int (&index)[PICKS]) {
  constexpr int TAKEN = int(0x80000000);  // below every score's place
  int order[COUNT];
  each_value<N, 32>([&](int i, int) { order[i] = order_of(score[i]); });
  for (int k = 0; k < K; k++) {
    int best = TAKEN, at = N;
    float held = 0.0f;
    each_value<N, 32>([&](int i, int d) {
      const bool greater = order[i] > best;  // columns only grow, so that an equal one does not come first
      best = greater ? order[i] : best;
      at = greater ? d : at;
      held = greater ? score[i] : held;
    });
    const int greatest = __reduce_max_sync(~0u, best);
    const int pick = -__reduce_max_sync(~0u, best == greatest ? -at : -N);
    const float picked = __shfl_sync(~0u, held, pick / 4 % 32);
    each_value<N, 32>([&](int i, int d) { order[i] = d == pick ? TAKEN : order[i]; });
    each_value<K, 32>([&](int i, int d) {
      value[i] = d == k ? picked : value[i];
      index[i] = d == k ? pick : index[i];
    });
  }
}
