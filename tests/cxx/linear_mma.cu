// Projections of many rows on tensor cores against the single-row kernel and against plain loops: every bit. Comes after
// the helpers and the formats; the cases come after it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

template <class W, int N, int K, class L, class X>
__global__ void __launch_bounds__(L::THREADS) many_rows(const uint8_t* weight, X x, int rows, float* y) {
  const int id = blockIdx.y * gridDim.x + blockIdx.x, first = id % gridDim.y * L::ROWS, block = id / gridDim.y;
  auto& s = shared<TileShared<L, X::WORDS, 1>>();
  const uint8_t* weights[L::WEIGHTS_EACH];
  for (int w = 0; w < L::WEIGHTS_EACH; w++) weights[w] = weight + w * tile_at<W, K>((N + 7) / 8, 0);
  tile_dots<W, N, K, L>(s, block, weights, x, first, rows);
  __syncthreads();
  each_output<N, L, L::ROWS>(block, first, rows, [&](int r, int n, int output) {
    for (int w = 0; w < L::WEIGHTS_EACH; w++) y[(size_t(w) * rows + first + r) * N + n] = dot_of(s, w, r, output);
  });
}

// A row times 8 outputs, segments side by side, as the kernels of few rows have it.
template <class W, int N, int K, class X>
__global__ void __launch_bounds__(32) one_row(const uint8_t* weight, X x, int rows, float* y) {
  constexpr int SEGMENTS = (K + 127) / 128;
  auto& part = shared<float[8][SEGMENTS]>();
  const int lane = threadIdx.x, row = blockIdx.y;
  for (int segment = lane / 8; segment < SEGMENTS; segment += 4) {
    const Segment<W> w = load_segment<W>(weight + tile_at<W, K>(blockIdx.x, segment / 4), lane);
    float p[1] = {};
    segment_dots<W, K, 1>(w, segment, x, row, rows, p);
    part[lane % 8][segment] = p[0];
  }
  __syncwarp();
  const int n = blockIdx.x * 8 + lane;
  if (lane >= 8 || n >= N) return;
  float t = part[lane][0];
  for (int segment = 1; segment < SEGMENTS; segment++) t = t + part[lane][segment];
  y[size_t(row) * N + n] = t;
}

