// norm_matmul_softmax.model, compiled by monocu for no checkpoint
// SPDX-License-Identifier: Apache-2.0 (this file is generated: it is yours)
//
// numerics f32, cache f32, at most 1 rows a step
//   nvcc -std=c++17 -O3 -fmad=false -lineinfo -gencode=arch=compute_90a,code=sm_90a norm_matmul_softmax.cu
//   ncu --set full --import-source yes ./a.out ...
//
// kernel                                       launches
// rmsnorm                                      1
// repack_input                                 1
// linear_w_2                                   1
// softmax                                      1
//
// weights 0 bytes, buffers 1598464 bytes, caches 0 bytes a position of a sequence
#include <cstdint>

// What one step works on, on the device; kernels read the true counts here.
constexpr int MAX_ROWS = 1;    // rows of a step, at most
constexpr int MAX_WANTED = 1;  // of them with results
constexpr int MAX_SEQS = 1;    // sequences at once
struct Step {
  int rows, wanted;         // T, R; they stay while a step runs, so that kernels may read them at once
  int token[MAX_ROWS];      // of each row: its token,
  int seq[MAX_ROWS];        // its sequence,
  int pos[MAX_ROWS];        // its position there
  int want[MAX_WANTED];     // the row of each wanted result
  int pages_per_seq;
  int* pages;               // [MAX_SEQS][pages_per_seq]: which page of a cache holds 64 positions of a sequence
};

// f32: plain elements; byte offsets of its parts, -1: none.
struct F32 {
  static constexpr int GGML = 0, BLOCK = 1, SIZE = 4, BITS = 32;
  static constexpr int SCALE = -1, OFFSET = -1, LEVELS = 0, ZERO = 0;
  static constexpr int SCALES = -1, GROUP = 32, HIGH = -1, RUN = 16;
};

// (helpers)

// ---- kernels, in the order of their launches

// norm_matmul_softmax.model:5  y = linear(rmsnorm(x, g, 1e-6), w)
//   rmsnorm: f32[4, 256] = rmsnorm(x, g, eps=1e-06)
template <int D, int THREADS, int PER>
__global__ void __launch_bounds__(THREADS) rmsnorm(const float* x, const float* w, float* y_out) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= PER) return;
  const size_t at = size_t(row) * D;
  float x_d[ROW_VALUES<D, THREADS>];
  each_value<D, THREADS>([&](int i, int d) {
    x_d[i] = x[at + d];
  });
  const float y_factor = rms_factor<D, THREADS>(x_d, 1.0e-6f);
  each_value<D, THREADS>([&](int i, int d) {
    const float w_d = w[d];
    const float y = (x_d[i] * y_factor) * w_d;
    y_out[at + d] = y;
  });
}

template <class F, int M, int N, int K>
__global__ void __launch_bounds__(128) repack_input(const uint8_t* raw, uint8_t* tiles) {
  grid_dependency_wait();
  repack_thread<F>(raw, 0, M, N, K, tiles);
}

// norm_matmul_softmax.model:5  y = linear(rmsnorm(x, g, 1e-6), w)
//   y: f32[4, 512] = linear(rmsnorm, w)
template <int K, int ROW_TILES, int WARPS, int ROWS, class W0, int N0>
__global__ void __launch_bounds__(32 * WARPS) linear_w_2(const float* x, const uint8_t* w_2, float* w_2_out) {
  using L = LinearShape<K, ROW_TILES, WARPS>;
  grid_dependency_trigger();
  const int rows = 4, first = int(blockIdx.y) * ROWS;
  if (first >= rows) return grid_dependency_wait();
  auto& s = shared<LinearShared<L, ROWS, 1, 1>>();
  const int block = blockIdx.x;
  const auto w = first_tiles<W0, N0, K, L>(block, {w_2});
  grid_dependency_wait();
  partial_dots<W0, N0, K, L, ROWS>(s.partials, block, {w_2}, w, x, first, rows);
  __syncthreads();
  each_output<N0, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const float dot = folded_dot(s.partials[0], r, output);
    w_2_out[size_t(first + r) * N0 + n] = dot;
  });
}

// norm_matmul_softmax.model:6  return softmax(y)
//   softmax: f32[4, 512] = softmax(y)
template <int D, int THREADS, int PER>
__global__ void __launch_bounds__(THREADS) softmax(const float* x, float* y_out) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= PER) return;
  const size_t at = size_t(row) * D;
  float x_d[ROW_VALUES<D, THREADS>];
  float y_exp[ROW_VALUES<D, THREADS>];
  each_value<D, THREADS>([&](int i, int d) {
    x_d[i] = x[at + d];
  });
  const float y_max = row_max<D, THREADS>(x_d);
  each_value<D, THREADS>([&](int i, int) {
    y_exp[i] = exp32(x_d[i] - y_max);
  });
  const float y_sum = row_sum<D, THREADS>(y_exp);
  each_value<D, THREADS>([&](int i, int d) {
    const float y = y_max == -infinity() ? 0.0f : y_exp[i] / y_sum;
    y_out[at + d] = y;
  });
}

#ifndef __CUDACC_RTC__
// ---- tables

inline constexpr const char* PROGRAM = "norm_matmul_softmax";
inline constexpr const char* NUMERICS = "f32";
inline constexpr const char* KV = "f32";
inline constexpr int VOCAB = 0;
inline constexpr int TRAINED_CONTEXT = 0;  // tokens; 0: not said
inline constexpr size_t WEIGHT_BYTES = 0;
inline constexpr size_t BUFFER_BYTES = 1598464;
inline constexpr size_t CACHE_BYTES_PER_POSITION = 0;
inline constexpr size_t LOGITS = 0;
inline constexpr size_t NEXT = 0;

