// A value and where it stands in its row.
template <class T>
struct Best {
  T value;
  int index;
};

// What every other one comes before: -inf or the least integer, beyond every index.
template <class T>
__device__ inline Best<T> no_best() {
  if constexpr (T(0.5f) != T(0)) {
    return {-infinity(), 0x7fffffff};
  } else {
    return {T(1ull << (8 * sizeof(T) - 1)), 0x7fffffff};
  }
}

// Whether a is greater: NaN is the greatest of all, and +0 is no greater than -0.
__device__ inline bool is_greater(float a, float b) { return a > b || (a != a && b == b); }

template <class T>
__device__ inline bool is_greater(T a, T b) {
  return a > b;
}

// The order of choices: greatest first, equal ones by the lowest index.
template <class T>
__device__ inline bool comes_first(Best<T> a, Best<T> b) {
  return is_greater(a.value, b.value) || (!is_greater(b.value, a.value) && a.index < b.index);
}

template <class T>
__device__ inline Best<T> first_of(Best<T> a, Best<T> b) {
  return comes_first(b, a) ? b : a;
}

template <class T>
__device__ inline Best<T> best_of_warp(Best<T> best) {
  for (int step = 1; step < 32; step *= 2) {
    const T value = __shfl_xor_sync(~0u, best.value, step);
    best = first_of(best, {value, __shfl_xor_sync(~0u, best.index, step)});
  }
  return best;
}

// What the warps of a block tell each other.
template <class T>
struct BestOfWarps {
  Best<T> best[32];
};

// The first of all that a block's threads hold; every thread gets it.
template <int THREADS, class T>
__device__ inline Best<T> best_of_block(Best<T> best) {
  best = best_of_warp(best);
  if constexpr (THREADS > 32) {
    auto& s = shared<BestOfWarps<T>>();
    const int lane = threadIdx.x % 32;
    if (lane == 0) s.best[threadIdx.x / 32] = best;
    __syncthreads();
    best = best_of_warp(lane < THREADS / 32 ? s.best[lane] : no_best<T>());
    __syncthreads();
  }
  return best;
}

// The first of a thread's elements of N: its own index and every THREADS-th from there, eight loads at a time.
template <int N, int THREADS, class T>
__device__ inline Best<T> best_of_stride(const T* value) {
  const int first = min(int(threadIdx.x), N - 1);
  Best<T> best{value[first], first};
  for (int start = first; start < N; start += 8 * THREADS) {
    T next[8];
    UNROLL
    for (int i = 0; i < 8; i++) next[i] = value[min(start + i * THREADS, N - 1)];
    UNROLL
    for (int i = 0; i < 8; i++) {  // indices only grow, so that an equal one does not come first
      if (is_greater(next[i], best.value)) best = {next[i], min(start + i * THREADS, N - 1)};
    }
  }
  return best;
}

// A thread's elements of a row of N, every THREADS-th: in registers where they are few.
template <int N, int THREADS>
struct StrideValues {
  static constexpr int EACH = (N + THREADS - 1) / THREADS, HELD = EACH <= 32 ? EACH : 1;
  const float* row;
  float held[HELD];
  __device__ StrideValues(const float* row) : row(row) {
    UNROLL
    for (int e = 0; e < HELD; e++) held[e] = row[min(e * THREADS + int(threadIdx.x), N - 1)];
  }
  // The first of them that comes after `pick`; all come after index -1.
  __device__ Best<float> best_after(Best<float> pick) const {
    Best<float> best = no_best<float>();
    if constexpr (EACH == HELD) {
      UNROLL
      for (int e = 0; e < EACH; e++) consider(held[e], e * THREADS + int(threadIdx.x), pick, best);
    } else {
      for (int i = threadIdx.x; i < N; i += THREADS) consider(row[i], i, pick, best);
    }
    return best;
  }
  __device__ static void consider(float value, int i, Best<float> pick, Best<float>& best) {
    const Best<float> next{value, i};
    if (i < N && (pick.index < 0 || comes_first(pick, next))) best = first_of(best, next);
  }
};
