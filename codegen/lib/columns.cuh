// Sum of N values `stride` apart: the adjacent-first binary tree; a sum of 2^l waits for its pair in waiting[l].
template <int N>
__device__ inline float column_sum(const float* value, int stride) {
  float waiting[32];
  for (int i = 0; i < N; i++) {
    float v = value[size_t(i) * stride];
    int level = 0;
    for (; i >> level & 1; level++) v = waiting[level] + v;
    waiting[level] = v;
  }
  float total = -0.0f;  // what pads to a power of two adds nothing, so halves that wait need no partner
  for (int level = 0; level < 31; level++) {
    if (N >> level & 1) total = waiting[level] + total;
  }
  return total;
}

// Integers wrap, so their order does not matter.
template <int N, class T>
__device__ inline T column_sum(const T* value, int stride) {
  T total = 0;
  for (int i = 0; i < N; i++) total = add_wrap(total, value[size_t(i) * stride]);
  return total;
}

// The greatest of N values `stride` apart; NaN wins.
template <int N>
__device__ inline float column_max(const float* value, int stride) {
  float top = value[0];
  for (int i = 1; i < N; i++) top = max_of(top, value[size_t(i) * stride]);
  return top;
}

template <int N, class T>
__device__ inline T column_max(const T* value, int stride) {
  T top = value[0];
  for (int i = 1; i < N; i++) top = value[size_t(i) * stride] > top ? value[size_t(i) * stride] : top;
  return top;
}

// Where the first of the greatest of N values `stride` apart is.
template <int N, class T>
__device__ inline int column_argmax(const T* value, int stride) {
  Best<T> best{value[0], 0};
  for (int i = 1; i < N; i++) best = first_of(best, Best<T>{value[size_t(i) * stride], i});
  return best.index;
}
