// Times of projections of many rows; gpu_mma.py puts it behind the helpers and tests/cxx/linear_mma.cu, and cases behind it.
// `many_BUILD` are builds of linear_mma.cuh with this kernel, as it is and with a part taken out.
template <class W, int N, int K, class L, class X, int MIN>
__global__ void __launch_bounds__(L::THREADS, MIN) many(const uint8_t* weight, X x, int rows, float* y) {
  const int id = blockIdx.y * gridDim.x + blockIdx.x, first = id % gridDim.y * L::ROWS, block = id / gridDim.y;
  auto& s = shared<TileShared<L, X::WORDS, 1>>();
  const uint8_t* const weights[1] = {weight};
  tile_dots<W, N, K, L>(s, block, weights, x, first, rows);
  __syncthreads();
  each_output<N, L, L::ROWS>(block, first, rows, [&](int r, int n, int output) {
    y[size_t(first + r) * N + n] = s.dots[r][output];
  });
}

// ---- times
// Words and scales that are plausible: the kernels' time hardly depends on them, a GPU's clock does.
__global__ void fill_bytes(uint8_t* to, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    unsigned v = unsigned(i) * 2654435761u + seed;
    v = (v ^ v >> 15) * 2246822519u;
    to[i] = uint8_t((v >> 13) % 255 + 129);
  }
}
__global__ void fill_scales(uint8_t* weight, size_t tiles, int bytes, int levels) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < tiles * (bytes - levels) / 2; i += size_t(gridDim.x) * blockDim.x) {
    const size_t each = (bytes - levels) / 2;
    ((uint16_t*)(weight + i / each * bytes + levels))[i % each] = uint16_t(0x1400 + i * 2654435761u % 1024);
  }
}
__global__ void fill_floats(float* to, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) to[i] = 1e-3f * float(1 + i * 2654435761u % 1021);
}

template <class T>
T* device_array(size_t count) {
  T* at = nullptr;
  check(cudaMalloc(&at, count * sizeof(T)), "cudaMalloc");
  return at;
}

// A matrix and rows on the device, kept for all cases of a shape.
template <class W, class X, int N, int K>
struct Operands {
  uint8_t* weight;
  X x;
  float* y;
  static Operands& of(int rows) {
    static Operands made = make(2048);
    if (rows > 2048) exit(2);
    return made;
  }
  static Operands make(int rows) {
    Operands o;
    const size_t tiles = size_t(N / 8) * ((K + 511) / 512);
    o.weight = device_array<uint8_t>(tiles * Tile<W>::BYTES);
    fill_bytes<<<1024, 256>>>(o.weight, tiles * Tile<W>::BYTES, 1);
    fill_scales<<<1024, 256>>>(o.weight, tiles, Tile<W>::BYTES, Tile<W>::PIECES * 512);
    o.x.words = device_array<int8_t>(size_t(rows) * K);
    fill_bytes<<<1024, 256>>>((uint8_t*)o.x.words, size_t(rows) * K, 2);
    if constexpr (X::WORDS == 2) {
      o.x.low = device_array<int8_t>(size_t(rows) * K);
      fill_bytes<<<1024, 256>>>((uint8_t*)o.x.low, size_t(rows) * K, 3);
    }
    o.x.scales = device_array<float>(size_t(rows) * K / 32);
    o.x.sums = device_array<float>(size_t(rows) * K / 32);
    fill_floats<<<1024, 256>>>(o.x.scales, size_t(rows) * K / 32);
    fill_floats<<<1024, 256>>>(o.x.sums, size_t(rows) * K / 32);
    o.y = device_array<float>(size_t(rows) * N);
    check(cudaDeviceSynchronize(), "fill");
    return o;
  }
};

