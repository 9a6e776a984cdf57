// A toy model that plays the generated part above the driver: h = sum of the embeddings so far, weighted
// 1 to 3 by distance, plus two layers' biases; logits = h . table. All numbers are whole, so all sums are exact.
#include <cstdint>
inline constexpr const char* PROGRAM = "toy";
inline constexpr const char* NUMERICS = "f32";
inline constexpr const char* KV = "f32";
inline constexpr int MAX_ROWS = 16, MAX_WANTED = 4, MAX_SEQS = 4, VOCAB = 17, TRAINED_CONTEXT = 128;
inline constexpr int D = 32, LAYERS = 2;
inline constexpr size_t WEIGHT_BYTES = VOCAB * D * 4 + LAYERS * D * 4;
inline constexpr size_t CACHE_BYTES_PER_POSITION = D * 4;
inline constexpr size_t X = 0, H = X + MAX_ROWS * D * 4, QUANTIZED = H + LAYERS * MAX_ROWS * D * 4;
inline constexpr size_t SCALES = QUANTIZED + MAX_ROWS * D, SUMS = SCALES + 256;
inline constexpr size_t LOGITS = SUMS + 256, NEXT = LOGITS + MAX_WANTED * VOCAB * 4;
inline constexpr size_t BUFFER_BYTES = NEXT + MAX_WANTED * 4;

