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
