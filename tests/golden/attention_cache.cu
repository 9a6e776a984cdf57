// attention_cache.model, compiled by monocu for no checkpoint
// SPDX-License-Identifier: Apache-2.0 (this file is generated: it is yours)
//
// numerics int8, cache f16, at most 4 rows a step
//   nvcc -std=c++17 -O3 -fmad=false -lineinfo -gencode=arch=compute_90a,code=sm_90a attention_cache.cu
//   ncu --set full --import-source yes ./a.out ...
//
// kernel                                       launches
// heads                                        1
// attention                                    2
//
// weights 0 bytes, buffers 14336 bytes, caches 256 bytes a position of a sequence
#include <cstdint>

// What one step works on, on the device; kernels read the true counts here.
constexpr int MAX_ROWS = 4;    // rows of a step, at most
constexpr int MAX_WANTED = 4;  // of them with results
constexpr int MAX_SEQS = 4;    // sequences at once
struct Step {
  int rows, wanted;         // T, R; they stay while a step runs, so that kernels may read them at once
  int token[MAX_ROWS];      // of each row: its token,
  int seq[MAX_ROWS];        // its sequence,
  int pos[MAX_ROWS];        // its position there
  int want[MAX_WANTED];     // the row of each wanted result
  int pages_per_seq;
  int* pages;               // [MAX_SEQS][pages_per_seq]: which page of a cache holds 64 positions of a sequence
};

// (helpers)

// ---- kernels, in the order of their launches

// attention_cache.model:7  kv.k = append(kv.k, rope(k, 10000.0))
// attention_cache.model:8  kv.v = append(kv.v, v)
// attention_cache.model:9  turned = rope(q, 10000.0)
//   kernel head_epilogue(k: f32[4, 2, 32], r: rows[4], k_2: cache_f16[2, 32], v: f32[4, 2, 32], v_2: cache_f16[2, 32], q: f32[4, 6, 32]) {
//     rope: f32[4, 2, 32] = rope(k, r, theta=10000.0)
//     cast: f16[4, 2, 32] = cast(rope, dtype=f16)
//     k_3: cache_f16[2, 32] = append(k_2, cast, r)
//     cast_2: f16[4, 2, 32] = cast(v, dtype=f16)
//     v_3: cache_f16[2, 32] = append(v_2, cast_2, r)
//     turned: f32[4, 6, 32] = rope(q, r, theta=10000.0)
//     return k_3, v_3, turned
//   }
template <int HD, int WARPS, int H0, int H1, int H2>
__global__ void __launch_bounds__(32 * WARPS) heads(const Step* step, const float* k_2, uint16_t* k_out, const float* v_2, uint16_t* v_out, const float* q, float* turned_out) {
  constexpr int PAIRS = 16;
  static constexpr double RADIANS[] = {  // a position: theta^(-2i / dims) / factor
      0x1.0000000000000p+0, 0x1.1feb33c1c381ep-1, 0x1.43d136248490fp-2, 0x1.6c310e3769f3fp-3,
      0x1.999999999999ap-4, 0x1.ccab8602d2697p-5, 0x1.030dc4ea03a72p-5, 0x1.235a71c5ee5ccp-6,
      0x1.47ae147ae147bp-7, 0x1.7089380241edfp-8, 0x1.9e7c6e43390b7p-9, 0x1.d22a4fa316facp-10,
      0x1.0624dd2f1a9fcp-10, 0x1.26d42cce9b24cp-11, 0x1.4b96be9c2da2cp-12, 0x1.74eea61c12623p-13,
  };
  grid_dependency_wait();
  const int row = blockIdx.x, warp = threadIdx.x / 32, pos = step->pos[row];
  if (row >= 4) return;
  auto& s = shared<HeadsShared<HD, PAIRS, WARPS>>();
  fill_turns(s.turns, RADIANS, nullptr, pos);
  __syncthreads();
  const int page = step->pages[size_t(step->seq[row]) * step->pages_per_seq + pos / PAGE];
  int head = blockIdx.y * WARPS + warp;  // of k, then of v, then of turned
  if (head < H0) {
    const size_t at = (size_t(row) * H0 + head) * HD;
    float k[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { k[i] = k_2[at + d]; });
    turn_head<HD, PAIRS, false>(k, s.exchange[warp], s.turns);
    uint16_t* entry = cache_page<H0, HD>(k_out, page, head) + pos % PAGE * HD;
    each_value<HD, 32>([&](int i, int d) { entry[d] = float_to_half(k[i]); });
    return;
  }
  head -= H0;
  if (head < H1) {
    const size_t at = (size_t(row) * H1 + head) * HD;
    float v[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { v[i] = v_2[at + d]; });
    uint16_t* entry = cache_page<H1, HD>(v_out, page, head) + pos % PAGE * HD;
    each_value<HD, 32>([&](int i, int d) { entry[d] = float_to_half(v[i]); });
    return;
  }
  head -= H1;
  if (head < H2) {
    const size_t at = (size_t(row) * H2 + head) * HD;
    float turned[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { turned[i] = q[at + d]; });
    turn_head<HD, PAIRS, false>(turned, s.exchange[warp], s.turns);
    each_value<HD, 32>([&](int i, int d) { turned_out[at + d] = turned[i]; });
  }
}

