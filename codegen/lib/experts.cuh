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

// The K greatest of a row of N scores, greatest first, with where they stand; a warp holds both as each_value does.
template <int N, int K, int COUNT, int PICKS>
__device__ inline void top_k_of_warp(const float (&score)[COUNT], float (&value)[PICKS], int (&index)[PICKS]) {
  Best<float> pick{0.0f, -1};
  for (int k = 0; k < K; k++) {
    Best<float> best = no_best<float>();
    each_value<N, 32>([&](int i, int d) {
      const Best<float> next{score[i], d};
      if (pick.index < 0 || comes_first(pick, next)) best = first_of(best, next);
    });
    pick = best_of_warp(best);
    each_value<K, 32>([&](int i, int d) {
      if (d != k) return;
      value[i] = pick.value;
      index[i] = pick.index;
    });
  }
}
