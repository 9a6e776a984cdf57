// The runtime API's cases, and what only the host target does: poison, shuffled order, faults that it must refuse.
#include <cmath>

// ---- graphs, events, errors
__global__ void add(int* x, int v) { x[threadIdx.x] += v; }
void case_graph() {
    int *x = zeros<int>(8), *copy = zeros<int>(8);
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    for (int v = 1; v <= 3; v++) launch(stream, add, Shape{dim3(1), dim3(8), 0}, x, v);
    check(cudaMemcpyAsync(copy, x, 4 * sizeof(int), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    check(cudaMemsetAsync(x + 7, 0, sizeof(int), stream), "cudaMemsetAsync");
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    expect(fetch(x, 8)[0], 0, "captured, not run");
    for (int i = 0; i < 5; i++) check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
    auto got = fetch(x, 8), copied = fetch(copy, 8);
    for (int i = 0; i < 8; i++) expect(got[i], i < 7 ? 30 : 0, "replayed", i);
    for (int i = 0; i < 8; i++) expect(copied[i], i < 4 ? 30 : 0, "copied", i);
    check(cudaGraphExecDestroy(replay), "cudaGraphExecDestroy");
}
void case_capture_refuses() {
    int *x = zeros<int>(8), *more = nullptr;
    for (int call = 0; call < 3; call++) {
        cudaGraph_t graph = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
        if (call == 0) expect(int(cudaStreamSynchronize(stream)), 900, "synchronize");
        if (call == 1) expect(int(cudaMalloc(&more, 64)), 900, "malloc");
        if (call == 2) expect(int(cudaMemcpy(x, x + 4, 4, cudaMemcpyDeviceToDevice)), 900, "memcpy");
        cudaStreamEndCapture(stream, &graph);
        if (graph) cudaGraphDestroy(graph);
        cudaGetLastError();
    }
}
cudaError_t try_launch(dim3 grid, dim3 block, size_t bytes) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = bytes, config.stream = stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, add, (int*)nullptr, 1);
    cudaGetLastError();
    return error;
}
void case_errors() {
    expect(int(try_launch(dim3(1), dim3(1025), 0)), 9, "1,025 threads");
    expect(int(try_launch(dim3(1), dim3(0), 0)), 9, "no thread");
    expect(int(try_launch(dim3(1), dim3(1, 1, 65), 0)), 9, "65 deep");
    expect(int(try_launch(dim3(0), dim3(1), 0)), 9, "no block");
    expect(int(try_launch(dim3(1, 65536), dim3(1), 0)), 9, "grid y");
    expect(int(try_launch(dim3(1), dim3(1), 49 << 10)), 1, "shared memory without asking");
    expect(int(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 << 10)), 1, "300 KB");
    expect(int(cudaGetLastError()), 1, "kept");
    expect(int(cudaGetLastError()), 0, "cleared");
    void* memory = nullptr;
    expect(int(cudaMalloc(&memory, size_t(1) << 60)), 2, "an exabyte");
    cudaGetLastError();
    expect(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0, "text");
}
void case_device() {
    cudaDeviceProp p;
    size_t available, total;
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    expect(devices > 0 && available > 1 << 20 && available < total && p.sharedMemPerBlockOptin >= 99 << 10, true,
           "device");
    cudaEvent_t start, end;
    float ms = -1;
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    check(cudaEventRecord(start, stream), "cudaEventRecord");
    int* x = zeros<int>(64);
    for (int i = 0; i < 20; i++) launch(stream, add, Shape{dim3(1), dim3(64), 0}, x, 1);
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start, end), "cudaEventElapsedTime");
    expect(ms > 0 && ms < 10000, true, "elapsed");
    check(cudaEventDestroy(start), "cudaEventDestroy");
    check(cudaEventDestroy(end), "cudaEventDestroy");
}
void case_arithmetic() { verify_arithmetic(stream); }

