// A toy op program that plays the generated part above the driver: every kind of input, returned as it came
// but for x, which is doubled.
#include <cstdint>
inline constexpr const char* PROGRAM = "toyop";
inline constexpr const char* NUMERICS = "f32";
inline constexpr int MAX_ROWS = 3, MAX_WANTED = 3;
inline constexpr size_t CACHE_BYTES_PER_POSITION = 0;
inline constexpr size_t X = 0, G = 256, N = 512, K = 768, B = 1024, S = 1280, Y = 1536, BUFFER_BYTES = 1792;

struct Step {
    int rows, wanted;
    int token[MAX_ROWS], seq[MAX_ROWS], pos[MAX_ROWS];
    int want[MAX_WANTED];
    int pages_per_seq;
    int* pages;
};
struct Value {
    const char* name;
    int first, count;
    const char* dtype;
    int rank;
    int64_t shape[4];
    size_t offset;
    int launch, period;
};
struct Input {
    Value value;
    int fill;
    double scalar;
    const double* literals;
    const long long* integers;
};
struct Blocks {
  const char* dtype;
  int weights, bytes, group, bits, scale, offset, scales, levels, high, zero, run;
};
inline constexpr Blocks BLOCKS[] = {{}};
struct KernelInfo {
    const char* name;
    int launches;
};
constexpr int FEW_PAGES = 4, MANY_PAGES = 1 << 24;
struct Device {
    cudaStream_t stream;
    uint8_t *weights, *buffers, *cache;
    size_t positions;
    Step* step;
    int launches;
    void (*after)(Device&, int launch);
    int pages = MANY_PAGES;
};
inline constexpr double ROWS[] = {0, 0, 2, 5, 1, 1};
inline constexpr double HALVES[] = {0.1, 65519.0, 6e-8, -1e-9};
inline constexpr long long SEVEN[] = {-7};
inline constexpr double BRAINS[] = {0.1, -0.0};
inline constexpr int INPUT_COUNT = 6;
inline constexpr Input INPUTS[] = {
    {{"x", 0, 1, "f32", 2, {3, 4}, X, -1, 0}, 0, 0, nullptr, nullptr},
    {{"g", 0, 1, "f16", 1, {4}, G, -1, 0}, 2, 0, HALVES, nullptr},
    {{"n", 0, 1, "i32", 1, {9}, N, -1, 0}, 0, 0, nullptr, nullptr},
    {{"k", 0, 1, "i64", 0, {}, K, -1, 0}, 1, 0, nullptr, SEVEN},
    {{"b", 0, 1, "bf16", 1, {2}, B, -1, 0}, 2, 0, BRAINS, nullptr},
    {{"r", 0, 1, "rows", 1, {3}, 0, -1, 0}, 2, 0, ROWS, nullptr},
};
inline constexpr int RESULT_COUNT = 6;
inline constexpr Value RESULTS[] = {
    {"y", 0, 1, "f32", 2, {3, 4}, Y, 0, 0},     {"g", 0, 1, "f16", 1, {4}, G, -1, 0},
    {"n", 0, 1, "i32", 1, {9}, N, -1, 0},       {"k", 0, 1, "i64", 0, {}, K, -1, 0},
    {"b", 0, 1, "bf16", 1, {2}, B, -1, 0},      {"table", 0, 1, "i32", 2, {2, 3}, S, 1, 0},
};
inline constexpr int VALUE_COUNT = 1;
inline constexpr Value VALUES[] = {{"y", 0, 1, "f32", 2, {3, 4}, Y, 0, 0}};
inline constexpr int KERNEL_COUNT = 2;
inline constexpr KernelInfo KERNELS[] = {{"twice", 1}, {"rows_table", 1}};

__global__ void twice(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * 2; }
__global__ void rows_table(const Step* step, int* out) {
    int i = int(threadIdx.x);
    out[i] = step->seq[i];
    out[MAX_ROWS + i] = step->pos[i];
}
void forward(Device& d, int rows, int) {
    launch(d.stream, twice, Shape{dim3(1), dim3(12), 0}, reinterpret_cast<const float*>(d.buffers + X),
           reinterpret_cast<float*>(d.buffers + Y));
    if (d.after) d.after(d, d.launches);
    d.launches++;
    launch(d.stream, rows_table, Shape{dim3(1), dim3(unsigned(rows)), 0}, d.step,
           reinterpret_cast<int*>(d.buffers + S));
    if (d.after) d.after(d, d.launches);
    d.launches++;
}