// Milliseconds of a launch: the median of 9 runs of `each` launches.
template <class Launch>
float milliseconds(Launch go, int each) {
  cudaEvent_t start, end;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int run = 0; run < 11; run++) {
    check(cudaEventRecord(start), "record");
    for (int i = 0; i < each; i++) go();
    check(cudaEventRecord(end), "record");
    check(cudaEventSynchronize(end), "a kernel");
    float ms;
    check(cudaEventElapsedTime(&ms, start, end), "elapsed");
    if (run >= 2) times.push_back(ms / each);
  }
  for (size_t i = 0; i < times.size(); i++) {
    for (size_t j = i + 1; j < times.size(); j++) {
      if (times[j] < times[i]) std::swap(times[i], times[j]);
    }
  }
  return times[times.size() / 2];
}

template <class... P, class... A>
void report(const char* name, int rows, double n, double k, size_t weight_bytes, void (*kernel)(P...), dim3 grid, int threads, size_t shared, A... args) {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, kernel), "attributes");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)), "shared memory");
  int resident = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared), "occupancy");
  const double ops = 2.0 * rows * n * k;
  const int each = ops > 2e10 ? 3 : 20;
  const float ms = milliseconds([&] { kernel<<<grid, threads, shared>>>(args...); }, each);
  printf("%-64s rows %4d: %8.4f ms %6.1f TOP/s %5.0f GB/s of weights | grid %ux%u, %d registers, %zu B local, %zu KB, %d blocks an SM\n", name, rows, ms,
         ops / ms / 1e9, weight_bytes / ms / 1e6, grid.x, grid.y, attributes.numRegs, attributes.localSizeBytes, shared >> 10, resident);
  fflush(stdout);
}

