// 16 rows and 16 columns of two matrices, 32 of K at a time.
template <class T>
struct MatmulTiles {
  T left[16][33], right[32][17];
};

// A dot of K steps, as it grows: f32 in segments of 128, integers wrapping.
template <class T>
struct Dot {
  T total = 0;
  __device__ void add(T a, T b, int) { total = add_wrap(total, mul_wrap(a, b)); }
  __device__ T value() const { return total; }
};

// One chain a segment: the first product is rounded, the others are fused; segments are added in order.
template <>
struct Dot<float> {
  float total = -0.0f, chain = -0.0f;  // -0.0 changes no first term
  __device__ void add(float a, float b, int k) {
    if (k % 128 == 0) {
      total = total + chain;
      chain = -0.0f;
    }
    chain = fmaf(a, b, chain);
  }
  __device__ float value() const { return total + chain; }
};

// Row m of left [rows, K] times column n of right [K, N], by a block of 16 x 16 threads of neighbouring m and n.
template <int N, int K, class T>
__device__ inline T tile_dot(const T* left, const T* right, int rows, int m, int n) {
  auto& s = shared<MatmulTiles<T>>();
  const int thread = threadIdx.x, first_m = m - thread / 16, first_n = n - thread % 16;
  Dot<T> dot;
  for (int first = 0; first < K; first += 32) {
    for (int i = thread; i < 512; i += 256) {
      const int am = first_m + i / 32, ak = first + i % 32, bk = first + i / 16, bn = first_n + i % 16;
      if (am < rows && ak < K) s.left[i / 32][i % 32] = left[size_t(am) * K + ak];
      if (bk < K && bn < N) s.right[i / 16][i % 16] = right[size_t(bk) * N + bn];
    }
    __syncthreads();
    for (int k = 0; k < 32 && first + k < K; k++) {
      dot.add(s.left[thread / 16][k], s.right[k][thread % 16], first + k);
    }
    __syncthreads();
  }
  return dot.value();
}
