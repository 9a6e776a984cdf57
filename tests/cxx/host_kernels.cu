// What the host target must do as a GPU does, a case a function: run as `program CASE`; a wrong value ends it with 1.
// Compiles under nvcc too, so that the same cases hold the host target against a GPU. device.cuh stands above.
#include <cstring>
#include <vector>

int wrong = 0;
template <class T> void expect(T got, T want, const char* what, int index = 0) {
    if (got == want) return;
    if (wrong++ < 5) printf("%s[%d]: %.17g, must be %.17g\n", what, index, double(got), double(want));
}
cudaStream_t stream;
std::vector<void*> owned;
template <class T> T* device(size_t count) {
    T* memory;
    check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    owned.push_back(memory);
    return memory;
}
template <class T> std::vector<T> fetch(const T* from, size_t count) {
    std::vector<T> values(count);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
}
template <class T> T* zeros(size_t count) {
    T* memory = device<T>(count);
    check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
    return memory;
}

// ---- barriers
struct Ints {
    int v[256];
};
__global__ void reduce(int* out) {
    auto& s = shared<Ints>();
    const int t = int(threadIdx.x + blockDim.x * threadIdx.y);
    s.v[t] = int(blockIdx.x) + t;
    __syncthreads();
    for (int k = 128; k; k >>= 1) {
        if (t < k) s.v[t] += s.v[t + k];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x + gridDim.x * blockIdx.y] = s.v[0];
}
void case_reduce() {
    int* out = device<int>(60);
    launch(stream, reduce, Shape{dim3(20, 3), dim3(64, 4), sizeof(Ints)}, out);
    auto got = fetch(out, 60);
    for (int i = 0; i < 60; i++) expect(got[i], 256 * (i % 20) + 255 * 128, "sum", i);
}
__global__ void counts(int* out) {
    const int t = int(threadIdx.x);
    const int count = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < 96),
              most = __syncthreads_and(t < 95);
    out[t * 4] = count, out[t * 4 + 1] = all, out[t * 4 + 2] = most, out[t * 4 + 3] = __syncthreads_or(t == 50);
}
void case_counts() {
    int* out = device<int>(4 * 96);
    launch(stream, counts, Shape{dim3(1), dim3(96), 0}, out);
    auto got = fetch(out, 4 * 96);
    const int want[4] = {32, 1, 0, 1};
    for (int i = 0; i < 4 * 96; i++) expect(got[i], want[i % 4], "count", i);
}

// ---- warp collectives
__global__ void shuffles(int* out, double* wide) {
    const int t = int(threadIdx.x);
    out[t] = __shfl_xor_sync(~0u, t, 5);
    out[64 + t] = __shfl_down_sync(~0u, t, 3);
    out[128 + t] = __shfl_up_sync(~0u, t, 3);
    out[192 + t] = __shfl_sync(~0u, t, 7);
    out[256 + t] = __shfl_sync(~0u, t, 2, 8);
    out[320 + t] = __shfl_down_sync(~0u, t, 6, 8);
    out[384 + t] = int(__ballot_sync(~0u, t % 5 == 0));
    out[448 + t] = __any_sync(~0u, t == 40) * 2 + __all_sync(~0u, t < 32);
    wide[t] = __shfl_xor_sync(~0u, double(t) + 0x1p-40, 1);
}
void case_shuffles() {
    int* out = device<int>(512);
    double* wide = device<double>(64);
    launch(stream, shuffles, Shape{dim3(1), dim3(64), 0}, out, wide);
    auto got = fetch(out, 512);
    auto doubles = fetch(wide, 64);
    for (int t = 0; t < 64; t++) {
        const int l = t % 32, w = t - l;
        expect(got[t], w + (l ^ 5), "xor", t);
        expect(got[64 + t], l < 29 ? t + 3 : t, "down", t);
        expect(got[128 + t], l < 3 ? t : t - 3, "up", t);
        expect(got[192 + t], w + 7, "from 7", t);
        expect(got[256 + t], t / 8 * 8 + 2, "from 2 of 8", t);
        expect(got[320 + t], t % 8 < 2 ? t + 6 : t, "down 6 of 8", t);
        unsigned ballot = 0;
        for (int i = 0; i < 32; i++) ballot |= unsigned((w + i) % 5 == 0) << i;
        expect(unsigned(got[384 + t]), ballot, "ballot", t);
        expect(got[448 + t], w ? 2 : 1, "votes", t);
        expect(doubles[t], (t ^ 1) + 0x1p-40, "wide xor", t);
    }
}
// Halves of a warp that go different ways, with different numbers of collectives, and a short last warp.
__global__ void halves(int* out) {
    const int t = int(threadIdx.x), lane = t % 32;
    int v = lane;
    if (t >= 32) {
        v = __shfl_xor_sync(0xffu, v, 1);
        __syncwarp(0xffu);
    } else if (lane < 16) {
        for (int i = 0; i < 3; i++) v += __shfl_xor_sync(0xffffu, v, 1 << i);
    } else {
        v = __shfl_sync(0xffff0000u, v, 20);
        __syncwarp(0xffff0000u);
    }
    out[t] = v;
}
void case_halves() {
    int* out = device<int>(40);
    launch(stream, halves, Shape{dim3(1), dim3(40), 0}, out);
    auto got = fetch(out, 40);
    for (int t = 0; t < 40; t++) expect(got[t], t < 8 ? 28 : t < 16 ? 92 : t < 32 ? 20 : (t - 32) ^ 1, "half", t);
}