struct Step {
    int rows, wanted, keep_logits, turn;
    int token[MAX_ROWS], seq[MAX_ROWS], pos[MAX_ROWS];
    int want[MAX_WANTED];
    int pages_per_seq;
    int* pages;
};
struct Family {
    const char* name;
    int first, count;
    uint32_t type;
    const char* format;
    int dims;
    uint64_t shape[3];
    size_t offset, stride;
    int layout;
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
struct MetaValue {
    const char* key;
    const char* value;
};
inline constexpr int METADATA_COUNT = 5;
inline constexpr MetaValue METADATA[] = {
    {"toy.layers", "2"},
    {"toy.eps", "9.99999975e-06"},
    {"toy.kind", "'mixed'"},
    {"toy.windows", "[4, 0]"},
    {"toy.scale", ""},
};
inline constexpr int WEIGHT_COUNT = 2;
inline constexpr Family WEIGHTS[] = {
    {"table.weight", 0, 1, 0, "f32", 2, {VOCAB, D}, 0, 0, 0},
    {"blk.%d.bias", 0, LAYERS, 0, "f32", 1, {D}, VOCAB * D * 4, D * 4, 0},
};
inline constexpr int VALUE_COUNT = 4;
inline constexpr Value VALUES[] = {
    {"x", 0, 1, "f32", 2, {-1, D}, X, 0, 0},
    {"l%d.h", 0, LAYERS, "f32", 2, {-1, D}, H, 1, 1},
    {"n", 0, 1, "q8", 2, {-1, D}, QUANTIZED, 3, 0},
    {"logits", 0, 1, "f32", 2, {-2, VOCAB}, LOGITS, 4, 0},
};
inline constexpr int KERNEL_COUNT = 5;
inline constexpr KernelInfo KERNELS[] = {{"embed", 1}, {"mix", 2}, {"pack", 1}, {"head", 1}, {"pick", 1}};

__device__ float* entry(const Step* step, float* cache, int seq, int pos) {
    return cache + (size_t(step->pages[seq * step->pages_per_seq + pos / 64]) * 64 + pos % 64) * D;
}
__global__ void embed(const Step* step, const float* table, float* x, float* cache) {
    int row = blockIdx.x, d = threadIdx.x;
    if (row >= step->rows) return;
    float v = table[step->token[row] * D + d];
    x[row * D + d] = v;
    entry(step, cache, step->seq[row], step->pos[row])[d] = v;
}
// The first layer mixes, the second adds its bias to the first's result.
__global__ void mix(const Step* step, float* cache, const float* bias, const float* before, float* h) {
    int row = blockIdx.x, d = threadIdx.x;
    if (row >= step->rows) return;
    float sum = before ? before[row * D + d] : 0;
    for (int p = 0; !before && p <= step->pos[row]; p++)
        sum += entry(step, cache, step->seq[row], p)[d] * (1 + (step->pos[row] - p) % 3);
    h[row * D + d] = sum + bias[d];
}
__global__ void pack(const Step* step, const float* h, int8_t* words, float* scales, float* sums) {
    int row = blockIdx.x;
    if (row >= step->rows || threadIdx.x) return;
    float sum = 0;
    for (int d = 0; d < D; d++) {
        words[row * D + d] = int8_t(int(h[row * D + d]) % 100);
        sum += words[row * D + d];
    }
    scales[row] = 2;
    sums[row] = 2 * sum;
}
__global__ void head(const Step* step, const float* h, const float* table, float* logits) {
    int row = blockIdx.x, v = threadIdx.x;
    if (row >= step->wanted || v >= VOCAB) return;
    float sum = 0;
    for (int d = 0; d < D; d++) sum += h[step->want[row] * D + d] * table[v * D + d];
    logits[row * VOCAB + v] = sum;
}
__global__ void pick(const Step* step, const float* logits, int* next) {
    int row = threadIdx.x, best = 0;
    if (row >= step->wanted) return;
    for (int v = 1; v < VOCAB; v++)
        if (logits[row * VOCAB + v] > logits[row * VOCAB + best]) best = v;
    next[row] = best;
}
__global__ void advance(Step* step, const int* next, int* chosen) {
    int turn = step->turn;
    for (int i = int(threadIdx.x); i < step->wanted; i += int(blockDim.x)) {
        step->token[i] = chosen[turn * MAX_WANTED + i] = next[i];
        step->pos[i]++;
    }
    __syncthreads();
    if (threadIdx.x == 0) step->turn = 1 - turn;
}
__global__ void copy_floats(const float* from, float* to, size_t count) {
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}
void repack(const Family& family, const void* raw, size_t first_row, size_t rows, uint8_t* to, cudaStream_t stream) {
    size_t width = family.shape[family.dims - 1];
    launch(stream, copy_floats, Shape{dim3(1), dim3(64), 0}, static_cast<const float*>(raw),
           reinterpret_cast<float*>(to) + first_row * width, rows * width);
}
__global__ void fill(uint32_t key, size_t first, float* to, size_t count) {
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = float(int((key ^ (first + i)) % 7)) - 3;
}
void synthesize(const Family& family, uint32_t key, size_t first_row, size_t rows, uint8_t* raw, cudaStream_t stream) {
    size_t width = family.shape[family.dims - 1];
    launch(stream, fill, Shape{dim3(1), dim3(64), 0}, key, first_row * width, reinterpret_cast<float*>(raw), rows * width);
}
template <class... P, class... A>
void go(Device& d, void (*kernel)(P...), int blocks, int threads, A... args) {
    launch(d.stream, kernel, Shape{dim3(unsigned(blocks)), dim3(unsigned(threads)), 0}, args...);
    int number = d.launches++;
    if (d.after) d.after(d, number);
}
void forward(Device& d, int rows, int wanted) {
    const float *table = reinterpret_cast<float*>(d.weights), *bias = table + VOCAB * D;
    float *x = reinterpret_cast<float*>(d.buffers + X), *h = reinterpret_cast<float*>(d.buffers + H);
    float *cache = reinterpret_cast<float*>(d.cache), *logits = reinterpret_cast<float*>(d.buffers + LOGITS);
    go(d, embed, rows, D, d.step, table, x, cache);
    go(d, mix, rows, D, d.step, cache, bias, static_cast<const float*>(nullptr), h);
    go(d, mix, rows, D, d.step, cache, bias + D, h, h);
    go(d, pack, rows, D, d.step, h, reinterpret_cast<int8_t*>(d.buffers + QUANTIZED),
       reinterpret_cast<float*>(d.buffers + SCALES), reinterpret_cast<float*>(d.buffers + SUMS));
    go(d, head, wanted, 32, d.step, h, table, logits);
    go(d, pick, 1, 32, d.step, logits, reinterpret_cast<int*>(d.buffers + NEXT));
}
