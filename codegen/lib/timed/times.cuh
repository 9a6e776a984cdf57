// Times of launches, in the place of the plain wait: a build by Options.timed.

// When the first thread of a launch came to its wait, and when it was let through; ns of the device's clock. Launches are
// let through in order, each when the one before it has ended. The last record of a step is its end.
struct LaunchTime {
    unsigned long long came, waited;
};
constexpr int MAX_TIMES = 1 << 20;
__device__ LaunchTime launch_times[MAX_TIMES];
__device__ int launch_time_count;

// The clock that all SMs share.
__device__ __forceinline__ unsigned long long nanoseconds() {
#ifdef __CUDA_ARCH__
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
    return now;
#elif !defined(__CUDACC__)
    return (unsigned long long)(1e9 * monocu_host::now());
#else
    return 0;
#endif
}

// Adds a record of this moment: one thread of a launch does.
__device__ __forceinline__ void note_time(unsigned long long came) {
    const unsigned long long now = nanoseconds();
    const int at = atomicAdd(&launch_time_count, 1);
    if (at < MAX_TIMES) launch_times[at] = LaunchTime{came, now};
}

// Waits for the launches before this one, as in builds that do not time it, and notes when that was.
__device__ __forceinline__ void grid_dependency_wait() {
    const bool first = blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x == 0;
    const unsigned long long came = first ? nanoseconds() : 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
    if (first) note_time(came);
}