// attention_cache.model:10  return all = attention(turned, kv.k, kv.v), near = attention(turned, kv.k, kv.v, window=2)
//   all: f32[4, 192] = attention(turned, kv.k_2, kv.v_2, r)
template <int H, int KV, int HD, int WINDOW, int WARPS, int SPLITS>
__global__ void __launch_bounds__(32 * WARPS) attention(const Step* step, const float* q, const uint16_t* k, const uint16_t* v, float* y_out_out) {
  grid_dependency_wait();
  const int row = blockIdx.x, head = blockIdx.y, kv = head / (H / KV), warp = threadIdx.x / 32;
  if (row >= 4) return;
  const int* stored = step->pages + size_t(step->seq[row]) * step->pages_per_seq;
  const int end = step->pos[row] + 1, first = WINDOW > 0 ? max(0, end - WINDOW) : 0;
  const int pages = (end + PAGE - 1) / PAGE;
  int page = first / PAGE;
  const bool alone = SPLITS == 1 || 4 > 1 || pages - page <= WARPS;  // else SPLITS blocks share the pages
  if (alone && blockIdx.z > 0) return;
  auto& s = shared<AttentionShared<uint16_t, HD, WARPS>>();
  const size_t at = (size_t(row) * H + head) * HD;
  for (int d = threadIdx.x; d < HD; d += 32 * WARPS) s.q[d] = q[at + d];
  __syncthreads();
  auto score = [](float dot) { return dot * 0.17677669f; };
  auto attend = [&](int mine, PagePart part) {
    const uint16_t* key = cache_page<KV, HD>(k, stored[mine], kv);
    const uint16_t* value = cache_page<KV, HD>(v, stored[mine], kv);
    attend_page(s.q, s.page[warp], key, value, max(0, first - mine * PAGE), min(PAGE, end - mine * PAGE), score, part);
  };
  Attended result;
  if constexpr (SPLITS > 1) {
    if (!alone) {
      auto& all = shared_heads<H, HD>.head[head];
      const int count = min(SHARED_PAGES, pages - page);
      for (int p = warp * SPLITS + int(blockIdx.z); p < count; p += SPLITS * WARPS) attend(page + p, all.parts.part(p));
      if (!arrives_last(&all.arrived, SPLITS, &s.last)) return;
      for (int p = 0; p < count; p += 32) fold_pages(s, all.parts, p, min(32, count - p), result);
      page += count;
    }
  }
  for (int round = 0; page < pages; page += WARPS, round++) {
    const int mine = page + warp, count = min(WARPS, pages - page);
    auto& parts = s.round[round % 2];
    if (mine < pages) attend(mine, parts.part(warp));
    __syncthreads();
    fold_pages(s, parts, 0, count, result);
  }
  if (const int d = threadIdx.x; d < HD) {
    const float y = end > first ? result.sum / result.total : 0.0f;
    y_out_out[at + d] = y;
  }
}

#ifndef __CUDACC_RTC__
// ---- tables

