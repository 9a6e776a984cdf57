// What a GPU and its runtime offer, under names that nvcc, NVRTC and g++ (with runtime/host) all compile.

// The block's shared memory, launched with at least sizeof(T) bytes.
template <class T> __device__ __forceinline__ T& shared() {
#ifdef __CUDACC__
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    return *reinterpret_cast<T*>(shared_bytes);
#else
    return monocu_host::shared_memory<T>();
#endif
}

// Before a loop of constant length; and before one that is to stay a loop.
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define KEEP_LOOP _Pragma("unroll 1")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define KEEP_LOOP _Pragma("GCC unroll 1")
#endif

// 16 bytes of global memory that nobody writes meanwhile and nobody reads again soon: weights.
__device__ __forceinline__ int4 load_stream(const int4* at) {
#ifdef __CUDA_ARCH__
    int4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
#else
    return *at;
#endif
}

// sum + the four products of signed bytes of a and b.
__device__ __forceinline__ int dp4a(int a, int b, int sum) {
    return __dp4a(a, b, sum);
}

// sum + the sixteen products of signed bytes of a and b.
__device__ __forceinline__ int dot16(int4 a, int4 b, int sum) {
#ifdef __CUDACC__
    sum = __dp4a(a.x, b.x, sum);
    sum = __dp4a(a.y, b.y, sum);
    sum = __dp4a(a.z, b.z, sum);
    return __dp4a(a.w, b.w, sum);
#else
    return monocu_host::dot16(a, b, sum);
#endif
}

// Waits for the launches before this one: before any write, any read of what they wrote and any return, by every block.
// It lets the next launch start first: measured best at a kernel's start on an H200.
__device__ __forceinline__ void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next launch start early; it may read weights alone before its own grid_dependency_wait.
__device__ __forceinline__ void grid_dependency_trigger() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Before a kernel whose blocks work in clusters of so many, from Hopper on; and whether they do.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CLUSTERS_OF(blocks) __cluster_dims__(blocks)
#define HAS_CLUSTERS true
#else
#define CLUSTERS_OF(blocks)
#define HAS_CLUSTERS false
#endif

// The cluster's barrier in two steps: what was written before its blocks arrive, in the memory of any of them too, is
// visible behind the wait. A block whose memory is written must have begun: the first barrier is for that, and orders nothing.
__device__ __forceinline__ void cluster_begin() {
#if HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_arrive() {
#if HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if HAS_CLUSTERS
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The first block's own of what this block has in shared memory.
template <class T> __device__ __forceinline__ T* of_first_block(T* mine) {
#if HAS_CLUSTERS
    T* first;
    asm volatile("mapa.u64 %0, %1, 0;" : "=l"(first) : "l"(mine));
    return first;
#else
    return mine;
#endif
}

// Returns when *flag >= value; what was written before the flag was is visible then.
__device__ __forceinline__ void wait_until(const unsigned* flag, unsigned value) {
#ifdef __CUDA_ARCH__
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen < value);
#elif !defined(__CUDACC__)
    monocu_host::wait_until(flag, value);
#endif
}

// Ends the program with status 4, saying what failed, where a CUDA call did.
#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstdlib>
inline void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
    exit(4);
}
#endif

// How a kernel is launched: blocks, threads of a block, bytes of its shared memory; whether it may start before the launch
// before it has ended.
struct Shape {
    dim3 grid;
    dim3 block;
    size_t shared;
    bool early = true;
};

// Whether launches can overlap: from Hopper on. Asked for on an older GPU it could be an error.
#ifndef __CUDACC_RTC__
inline unsigned supports_overlap() {
    static const unsigned supported = [] {
        int device = 0, major = 0;
        check(cudaGetDevice(&device), "cudaGetDevice");
        check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
        return major >= 9 ? 1u : 0u;
    }();
    return supported;
}
#endif

// What launch() and all its kinds share: the configuration, and the opt-in to more than 48 KB of shared memory.
#ifndef __CUDACC_RTC__
inline cudaLaunchConfig_t launch_config(cudaStream_t stream, const void* kernel, Shape shape, cudaLaunchAttribute* overlap) {
    overlap->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap->val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared;
    config.stream = stream;
    config.attrs = overlap;
    config.numAttrs = shape.early ? supports_overlap() : 0;
    if (shape.shared <= 48 * 1024) return config;
    const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    check(cudaFuncSetAttribute(kernel, limit, int(shape.shared)), "shared memory of a kernel");
    return config;
}
#endif

// Ends the program over a kernel that could not be launched.
#ifndef __CUDACC_RTC__
inline void refuse_launch(const void* kernel, cudaError_t error) {
    const char* name = "a kernel";
    cudaFuncGetName(&name, kernel);
    check(error, name);
}
#endif

// Starts a kernel that may overlap the end of the launch before it (see grid_dependency_wait).
#ifndef __CUDACC_RTC__
template <class... P, class... A> void launch(cudaStream_t stream, void (*kernel)(P...), Shape shape, A... args) {
    cudaLaunchAttribute overlap = {};
    const void* address = reinterpret_cast<const void*>(kernel);
    const cudaLaunchConfig_t config = launch_config(stream, address, shape, &overlap);
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
    if (error != cudaSuccess) refuse_launch(address, error);
}
#endif

// What verify_arithmetic looks at: rounded twice, rounded once, a denormal.
__global__ void arithmetic_probe(float a, float b, float c, float tiny, float* out) {
    out[0] = a * b + c;
    out[1] = fmaf(a, b, c);
    out[2] = tiny * 0.5f;
}

// Refuses a build whose compiler contracts a * b + c or flushes denormals: its bits would not be the program's.
#ifndef __CUDACC_RTC__
#include <cstring>
inline void verify_arithmetic(cudaStream_t stream) {
    // (1 + 2^-12)^2 - (1 + 2^-11): 0 rounded twice, 2^-24 rounded once. As bits: a flushing CPU compares wrong too.
    const float want[3] = {0.0f, 0x1p-24f, 0x1p-127f};
    float got[3], *out = nullptr;
    check(cudaMalloc(&out, sizeof got), "cudaMalloc");
    launch(stream, arithmetic_probe, Shape{dim3(1), dim3(1), 0}, 0x1.001p0f, 0x1.001p0f, -0x1.002p0f, 0x1p-126f, out);
    check(cudaMemcpyAsync(got, out, sizeof got, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "arithmetic_probe");
    check(cudaFree(out), "cudaFree");
    if (memcmp(got, want, sizeof got) == 0) return;
    fputs("error: this build changes the arithmetic: build with -fmad=false (nvcc) or -ffp-contract=off (g++), "
          "without fast math\n", stderr);
    exit(4);
}
#endif