#define MANY(SPACE, W, X, N, K, R, O, WR, WO, D, MIN, ROWS)                                                               \
  {                                                                                                                       \
    using L = DotTile_##SPACE<R, O, WR, WO, D>;                                                                            \
    auto& o = Operands<W, X, N, K>::of(ROWS);                                                                             \
    report(#SPACE " " #W " " #X " " #N "x" #K " tile " #R "x" #O " warp " #WR "x" #WO " depth " #D " min " #MIN, ROWS, N, K, \
           size_t(N / 8) * ((K + 511) / 512) * Tile<W>::BYTES, many_##SPACE<W, N, K, L, X, MIN>,                           \
           dim3((N + O - 1) / O, (ROWS + R - 1) / R), L::THREADS, sizeof(TileShared_##SPACE<L, X::WORDS, 1>), o.weight, o.x, ROWS, o.y); \
  }

#define FEW(W, X, N, K, TILES, WARPS, R, ROWS)                                                                        \
  {                                                                                                                   \
    using L = LinearShape<K, TILES, WARPS>;                                                                           \
    auto& o = Operands<W, X, N, K>::of(ROWS);                                                                         \
    report("few rows: " #W " " #X " " #N "x" #K " " #R " rows a block, " #TILES " tiles, " #WARPS " warps", ROWS, N, K, \
           size_t(N / 8) * ((K + 511) / 512) * Tile<W>::BYTES, few<W, N, K, L, X, R>,                                 \
           dim3(L::blocks(N), (ROWS + R - 1) / R), L::THREADS, sizeof(LinearPartials<L, R>), o.weight, o.x, ROWS, o.y); \
  }

#define GROUP(W, X, N, K, D, ROWS)                                                                                      \
  {                                                                                                                     \
    auto& o = Operands<W, X, N, K>::of(ROWS);                                                                           \
    report("wgmma " #W " " #X " " #N "x" #K " depth " #D, ROWS, N, K, size_t(N / 8) * ((K + 511) / 512) * Tile<W>::BYTES, \
           group_kernel<W, N, K, X, D>, dim3(N / 128, (ROWS + 127) / 128), 256, sizeof(GroupShared<W, X, D>), \
           o.weight, o.x, ROWS, o.y);                                                                                   \
  }

// What a row form of few rows would take.
template <class W, int N, int K, class L, class X, int R>
__global__ void __launch_bounds__(L::THREADS) few(const uint8_t* weight, X x, int rows, float* y) {
  const int first = int(blockIdx.y) * R;
  if (first >= rows) return;
  auto& s = shared<LinearPartials<L, R>>();
  const Segment<W> w = first_segment<W, N, K, L>(blockIdx.x, weight);
  partial_dots<W, N, K, L, R>(s, blockIdx.x, weight, w, x, first, rows);
  __syncthreads();
  each_output<N, L, R>(blockIdx.x, first, rows, [&](int r, int n, int output) { y[size_t(first + r) * N + n] = folded_dot(s, r, output); });
}

// ---- the same by wgmma: outputs are a (64 a warpgroup's instruction, from registers), rows are b (16, from shared memory)
template <int STAGES>
struct GroupTile {
  static constexpr int ROWS = 128, WIDTH = 128, OUTPUTS = 128, DEPTH = STAGES, WEIGHTS_EACH = 1, WARPS = 8, THREADS = 256;
};

template <class W, class X, int DEPTH>
struct TileSegment<W, X, GroupTile<DEPTH>> {
  alignas(1024) int8_t words[X::WORDS][128][128];
  alignas(128) uint8_t levels[16][Tile<W>::PIECES][128];
  alignas(16) float scales[128][4], sums[W::OFFSET < 0 ? 1 : 128][4];
};

__device__ __forceinline__ void group_mma(int (&d)[8], const unsigned (&a)[4], uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, %12, p; }"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void group_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void group_wait(int (&d)[4][8]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
  UNROLL
  for (int i = 0; i < 32; i++) asm volatile("" : "+r"(d[i / 8][i % 8])::"memory");
}

// 16 rows' words of a block in shared memory: rows of 128 bytes, pieces swizzled as mode 1 has it.
__device__ __forceinline__ uint64_t rows_descriptor(const void* at) {
  const uint64_t place = unsigned(__cvta_generic_to_shared(at)) >> 4 & 0x3fff;
  return place | uint64_t(1) << 16 | uint64_t(64) << 32 | uint64_t(1) << 62;
}

// A warpgroup has 64 outputs and all 128 rows, 16 at a time: where those lie is the same for all threads.
template <class W, class X, int DEPTH>
__device__ inline void add_segment(float (&t)[16][4], const TileSegment<W, X, GroupTile<DEPTH>>& s, const WideScales<W, GroupTile<DEPTH>>& wide) {
  const int lane = threadIdx.x % 32, output = threadIdx.x / 32 * 16;
  unsigned a[4][4];
  const void* at[4];
  UNROLL
  for (int b = 0; b < 4; b++) at[b] = s.levels[output / 8 + lane / 8 % 2][b * 2 + lane / 16] + lane % 8 * 16;
  load_matrices(a, at);
  Four ws[2];
  UNROLL
  for (int half = 0; half < 2; half++) ws[half] = four_at(wide.d[output + half * 8], lane / 4 * 16);
  int d[2][4][8];
  const uint64_t rows = rows_descriptor(s.words[0]);
  const auto issue = [&](int chunk) {
    group_fence();
    UNROLL
    for (int b = 0; b < 4; b++) group_mma(d[chunk % 2][b], a[b], rows + chunk * 128 + b * 2);
    group_commit();
  };
  issue(0);
  UNROLL
  for (int chunk = 0; chunk < 8; chunk++) {
    if (chunk < 7) issue(chunk + 1);
    Four xs[4];
    UNROLL
    for (int c = 0; c < 4; c++) xs[c] = four_at(s.scales[chunk * 16 + c / 2 * 8 + c % 2], lane % 4 * 32);
    if (chunk < 7) group_wait<1>(d[chunk % 2]);
    else group_wait<0>(d[chunk % 2]);
    UNROLL
    for (int e = 0; e < 8; e++) {
      float p = -0.0f;
      UNROLL
      for (int b = 0; b < 4; b++) p = fmaf(ws[e / 2 % 2].value[b] * xs[e / 4 * 2 + e % 2].value[b], float(d[chunk % 2][b][e]), p);
      t[chunk * 2 + e / 4][e % 4] = t[chunk * 2 + e / 4][e % 4] + p;
    }
  }
}

template <class W, class X, int DEPTH>
struct GroupShared {
  union {
    TileSegment<W, X, GroupTile<DEPTH>> segment[DEPTH];
    float dot[128][136];
  };
  WideScales<W, GroupTile<DEPTH>> wide[2];
};

template <class W, int N, int K, int DEPTH, class X>
__device__ inline void group_rows(GroupShared<W, X, DEPTH>& s, int block, const uint8_t* weight, X x, int first, int rows) {
  using L = GroupTile<DEPTH>;
  constexpr int SEGMENTS = (K + 127) / 128;
  AsyncCopies copies;
  const uint8_t* const weights[1] = {weight};
  RowCopies<W, K, X, L> row_copies(x, first, rows);
  LevelCopies<W, N, K, X, L> level_copies(weights, block);
  ScaleCopies<W, N, K, L> scale_copies(weights, block);
  const auto fetch = [&](int segment) {
    if (segment < SEGMENTS) {
      row_copies.next(s.segment[segment % DEPTH], copies);
      level_copies.next(s.segment[segment % DEPTH], copies);
    }
    commit_copies(copies);
  };
  float t[16][4];
  UNROLL
  for (int i = 0; i < 64; i++) t[i / 4][i % 4] = -0.0f;
  for (int segment = 0; segment < DEPTH - 1; segment++) fetch(segment);
  scale_copies.load();
  scale_copies.store(s.wide[0]);
  if (SEGMENTS > 1) scale_copies.load();
  for (int segment = 0; segment < SEGMENTS; segment++) {
    wait_copies<DEPTH - 2>(copies);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    fetch(segment + DEPTH - 1);
    scale_copies.store(s.wide[(segment + 1) % 2]);
    if (segment + 2 < SEGMENTS) scale_copies.load();
    add_segment(t, s.segment[segment % DEPTH], s.wide[segment % 2]);
  }
  wait_copies<0>(copies);
  __syncthreads();
  const int lane = threadIdx.x % 32, output = threadIdx.x / 32 * 16;
  UNROLL
  for (int i = 0; i < 64; i++) s.dot[i / 4 * 8 + lane % 4 * 2 + i % 2][output + i / 2 % 2 * 8 + lane / 4] = t[i / 4][i % 4];
}
template <class W, int N, int K, class X, int DEPTH>
__global__ void __launch_bounds__(256, 1) group_kernel(const uint8_t* weight, X x, int rows, float* y) {
  const int id = blockIdx.y * gridDim.x + blockIdx.x, first = id % gridDim.y * 128, block = id / gridDim.y;
  extern __shared__ __align__(1024) unsigned char group_bytes[];
  auto& s = *reinterpret_cast<GroupShared<W, X, DEPTH>*>(group_bytes);
  group_rows<W, N, K, DEPTH>(s, block, weight, x, first, rows);
  __syncthreads();
  each_output<N, GroupTile<DEPTH>, 128>(block, first, rows, [&](int r, int n, int output) { y[size_t(first + r) * N + n] = s.dot[r][output]; });
}

template <class W, class X, int N, int K>
size_t compare_group(const char* name, int rows) {
  return compare_by<W, X, N, K, 1>(name, rows, true, true, [](const uint8_t* weight, X x, int count, float* y) {
    const dim3 grid(N / 128, (count + 127) / 128);
    launch(nullptr, group_kernel<W, N, K, X, 4>, Shape{grid, dim3(256), sizeof(GroupShared<W, X, 4>)}, weight, x, count, y);
  });
}
