// Launching a kernel: the checks CUDA makes, the CPU threads that share its blocks, and the runtime's launch calls.
#pragma once

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaLaunchAttributeID {
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
union cudaLaunchAttributeValue {
    int cooperative, programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};

namespace monocu_host {

// A mutex that is held while it is in scope.
struct Lock {
    pthread_mutex_t* mutex;
    explicit Lock(pthread_mutex_t* m) : mutex(m) { pthread_mutex_lock(mutex); }
    ~Lock() { pthread_mutex_unlock(mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

// The CPU threads besides the caller's. They look for a launch for a short while after one, then sleep.
struct Pool {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, one_launch = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wakened = PTHREAD_COND_INITIALIZER;
    Launch* launch = nullptr;        // guarded by mutex
    std::atomic<unsigned> users{0};  // of `launch`, besides the caller
    std::atomic<uint64_t> epoch{0};  // launches so far
    unsigned threads = 0;
};

inline void* pool_thread(void* argument) {
    constexpr double ALERT = 50e-6;  // seconds
    Pool* pool = static_cast<Pool*>(argument);
    for (uint64_t seen = 0;;) {
        const double until = now() + ALERT;
        while (pool->epoch.load() == seen && now() < until) sched_yield();
        Launch* launch;
        {
            Lock lock(&pool->mutex);
            while (pool->epoch.load() == seen) pthread_cond_wait(&pool->wakened, &pool->mutex);
            seen = pool->epoch.load();
            launch = pool->launch;
            if (launch) pool->users++;
        }
        if (!launch) continue;
        work(*launch);
        pool->users--;
    }
}

// Never destroyed, its threads never joined: the process may end at any time from any of them.
inline Pool& pool() {
    static Pool* made = [] {
        Pool* p = new Pool;
        for (; p->threads < settings().threads - 1; p->threads++) {
            pthread_t thread;
            if (pthread_create(&thread, nullptr, pool_thread, p)) break;
            pthread_detach(thread);
        }
        return p;
    }();
    return *made;
}

inline void order_blocks(Launch& launch) {
    const uint64_t seed = settings().seed.load() * 0x9E3779B97F4A7C15ull, n = launch.blocks;
    auto common = [](uint64_t a, uint64_t b) {
        while (b) a = std::exchange(b, a % b);
        return a;
    };
    launch.offset = (seed >> 7) % n;
    launch.stride = (seed >> 17) % n;
    while (common(launch.stride, n) != 1) launch.stride++;
}

inline __attribute__((noinline)) void run_launch(Launch& launch) {
    if (block && block->live) fail_block("launches a kernel");
    Pool& p = pool();
    Lock one(&p.one_launch);
    order_blocks(launch);
    launch.next = 0;
    if (!p.threads || launch.blocks == 1) return work(launch);
    {
        Lock lock(&p.mutex);
        p.launch = &launch;
        p.epoch++;
    }
    if (launch.blocks == 2)
        pthread_cond_signal(&p.wakened);
    else
        pthread_cond_broadcast(&p.wakened);
    work(launch);
    {
        Lock lock(&p.mutex);
        p.launch = nullptr;
    }
    while (p.users.load()) sched_yield();
}

// Kernels that cudaFuncSetAttribute gave more dynamic shared memory than 48 KB.
struct OptIns {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    std::vector<std::pair<const void*, size_t>> limits;
};
inline OptIns& opt_ins() {
    static OptIns* made = new OptIns;
    return *made;
}
inline size_t shared_limit(const void* kernel) {
    Lock lock(&opt_ins().mutex);
    for (const auto& limit : opt_ins().limits)
        if (limit.first == kernel) return limit.second;
    return SHARED_DEFAULT;
}
inline void set_shared_limit(const void* kernel, size_t bytes) {
    Lock lock(&opt_ins().mutex);
    for (auto& limit : opt_ins().limits)
        if (limit.first == kernel) {
            limit.second = bytes;
            return;
        }
    opt_ins().limits.push_back({kernel, bytes});
}

inline __attribute__((noinline)) cudaError_t check_launch(const void* kernel, dim3 grid, dim3 block, size_t shared) {
    const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (!threads || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > MAX_THREADS)
        return cudaErrorInvalidConfiguration;
    if (!grid.x || !grid.y || !grid.z || grid.x > INT_MAX || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (shared > SHARED_DEFAULT && shared > shared_limit(kernel)) return cudaErrorInvalidValue;
    return cudaSuccess;
}

// A launch to be replayed; it owns its kernel's arguments.
struct LaunchNode final : Node {
    Launch* launch;
    std::vector<char> arguments;
    LaunchNode(const Launch& once, size_t bytes) : launch(new Launch(once)) {
        const char* from = static_cast<const char*>(once.arguments);
        arguments.assign(from, from + bytes);
        launch->arguments = arguments.data();
    }
    ~LaunchNode() override { delete launch; }
    void run() const override { run_launch(*launch); }
};

// Checks a launch and runs it, or records it where the stream captures; `bytes`: of its arguments.
inline __attribute__((noinline)) cudaError_t start(Stream* stream, Launch& launch, dim3 grid, dim3 block, size_t bytes) {
    const cudaError_t wrong = check_launch(launch.kernel, grid, block, launch.shared);
    if (wrong != cudaSuccess) return report(wrong);
    launch.grid = {grid.x, grid.y, grid.z};
    launch.block = {block.x, block.y, block.z};
    launch.threads = block.x * block.y * block.z;
    launch.blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    if (!stream && capturing()) return report(cudaErrorStreamCaptureUnsupported);
    if (stream && stream->capture) {
        stream->capture->nodes.push_back(new LaunchNode(launch, bytes));
    } else {
        run_launch(launch);
    }
    return cudaSuccess;
}

// NOTE: all that depends on the parameters' types is here, since each combination of them costs compile time.
template <class... Parameters>
inline cudaError_t launch_kernel(const cudaLaunchConfig_t& config, void (*kernel)(Parameters...),
                                 Parameters... arguments) {
    const auto thread = [=] { kernel(arguments...); };
    using Thread = std::remove_const_t<decltype(thread)>;
    static_assert(std::is_trivially_copyable<Thread>::value, "a kernel's parameters are plain data");
    Launch launch;
    launch.run = [](const void* at) { (*static_cast<const Thread*>(at))(); };
    launch.arguments = &thread;
    launch.kernel = reinterpret_cast<const void*>(kernel);
    launch.shared = config.dynamicSmemBytes;
    return start(config.stream, launch, config.gridDim, config.blockDim, sizeof thread);
}

// The running block's dynamic shared memory as one struct.
template <class T> inline T& shared_memory() {
    if (sizeof(T) > block->launch->shared)
        fail_block("uses %zu bytes of shared memory, launched with %zu", sizeof(T), block->launch->shared);
    return *reinterpret_cast<T*>(block->shared);
}

}  // namespace monocu_host

// The order of threads and blocks from here on: 0 in order, else an order per seed.
inline void monocu_host_seed(unsigned seed) { monocu_host::settings().seed = seed; }

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<size_t>(value) > monocu_host::SHARED_OPTIN)
        return monocu_host::report(cudaErrorInvalidValue);
    monocu_host::set_shared_limit(reinterpret_cast<const void*>(kernel), static_cast<size_t>(value));
    return cudaSuccess;
}

inline cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
    *name = monocu_host::kernel_symbol(kernel);
    return *name ? cudaSuccess : monocu_host::report(cudaErrorInvalidDeviceFunction);
}

template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                      Arguments&&... arguments) {
    return monocu_host::launch_kernel<Parameters...>(*config, kernel, std::forward<Arguments>(arguments)...);
}
