// Reads `count` times 16 bytes, eight in flight a thread: what the memory gives at most. `out` keeps the reads alive.
__global__ void read_all(const int4* from, size_t count, int* out) {
    const size_t threads = size_t(gridDim.x) * blockDim.x;
    int all = 0;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i + 7 * threads < count; i += 8 * threads) {
        int4 some[8];
        UNROLL
        for (int j = 0; j < 8; j++) some[j] = load_stream(from + i + j * threads);
        UNROLL
        for (int j = 0; j < 8; j++) all ^= some[j].x ^ some[j].y ^ some[j].z ^ some[j].w;
    }
    if (all == 0x600D) *out = all;
}