// A tensor of the checkpoint, or one of each layer: `%d` is first .. first + count - 1.
struct Family {
  const char* name;
  int first, count;
  uint32_t type;        // ggml's number
  const char* format;
  int dims;
  uint64_t shape[3];    // outermost first
  size_t offset, stride;  // bytes in the weights' allocation
  int layout;           // 0: plain f32; 1: tiles
};
inline constexpr int WEIGHT_COUNT = 0;
inline constexpr Family WEIGHTS[] = {{}};

// A value that is stored: where, and by which launch (`launch + i * period` for layer first + i); -1 and -2 in a shape are T and R.
struct Value {
  const char* name;
  int first, count;
  const char* dtype;
  int rank;
  int64_t shape[4];
  size_t offset;  // bytes in the buffers
  int launch, period;
};
inline constexpr Value VALUES[] = {
    {"rmsnorm", 0, 1, "f32", 2, {4, 256}, 1593344, 0, 0},
    {"y", 0, 1, "f32", 2, {4, 512}, 1581056, 2, 0},
    {"softmax", 0, 1, "f32", 2, {4, 512}, 1572864, 3, 0},
};
inline constexpr int VALUE_COUNT = 3;

// A block format of the inputs: weights and bytes of a block, weights that share a scale, bits of a level, byte offsets of
// a block's parts (-1: none); bytes that hold a run's low bits.
struct Blocks {
  const char* dtype;
  int weights, bytes, group, bits, scale, offset, scales, levels, high, zero, run;
};
inline constexpr Blocks BLOCKS[] = {
    {},
};

// An input: filled by the pattern (0), one number (1) or literals (2); of integers these are `integers`.
struct Input {
  Value value;
  int fill;
  double scalar;
  const double* literals;
  const long long* integers;
};
inline constexpr Input INPUTS[] = {
    {{"x", 0, 1, "f32", 2, {4, 256}, 1589248, -1, 0}, 0, 0.0, nullptr, nullptr},
    {{"g", 0, 1, "f32", 1, {256}, 1597440, -1, 0}, 1, 0x1.0000000000000p+0, nullptr, nullptr},
    {{"w", 0, 1, "f32", 2, {512, 256}, 1048576, -1, 0}, 0, 0.0, nullptr, nullptr},
};
inline constexpr int INPUT_COUNT = 3;
inline constexpr Value RESULTS[] = {
    {"softmax", 0, 1, "f32", 2, {4, 512}, 1572864, -1, 0},
};
inline constexpr int RESULT_COUNT = 1;

struct KernelInfo {
  const char* name;
  int launches;  // a step
};
inline constexpr KernelInfo KERNELS[] = {
    {"rmsnorm", 1},
    {"repack_input", 1},
    {"linear_w_2", 1},
    {"softmax", 1},
};
inline constexpr int KERNEL_COUNT = 4;

// ---- the step

// Three allocations and a stream; `after` is told of each launch.
struct Device {
  cudaStream_t stream;
  uint8_t* weights;
  uint8_t* buffers;
  uint8_t* cache;
  size_t positions;  // of a cache, all sequences together
  Step* step;
  int launches;
  void (*after)(Device&, int launch);
};

// The parts of a quantized value of `count` elements at `at`.
inline size_t part_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Activations: what each buffer holds, at its largest.
struct Buffers {
  float* x;  // x: f32[4, 256]
  float* g;  // g: f32[256]
  float* w;  // w: f32[512, 256]
  float* rmsnorm;  // rmsnorm: f32[4, 256]
  uint8_t* w_tiles;  // w: f32[512, 256]
  float* y;  // y: f32[4, 512]
  float* softmax;  // softmax: f32[4, 512]
  explicit Buffers(uint8_t* at) {
    x = (float*)(at + 1589248);
    g = (float*)(at + 1597440);
    w = (float*)(at + 1048576);
    rmsnorm = (float*)(at + 1593344);
    w_tiles = (uint8_t*)(at + 0);
    y = (float*)(at + 1581056);
    softmax = (float*)(at + 1572864);
  }
};

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// One behind another: what is read before grid_dependency_wait is no weight of a checkpoint here, a launch makes it.
template <class... P, class... A>
void run(Device& d, void (*kernel)(P...), dim3 grid, int threads, size_t shared, A... args) {
  launch(d.stream, kernel, Shape{grid, dim3(threads), shared, false}, args...);
  const int number = d.launches++;
  if (d.after) d.after(d, number);
}

// Every launch of a step of `rows` rows, `wanted` of them with results.
void launch_all(Device& d, [[maybe_unused]] int rows, [[maybe_unused]] int wanted) {
  const Buffers b(d.buffers);
  // rmsnorm: f32[4, 256]
  run(d, rmsnorm<256, 64, 4>, dim3(4), 64, 16,
      b.x, b.g, b.rmsnorm);
  // w: f32[512, 256]
  run(d, repack_input<F32, 512, 512, 256>, dim3(16), 128, 0,
      (const uint8_t*)b.w, b.w_tiles);
  // y: f32[4, 512]
  run(d, linear_w_2<256, 1, 1, 4, F32, 512>, dim3(ceil_div(512, 8), ceil_div(4, 4)), 32, 4 * 100,
      b.rmsnorm, b.w_tiles, b.y);
  // softmax: f32[4, 512]
  run(d, softmax<512, 128, 4>, dim3(4), 128, 32,
      b.y, b.softmax);
}

void forward(Device& d, int rows, int wanted) {
  launch_all(d, rows, wanted);
}

// (the driver)

#endif  // __CUDACC_RTC__