// ---- values: ordinary ones, and a share of awkward ones
unsigned random_state = 1;
unsigned random_bits() {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 16) ^ (random_state << 11);
}
float random_scale(bool awkward) {
  const float specials[] = {0.0f, -0.0f, 1e-40f, 1e-38f, 1e38f, 3e38f, INFINITY, NAN, -1.0f, 1.1754944e-38f};
  if (awkward && random_bits() % 23 == 0) return specials[random_bits() % 10];
  return (1.0f + float(random_bits() % 8388608) / 8388608.0f) * exp2f(float(int(random_bits() % 12)) - 14.0f);
}
uint16_t random_half(bool awkward) {
  const uint16_t specials[] = {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
  if (awkward && random_bits() % 23 == 0) return specials[random_bits() % 10];
  return uint16_t(0x1000 + random_bits() % 0x1000) | uint16_t(random_bits() % 8 == 0 ? 0x8000 : 0);
}
float half_value(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY) : ldexpf(float(exponent ? 1024 + fraction : fraction), max(exponent, 1) - 25);
  return half & 0x8000 ? -size : size;
}
template <class T>
T* on_device(const std::vector<T>& values) {
  T* at = nullptr;
  check(cudaMalloc(&at, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return at;
}

// A matrix as a checkpoint has it, its levels and scales, and its tiles on the device.
template <class W, int K>
struct Matrix {
  int n;
  std::vector<int16_t> level;  // times the whole number of its 16 weights, where there is one
  std::vector<float> d, m;
  std::vector<uint8_t> tiles;
  static constexpr int B = K / 32;
  Matrix(int rows, bool awkward) : n(rows), level(size_t(rows) * K), d(size_t(rows) * B), m(size_t(rows) * B) {
    constexpr int GROUPS = (K + 511) / 512;
    tiles.resize(size_t((n + 7) / 8) * GROUPS * Tile<W>::BYTES);
    for (int row = 0; row < (n + 7) / 8 * 8; row++) {
      for (int segment = 0; segment < GROUPS * 4; segment++) fill(row, segment, awkward);
    }
  }
  void fill(int row, int segment, bool awkward) {
    uint8_t* tile = tiles.data() + (size_t(row / 8) * ((K + 511) / 512) + segment / 4) * Tile<W>::BYTES;
    const int lane = segment % 4 * 8 + row % 8;
    if constexpr (W::SCALES >= 0) return fill_groups(row, segment, lane, tile, awkward);
    uint16_t* halves = (uint16_t*)(tile + Tile<W>::PIECES * 512 + lane * Tile<W>::SCALE_BYTES);
    for (int b = 0; b < 4; b++) {
      const int block = segment * 4 + b;
      const bool there = row < n && block < B;
      const size_t at = size_t(row) * B + block;
      const uint16_t scale = there ? random_half(awkward) : 0x8000, offset = there ? random_half(awkward) : 0x8000;
      halves[b] = scale;
      if (there) d[at] = half_value(scale);
      if (W::OFFSET >= 0) {
        halves[4 + b] = offset;
        if (there) m[at] = half_value(offset);
      }
      const bool full = awkward && random_bits() % 5 == 0;  // every level the largest: the greatest sums
      for (int i = 0; i < 32; i++) {
        const int levels = W::BITS == 8 ? 256 : 16, word = there ? (full ? 0 : int(random_bits() % levels)) : W::ZERO;
        const int value = W::BITS == 8 ? (there ? (full ? -128 : word - 128) : 0) : word - W::ZERO;
        if (there) level[size_t(row) * K + block * 32 + i] = int8_t(value);
        if (W::BITS == 8) tile[(b * 2 + i / 16) * 512 + lane * 16 + i % 16] = uint8_t(value);
        else tile[b * 512 + lane * 16 + i % 16] |= uint8_t(i < 16 ? word : word << 4);
      }
    }
  }
  void fill_groups(int row, int segment, int lane, uint8_t* tile, bool awkward) {
    uint8_t* scales = tile + Tile<W>::PIECES * 512;
    const int of_256 = lane / 16 * 8 + lane % 8;
    const bool there = row < n && segment * 128 < K, full = awkward && random_bits() % 5 == 0;
    if (segment % 2 == 0) fill_scales(row, segment * 4, W::GROUP == 16 ? scales + 256 + of_256 * 2 : scales + of_256 * 16, there, awkward);
    for (int i = 0; i < 128; i++) {
      if (W::GROUP == 16 && i % 16 == 0) scales[lane * 8 + i / 16] = uint8_t(full ? 128 : random_bits() % 256);
      const int by = W::GROUP == 16 ? int8_t(scales[lane * 8 + i / 16]) : 1, b = i / 32, half = i / 16 % 2;
      const int word = full ? (W::ZERO ? 0 : (1 << W::BITS) - 1) : int(random_bits() % (1 << W::BITS));
      if (there) level[size_t(row) * K + segment * 128 + i] = int16_t(by * (word - W::ZERO));
      tile[b * 512 + lane * 16 + i % 16] |= uint8_t((word & 15) << half * 4);
      const int bit = (b * 2 + half) * (W::BITS - 4);
      if (W::BITS > 4) tile[(4 + bit / 8) * 512 + lane * 16 + i % 16] |= uint8_t(word >> 4 << bit % 8);
    }
  }
  // The halves of 256 inputs from `block` on, and their 6-bit numbers, spelled as ggml reads them.
  void fill_scales(int row, int block, uint8_t* to, bool there, bool awkward) {
    const uint16_t scale = random_half(awkward), offset = random_half(awkward);
    memcpy(to, &scale, 2);
    for (int b = 0; b < 8 && there && W::GROUP == 16; b++) d[size_t(row) * B + block + b] = half_value(scale);
    if (W::GROUP == 16) return;
    memcpy(to + 2, &offset, 2);
    uint8_t* q = to + 4;
    for (int i = 0; i < 12; i++) q[i] = uint8_t(random_bits());
    for (int b = 0; b < 8 && there; b++) {
      const int s = b < 4 ? q[b] & 63 : (q[b + 4] & 15) | q[b - 4] >> 6 << 4, t = b < 4 ? q[b + 4] & 63 : q[b + 4] >> 4 | q[b] >> 6 << 4;
      d[size_t(row) * B + block + b] = half_value(scale) * float(s);
      m[size_t(row) * B + block + b] = -(half_value(offset) * float(t));
    }
  }
};

// Activations: words, scales, sums; on the host as `words`, on the device as `x`.
template <class X, int K>
struct Rows {
  std::vector<int8_t> words[X::WORDS];
  std::vector<float> scales, sums;
  X x;
  Rows(int rows, bool awkward) : scales(size_t(rows) * K / 32), sums(size_t(rows) * K / 32) {
    for (auto& plane : words) {
      plane.resize(size_t(rows) * K);
      for (size_t i = 0; i < plane.size(); i++) plane[i] = int8_t(awkward && i / 32 % 7 == 0 ? 127 : int(random_bits() % 255) - 127);
    }
    for (auto& v : scales) v = random_scale(awkward);
    for (auto& v : sums) v = random_scale(awkward) * (random_bits() % 2 ? 1000.0f : -1000.0f);
    x.words = on_device(words[0]);
    if constexpr (X::WORDS == 2) x.low = on_device(words[1]);
    x.scales = on_device(scales);
    x.sums = on_device(sums);
  }
};

// The arithmetic, spelled: segments of 128.
template <class W, int K, class X>
float plain_dot(const Matrix<W, K>& w, const Rows<X, K>& x, int row, int n) {
  constexpr int B = K / 32;
  float t = 0.0f;
  for (int segment = 0; segment < (B + 3) / 4; segment++) {
    float p = 0.0f;
    for (int b = segment * 4; b < B && b < segment * 4 + 4; b++) {
      int dot[2] = {};
      for (int plane = 0; plane < X::WORDS; plane++) {
        for (int k = b * 32; k < b * 32 + 32; k++) dot[plane] += int(w.level[size_t(n) * K + k]) * x.words[plane][size_t(row) * K + k];
      }
      float scale = w.d[size_t(n) * B + b] * x.scales[size_t(row) * B + b];
      if (X::WORDS == 2) scale = scale * 0.0078125f;
      const float whole = float(X::WORDS == 2 ? 128 * dot[0] + dot[1] : dot[0]);
      p = b % 4 == 0 ? scale * whole : fmaf(scale, whole, p);
    }
    for (int b = segment * 4; W::OFFSET >= 0 && b < B && b < segment * 4 + 4; b++) {
      p = fmaf(w.m[size_t(n) * B + b], x.sums[size_t(row) * B + b], p);
    }
    t = segment == 0 ? p : t + p;
  }
  return t;
}

size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); i++) count += !(a[i] != a[i] && b[i] != b[i]) && memcmp(&a[i], &b[i], 4) != 0;
  return count;
}

