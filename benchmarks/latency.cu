// What it costs to hand 1,024 floats from 128 blocks to 128 blocks, in ways that a decode step could use.
//   nvcc -std=c++17 -O3 -arch=sm_90a -o latency latency.cu && ./latency
// Prints nanoseconds a hand-over: median of nine runs of 1,000.
#include <algorithm>
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int BLOCKS = 128, THREADS = 256, VALUES = 1024, EACH = VALUES / BLOCKS, PHASES = 1000;

#define CHECK(call)                                                             \
    do {                                                                        \
        cudaError_t e = (call);                                                 \
        if (e != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorString(e));                   \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

// What stands for a projection's work: a block's sum over all values, then its own EACH values.
__device__ float work(const float (&mine)[4], float* partial) {
    float v = mine[0] + mine[1] + mine[2] + mine[3];
    for (int step = 1; step < 32; step *= 2) v += __shfl_xor_sync(~0u, v, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < 8; w++) sum += partial[w];
    return sum * 1e-3f + float(threadIdx.x);
}

// 1. A launch a phase, with programmatic dependent launch.
__global__ void __launch_bounds__(THREADS) phase_kernel(const float* x, float* y) {
    __shared__ float partial[8];
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
    const float4 v = ((const float4*)x)[threadIdx.x];
    const float mine[4] = {v.x, v.y, v.z, v.w};
    const float out = work(mine, partial);
    if (threadIdx.x < EACH) y[blockIdx.x * EACH + threadIdx.x] = out;
}

// 2. One launch; a word carries a value and the phase that made it, readers poll the words themselves.
__global__ void __launch_bounds__(THREADS) words_kernel(ulonglong2* words, float* out, int phases) {
    __shared__ float partial[2][8];
    float mine[4] = {0, 0, 0, 0};
    for (int phase = 1; phase <= phases; phase++) {
        const float v = work(mine, partial[phase % 2]);
        uint64_t* to = (uint64_t*)(words + (phase % 2) * (VALUES / 2));
        if (threadIdx.x < EACH) {
            const uint64_t word = uint64_t(unsigned(phase)) << 32 | __float_as_uint(v);
            asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to + blockIdx.x * EACH + threadIdx.x), "l"(word) : "memory");
        }
        for (int i = 0; i < 2; i++) {
            const ulonglong2* from = words + (phase % 2) * (VALUES / 2) + threadIdx.x * 2 + i;
            uint64_t a, b;
            do {
                asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
            } while (unsigned(a >> 32) != unsigned(phase) || unsigned(b >> 32) != unsigned(phase));
            mine[2 * i] = __uint_as_float(unsigned(a));
            mine[2 * i + 1] = __uint_as_float(unsigned(b));
        }
    }
    if (threadIdx.x == 0) out[blockIdx.x] = mine[0];
}

// 3. One launch; a flag a block, polled by a thread each; then the values are read.
__global__ void __launch_bounds__(THREADS) flags_kernel(float* values, unsigned* flags, float* out, int phases) {
    __shared__ float partial[2][8];
    float mine[4] = {0, 0, 0, 0};
    for (int phase = 1; phase <= phases; phase++) {
        const float v = work(mine, partial[phase % 2]);
        float* to = values + (phase % 2) * VALUES;
        if (threadIdx.x < EACH) to[blockIdx.x * EACH + threadIdx.x] = v;
        __syncwarp();
        if (threadIdx.x == 0) {
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + blockIdx.x * 8), "r"(phase) : "memory");
        }
        if (threadIdx.x < BLOCKS) {
            unsigned seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + threadIdx.x * 8) : "memory");
            } while (int(seen) < phase);
        }
        __syncthreads();
        const float4 four = __ldcg((const float4*)to + threadIdx.x);
        mine[0] = four.x, mine[1] = four.y, mine[2] = four.z, mine[3] = four.w;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = mine[0];
}