#ifndef __CUDACC__
// ---- poison and order
__global__ void read_shared(unsigned* out) {
    auto& s = shared<Ints>();
    out[blockIdx.x * 256 + threadIdx.x] = unsigned(s.v[threadIdx.x]);
    s.v[threadIdx.x] = 0;
}
void case_poison() {
    unsigned* out = device<unsigned>(4 * 256);
    expect(out[5], 0xFFA5FFA5u, "fresh memory");
    expect(std::isnan(reinterpret_cast<float*>(out)[5]), true, "as a float");
    launch(stream, read_shared, Shape{dim3(4), dim3(256), sizeof(Ints)}, out);
    for (int i = 0; i < 4 * 256; i++) expect(out[i], 0xFFA5FFA5u, "shared memory", i);
}
__global__ void order(int* ticket, int* first) {
    first[atomicAdd(ticket, 1)] = int(threadIdx.x + blockIdx.x * blockDim.x);
    __syncthreads();
    first[atomicAdd(ticket, 1)] = int(threadIdx.x + blockIdx.x * blockDim.x);
}
std::vector<int> order_by(unsigned seed) {
    int *ticket = zeros<int>(1), *first = device<int>(1024);
    monocu_host_seed(seed);
    launch(stream, order, Shape{dim3(4), dim3(128), 0}, ticket, first);
    monocu_host_seed(0);
    return fetch(first, 1024);
}
// Run with one CPU thread: only then is the order of blocks a fact.
void case_order() {
    auto plain = order_by(0), one = order_by(1), two = order_by(2);
    for (int i = 0; i < 1024; i++) {
        const int t = i % 256;
        if (t != 128) expect(plain[i] / 128, i / 256, "block in order", i);
        if (t < 128) expect(plain[i] % 128, t, "thread in order", i);
    }
    expect(one == order_by(1), true, "a seed's order repeats");
    expect(one == plain || two == plain || one == two, false, "seeds change the order");
    int moved = 0;
    for (unsigned seed = 1; seed < 9; seed++) moved += order_by(seed)[0] / 128 > 0;
    expect(moved > 0 && moved < 9, true, "seeds change the blocks' order");
    for (int i = 0; i < 1024; i++) expect(one[i] / 128, one[i / 256 * 256] / 128, "one block at a time", i);
}
template <bool BARRIER> __global__ void neighbour(int* out) {
    auto& s = shared<Ints>();
    s.v[threadIdx.x] = int(threadIdx.x) * 3;
    if (BARRIER) __syncthreads();
    out[threadIdx.x] = s.v[threadIdx.x ? threadIdx.x - 1 : 0];  // in order, the thread before has written already
}
int wrong_by(void (*kernel)(int*), unsigned seed) {
    int* out = device<int>(128);
    monocu_host_seed(seed);
    launch(stream, kernel, Shape{dim3(1), dim3(128), sizeof(Ints)}, out);
    int count = 0;
    for (int i = 0; i < 128; i++) count += out[i] != (i ? i - 1 : 0) * 3;
    return count;
}
void case_race() {
    expect(wrong_by(neighbour<false>, 0), 0, "in order a missing barrier hides");
    for (unsigned seed = 0; seed < 6; seed++)
        expect(wrong_by(neighbour<true>, seed), 0, "with a barrier, seed", int(seed));
    for (unsigned seed = 1; seed < 6; seed++)
        expect(wrong_by(neighbour<false>, seed) > 10, true, "without, seed", int(seed));
}
struct Pair {
    int mine, total;
};
void total_of(Pair* const* lanes) {
    for (int l = 0; l < 32; l++)
        for (int k = 0; k < 32; k++) lanes[l]->total += lanes[k]->mine * (k <= l);
}
__global__ void prefix(int* out) {
    Pair p = {int(threadIdx.x), 0};
    monocu_host::warp_call<Pair, total_of>(&p);
    out[threadIdx.x] = p.total;
}
void case_warp_call() {
    int* out = device<int>(32);
    launch(stream, prefix, Shape{dim3(1), dim3(32), 0}, out);
    for (int i = 0; i < 32; i++) expect(out[i], i * (i + 1) / 2, "prefix", i);
}

// ---- faults: each ends the process with 70 and the kernel's name
int deep(int levels) {
    volatile char frame[1024];
    for (int i = 0; i < 1024; i++) frame[i] = char(levels);
    return levels ? deep(levels - 1) + frame[levels] : 0;
}
__global__ void fault(int which, unsigned* flag) {
    const int t = int(threadIdx.x);
    if (which == 0 && t < 20) __syncthreads();
    if (which == 1 && t % 2) __syncwarp();
    if (which == 2) t < 32 ? __syncthreads() : (void)__syncthreads_or(1);
    if (which == 3) t % 2 ? __syncwarp() : (void)__ballot_sync(~0u, 1);
    if (which == 4) __syncwarp(1u << (t + 1) % 32);
    if (which == 5) __shfl_sync(0xfu << t % 32 / 4 * 4, t, 31);
    if (which == 6 && t == 0) wait_until(flag, 1);
    if (which == 7) shared<Ints>().v[0] = 1;
    if (which == 8 && t == 0) launch(nullptr, add, Shape{dim3(1), dim3(1), 0}, (int*)flag, 1);
    if (which == 9 && t == 0) *flag = unsigned(deep(61));
    if (which == 10) t < 32 ? __syncthreads() : __syncwarp(1u << t % 32 | 1);
}
void case_fault(int which) { launch(stream, fault, Shape{dim3(3), dim3(64), 0}, which, zeros<unsigned>(1)); }
__global__ void outside(int* out, int where) {
    auto& s = shared<Ints>();
    s.v[0] = 1;
    if (where == 0) out[8] = 1;
    if (where == 1) (&s.v[0])[256] = 1;
    if (where == 2) out[0] = (1 << 30) * (where + 0x7fff);
}
void case_outside(int where) {
    launch(stream, outside, Shape{dim3(1), dim3(1), sizeof(Ints)}, device<int>(8), where);
}
#endif

int main(int, char** words) {
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    const struct {
        const char* name;
        void (*run)();
    } CASES[] = {
        {"reduce", case_reduce},       {"counts", case_counts},   {"shuffles", case_shuffles},
        {"halves", case_halves},       {"atomics", case_atomics}, {"relay", case_relay},
        {"pieces", case_pieces},       {"graph", case_graph},     {"capture_refuses", case_capture_refuses},
        {"errors", case_errors},       {"device", case_device},   {"arithmetic", case_arithmetic},
#ifndef __CUDACC__
        {"poison", case_poison},       {"order", case_order},     {"race", case_race},
        {"warp_call", case_warp_call},
#endif
    };
    int ran = 0;
    for (const auto& c : CASES)
        if (!strcmp(words[1], c.name) || !strcmp(words[1], "all")) c.run(), ran++;
#ifndef __CUDACC__
    if (!strcmp(words[1], "fault")) case_fault(atoi(words[2])), ran++;
    if (!strcmp(words[1], "outside")) case_outside(atoi(words[2])), ran++;
#endif
    for (void* memory : owned) check(cudaFree(memory), "cudaFree");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    if (!ran) printf("no case %s\n", words[1]);
    return wrong || !ran;
}