inline constexpr const char* PROGRAM = "attention_cache";
inline constexpr const char* NUMERICS = "int8";
inline constexpr const char* KV = "f16";
inline constexpr int VOCAB = 0;
inline constexpr int TRAINED_CONTEXT = 0;  // tokens; 0: not said
inline constexpr size_t WEIGHT_BYTES = 0;
inline constexpr size_t BUFFER_BYTES = 14336;
inline constexpr size_t CACHE_BYTES_PER_POSITION = 256;
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
    {"turned", 0, 1, "f32", 3, {4, 6, 32}, 3072, 0, 0},
    {"all", 0, 1, "f32", 2, {4, 192}, 6144, 1, 0},
    {"near", 0, 1, "f32", 2, {4, 192}, 9216, 2, 0},
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
inline constexpr double R_LITERAL[] = {0x0.0p+0, 0x0.0p+0, 0x0.0p+0, 0x1.0000000000000p+0, 0x1.0000000000000p+0, 0x0.0p+0, 0x0.0p+0, 0x1.0000000000000p+1};
inline constexpr Input INPUTS[] = {
    {{"q", 0, 1, "f32", 3, {4, 6, 32}, 0, -1, 0}, 0, 0.0, nullptr, nullptr},
    {{"k", 0, 1, "f32", 3, {4, 2, 32}, 13312, -1, 0}, 0, 0.0, nullptr, nullptr},
    {{"v", 0, 1, "f32", 3, {4, 2, 32}, 12288, -1, 0}, 0, 0.0, nullptr, nullptr},
    {{"r", 0, 1, "rows", 1, {4}, 0, -1, 0}, 2, 0.0, R_LITERAL, nullptr},
};
inline constexpr int INPUT_COUNT = 4;
inline constexpr Value RESULTS[] = {
    {"all", 0, 1, "f32", 2, {4, 192}, 6144, -1, 0},
    {"near", 0, 1, "f32", 2, {4, 192}, 9216, -1, 0},
};
inline constexpr int RESULT_COUNT = 2;

struct KernelInfo {
  const char* name;
  int launches;  // a step
};
inline constexpr KernelInfo KERNELS[] = {
    {"heads", 1},
    {"attention", 2},
};
inline constexpr int KERNEL_COUNT = 2;

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
  float* q;  // q: f32[4, 6, 32]
  float* k;  // k: f32[4, 2, 32]
  float* v;  // v: f32[4, 2, 32]
  float* turned;  // turned: f32[4, 6, 32]
  float* all;  // all: f32[4, 192]
  float* near;  // near: f32[4, 192]
  explicit Buffers(uint8_t* at) {
    q = (float*)(at + 0);
    k = (float*)(at + 13312);
    v = (float*)(at + 12288);
    turned = (float*)(at + 3072);
    all = (float*)(at + 6144);
    near = (float*)(at + 9216);
  }
};

// A cache of one layer, or of each: bytes a position of those before it, and of one.
struct CacheFamily {
  size_t before, each;
};
inline constexpr CacheFamily KV_K_CACHE = {0, 128};  // kv.k cache_f16[2, 32]
inline constexpr CacheFamily KV_V_CACHE = {128, 128};  // kv.v cache_f16[2, 32]
template <class T>
T* cache(const Device& d, const CacheFamily& f, int l = 0) {
  return (T*)(d.cache + (f.before + l * f.each) * d.positions);
}

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// The first launch of a step waits for the step before it: those behind may read the Step table, and what earlier steps
// left in the caches, before their own grid_dependency_wait.
template <class... P, class... A>
void run(Device& d, void (*kernel)(P...), dim3 grid, int threads, size_t shared, A... args) {
  launch(d.stream, kernel, Shape{grid, dim3(threads), shared, d.launches > 0}, args...);
  const int number = d.launches++;
  if (d.after) d.after(d, number);
}

// Every launch of a step of `rows` rows, `wanted` of them with results.
void launch_all(Device& d, [[maybe_unused]] int rows, [[maybe_unused]] int wanted) {
  const Buffers b(d.buffers);
  // kv.k_2: cache_f16[2, 32], kv.v_2: cache_f16[2, 32], turned: f32[4, 6, 32]
  run(d, heads<32, 4, 2, 2, 6>, dim3(4, 3), 128, sizeof(HeadsShared<32, 16, 4>),
      d.step, b.k, cache<uint16_t>(d, KV_K_CACHE), b.v, cache<uint16_t>(d, KV_V_CACHE), b.q, b.turned);
  // all: f32[4, 192]
  run(d, attention<6, 2, 32, 0, 8, 1>, dim3(4, 6), 256, sizeof(AttentionShared<uint16_t, 32, 8>),
      d.step, b.turned, cache<uint16_t>(d, KV_K_CACHE), cache<uint16_t>(d, KV_V_CACHE), b.all);
  // near: f32[4, 192]
  run(d, attention<6, 2, 32, 2, 8, 1>, dim3(4, 6), 256, sizeof(AttentionShared<uint16_t, 32, 8>),
      d.step, b.turned, cache<uint16_t>(d, KV_K_CACHE), cache<uint16_t>(d, KV_V_CACHE), b.near);
}

void forward(Device& d, int rows, int wanted) {
  launch_all(d, rows, wanted);
}

// (the driver)

#endif  // __CUDACC_RTC__