// Compares one shape and one count of rows; returns how many results differ. go(weights, x, rows, y) launches what is tested.
template <class W, class X, int N, int K, int WEIGHTS, class Go>
size_t compare_by(const char* name, int rows, bool awkward, bool plain, Go go) {
  std::vector<uint8_t> tiles;
  std::vector<Matrix<W, K>> matrices;
  for (int w = 0; w < WEIGHTS; w++) {
    matrices.emplace_back(N, awkward);
    tiles.insert(tiles.end(), matrices[w].tiles.begin(), matrices[w].tiles.end());
  }
  const Rows<X, K> x(rows, awkward);
  const size_t each = size_t(rows) * N, count = each * WEIGHTS;
  uint8_t* weight = on_device(tiles);
  float* y = on_device(std::vector<float>(count, 12345.0f));
  std::vector<float> many(count), single(count), spelled(count);
  go(weight, x.x, rows, y);
  check(cudaMemcpy(many.data(), y, count * 4, cudaMemcpyDeviceToHost), "many_rows");
  for (int w = 0; w < WEIGHTS; w++) {
    const Shape shape{dim3((N + 7) / 8, rows), dim3(32), sizeof(float[8][(K + 127) / 128])};
    launch(nullptr, one_row<W, N, K, X>, shape, weight + w * matrices[w].tiles.size(), x.x, rows, y + w * each);
  }
  check(cudaMemcpy(single.data(), y, count * 4, cudaMemcpyDeviceToHost), "one_row");
  for (size_t i = 0; plain && i < count; i++) spelled[i] = plain_dot(matrices[i / each], x, int(i % each / N), int(i % N));
  const size_t wrong = differing(many, single), far = plain ? differing(single, spelled) : 0;
  size_t nans = 0;
  for (float v : many) nans += v != v;
  printf("%s %s rows %d: %zu results, %zu NaN; many rows != single row %zu, single row != loops %zu\n", name,
         awkward ? "awkward" : "ordinary", rows, count, nans, wrong, far);
  for (void* p : {(void*)weight, (void*)y, (void*)x.x.words, (void*)x.x.scales, (void*)x.x.sums}) cudaFree(p);
  return wrong + far;
}

template <class W, class X, int N, int K, class L>
size_t compare(const char* name, int rows, bool awkward, bool plain = true) {
  return compare_by<W, X, N, K, L::WEIGHTS_EACH>(name, rows, awkward, plain, [](const uint8_t* weight, X x, int count, float* y) {
    const Shape shape{dim3(L::blocks(N), (count + L::ROWS - 1) / L::ROWS), dim3(L::THREADS), sizeof(TileShared<L, X::WORDS, 1>)};
    launch(nullptr, many_rows<W, N, K, L, X>, shape, weight, x, count, y);
  });
}