// 4. One launch; a counter that every block adds to.
__global__ void __launch_bounds__(THREADS) counter_kernel(float* values, unsigned* counter, float* out, int phases) {
    __shared__ float partial[2][8];
    float mine[4] = {0, 0, 0, 0};
    for (int phase = 1; phase <= phases; phase++) {
        const float v = work(mine, partial[phase % 2]);
        float* to = values + (phase % 2) * VALUES;
        if (threadIdx.x < EACH) to[blockIdx.x * EACH + threadIdx.x] = v;
        __syncwarp();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
            unsigned seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
            } while (seen < unsigned(phase) * BLOCKS);
        }
        __syncthreads();
        const float4 four = __ldcg((const float4*)to + threadIdx.x);
        mine[0] = four.x, mine[1] = four.y, mine[2] = four.z, mine[3] = four.w;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = mine[0];
}

// 5. Within clusters of COUNT blocks: a barrier, then a value of each neighbour through distributed shared memory.
template <int COUNT>
__global__ void __launch_bounds__(THREADS) cluster_kernel(float* out, int phases) {
    namespace cg = cooperative_groups;
    __shared__ float value[2];
    cg::cluster_group cluster = cg::this_cluster();
    float v = float(threadIdx.x);
    for (int phase = 0; phase < phases; phase++) {
        if (threadIdx.x == 0) value[phase % 2] = v;
        cluster.sync();
        v = *cluster.map_shared_rank(&value[phase % 2], (cluster.block_rank() + 1) % COUNT) + 1.0f;
    }
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}

template <class Body>
void measure(const char* name, cudaStream_t stream, int count, Body body) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int i = 0; i < 11; i++) {
        CHECK(cudaEventRecord(begin, stream));
        body();
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaStreamSynchronize(stream));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (i > 1) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    printf("%-40s %8.1f ns\n", name, times[times.size() / 2] * 1e6f / float(count));
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    float *values, *out;
    void* words;
    unsigned* flags;
    CHECK(cudaMalloc(&values, 2 * VALUES * 4));
    CHECK(cudaMalloc(&out, BLOCKS * 4));
    CHECK(cudaMalloc(&words, 2 * VALUES * 8));
    CHECK(cudaMalloc(&flags, BLOCKS * 32));
    CHECK(cudaMemset(values, 0, 2 * VALUES * 4));

    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < PHASES; i++) {
        cudaLaunchAttribute overlap = {};
        overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        overlap.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(BLOCKS), config.blockDim = dim3(THREADS), config.stream = stream;
        config.attrs = &overlap, config.numAttrs = i > 0;
        CHECK(cudaLaunchKernelEx(&config, phase_kernel, (const float*)(values + i % 2 * VALUES), values + (i + 1) % 2 * VALUES));
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    measure("a launch, dependent, in a graph", stream, PHASES, [&] { CHECK(cudaGraphLaunch(ready, stream)); });
    measure("words that carry their phase", stream, PHASES, [&] {
        CHECK(cudaMemsetAsync(words, 0, 2 * VALUES * 8, stream));
        words_kernel<<<BLOCKS, THREADS, 0, stream>>>((ulonglong2*)words, out, PHASES);
    });
    measure("a flag a block", stream, PHASES, [&] {
        CHECK(cudaMemsetAsync(flags, 0, BLOCKS * 32, stream));
        flags_kernel<<<BLOCKS, THREADS, 0, stream>>>(values, flags, out, PHASES);
    });
    measure("one counter", stream, PHASES, [&] {
        CHECK(cudaMemsetAsync(flags, 0, 4, stream));
        counter_kernel<<<BLOCKS, THREADS, 0, stream>>>(values, flags, out, PHASES);
    });
    auto clusters = [&](auto kernel, int count) {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = unsigned(count), attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(BLOCKS), config.blockDim = dim3(THREADS), config.stream = stream;
        config.attrs = &attribute, config.numAttrs = 1;
        CHECK(cudaLaunchKernelEx(&config, kernel, out, PHASES));
    };
    measure("a cluster of 4: barrier and a remote read", stream, PHASES, [&] { clusters(cluster_kernel<4>, 4); });
    measure("a cluster of 8", stream, PHASES, [&] { clusters(cluster_kernel<8>, 8); });
    return 0;
}