// ---- atomics, fences, flags
struct Counters {
    int sum, low, high;
    unsigned ticket, bits;
    unsigned long long wide;
    float real;
    int locked;
};
__global__ void atomics(Counters* c, int* last) {
    const int t = int(threadIdx.x + blockIdx.x * blockDim.x);
    atomicAdd(&c->sum, t);
    atomicMin(&c->low, -t);
    atomicMax(&c->high, t);
    atomicOr(&c->bits, 1u << (t % 32));
    atomicAdd(&c->wide, 1ull << 33);
    atomicAdd(&c->real, 0.25f);
    for (int old = c->locked, seen; (seen = atomicCAS(&c->locked, old, old + 2)) != old; old = seen) {
    }
    __threadfence();
    if (atomicInc(&c->ticket, gridDim.x * blockDim.x - 1) == gridDim.x * blockDim.x - 1)
        *last = atomicExch(&c->sum, -7);
}
void case_atomics() {
    Counters* c = zeros<Counters>(1);
    int* last = device<int>(1);
    launch(stream, atomics, Shape{dim3(100), dim3(96), 0}, c, last);
    const Counters got = fetch(c, 1)[0];
    const int n = 9600;
    expect(fetch(last, 1)[0], n * (n - 1) / 2, "the last thread's sum");
    expect(got.sum, -7, "exchanged");
    expect(got.low, -(n - 1), "least");
    expect(got.high, n - 1, "greatest");
    expect(got.bits, ~0u, "bits");
    expect(got.wide, n * (1ull << 33), "wide");
    expect(got.real, n * 0.25f, "real");
    expect(got.locked, 2 * n, "compared and swapped");
    expect(got.ticket, 0u, "ticket");
}
// Every block waits for the block after it, and thread 0 of each for thread 40: none can run to its end alone.
__global__ void relay(unsigned* flags, int* out) {
    const unsigned b = blockIdx.x, t = threadIdx.x;
    unsigned* local = flags + gridDim.x + 1;
    if (t == 40) atomicAdd(&local[b], 1u);
    if (t == 0) {
        wait_until(&local[b], 1);
        wait_until(&flags[b + 1], 1);
        out[b] = b + 1 < gridDim.x ? out[b + 1] + 1 : 1;
        __threadfence();
        atomicExch(&flags[b], 1u);
    }
    __syncthreads();
}
void case_relay() {
    const int n = 24;
    unsigned* flags = zeros<unsigned>(2 * n + 1);
    const unsigned one = 1;
    check(cudaMemcpy(flags + n, &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy");
    int* out = device<int>(n);
    launch(stream, relay, Shape{dim3(n), dim3(64), 0}, flags, out);
    auto got = fetch(out, n);
    for (int i = 0; i < n; i++) expect(got[i], n - i, "relay", i);
}

// ---- small pieces
__global__ void pieces(const int4* a, const int4* b, int* out, float* real) {
    out[0] = dot16(a[0], b[0], 100);
    out[1] = dp4a(a[0].x, b[0].x, -1);
    out[2] = load_stream(a).z;
    out[3] = __popc(0xf0f0u) + __clz(1) + __ffs(8);
    out[4] = __float2int_rn(2.5f) * 1000 + __float2int_rn(-3.5f);
    out[5] = int(__byte_perm(0x03020100u, 0x07060504u, 0x7531u));
    out[6] = int(sizeof(float4) * 100 + alignof(int2));
    real[0] = __int_as_float(0x3f800001);
    int sum = 0;
    UNROLL
    for (int i = 0; i < 4; i++) sum += i;
    real[1] = float(sum);
}
void case_pieces() {
    const signed char bytes[2][16] = {{-128, 127, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -13, 14},
                                      {-128, -128, 127, 1, 0, -1, 2, 3, 4, 5, 6, 7, -8, 9, 10, 11}};
    int4* a = device<int4>(2);
    int* out = device<int>(7);
    float* real = device<float>(2);
    check(cudaMemcpy(a, bytes, 32, cudaMemcpyHostToDevice), "cudaMemcpy");
    launch(stream, pieces, Shape{dim3(1), dim3(1), 0}, (const int4*)a, (const int4*)(a + 1), out, real);
    int dot = 100;
    for (int i = 0; i < 16; i++) dot += bytes[0][i] * bytes[1][i];
    auto got = fetch(out, 7);
    const int want[7] = {dot, 128 * 128 - 127 * 128 + 127 + 2 - 1, 0x0a090807, 8 + 31 + 4, 2000 - 4, 0x07050301,
                         1608};
    for (int i = 0; i < 7; i++) expect(got[i], want[i], "piece", i);
    expect(fetch(real, 2)[0], 1.0f + 0x1p-23f, "bits");
    expect(fetch(real, 2)[1], 6.0f, "unrolled");
}
