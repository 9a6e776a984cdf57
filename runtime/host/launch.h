// Launching a kernel: the checks CUDA makes, the CPU threads that share its blocks, and the runtime's launch calls.
#pragma once

namespace monocu_host {

// The CPU threads besides the caller's. They look for a launch for a short while after one, then sleep.
struct Pool {
    std::mutex mutex;
    std::condition_variable wakened;
    Launch* launch = nullptr;           // guarded by mutex
    std::atomic<unsigned> users{0};     // of `launch`, besides the caller
    std::atomic<uint64_t> epoch{0};     // launches so far
    std::mutex one_launch;
    unsigned threads = 0;
};

inline void pool_thread(Pool* pool) {
    constexpr auto ALERT = std::chrono::microseconds(50);
    uint64_t seen = 0;
    for (;;) {
        const auto until = std::chrono::steady_clock::now() + ALERT;
        while (pool->epoch.load() == seen && std::chrono::steady_clock::now() < until) sched_yield();
        Launch* launch;
        {
            std::unique_lock<std::mutex> lock(pool->mutex);
            pool->wakened.wait(lock, [&] { return pool->epoch.load() != seen; });
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
        p->threads = settings().threads - 1;
        for (unsigned i = 0; i < p->threads; i++) std::thread(pool_thread, p).detach();
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

inline void run_launch(Launch& launch) {
    if (block && block->live) fail("a kernel launched a kernel");
    Pool& p = pool();
    std::lock_guard<std::mutex> one(p.one_launch);
    order_blocks(launch);
    if (!p.threads || launch.blocks == 1) return work(launch);
    {
        std::lock_guard<std::mutex> lock(p.mutex);
        p.launch = &launch;
        p.epoch++;
    }
    if (launch.blocks == 2) p.wakened.notify_one();
    else p.wakened.notify_all();
    work(launch);
    {
        std::lock_guard<std::mutex> lock(p.mutex);
        p.launch = nullptr;
    }
    while (p.users.load()) sched_yield();
}

// Dynamic shared memory beyond 48 KB that a kernel was given by cudaFuncSetAttribute.
struct OptIns {
    std::mutex mutex;
    std::map<const void*, size_t> bytes;
};
inline OptIns& opt_ins() {
    static OptIns* made = new OptIns;
    return *made;
}
inline size_t shared_limit(const void* kernel) {
    std::lock_guard<std::mutex> lock(opt_ins().mutex);
    auto found = opt_ins().bytes.find(kernel);
    return found == opt_ins().bytes.end() ? SHARED_DEFAULT : found->second;
}

inline cudaError_t check_launch(const void* kernel, dim3 grid, dim3 block, size_t shared) {
    const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (!threads || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > MAX_THREADS) return cudaErrorInvalidConfiguration;
    if (!grid.x || !grid.y || !grid.z || grid.x > INT_MAX || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
    if (shared > SHARED_DEFAULT && shared > shared_limit(kernel)) return cudaErrorInvalidValue;
    return cudaSuccess;
}

template <class... Parameters>
inline cudaError_t launch_kernel(Stream* stream, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                 Parameters... arguments) {
    struct Call {
        void (*kernel)(Parameters...);
        std::tuple<Parameters...> arguments;
    };
    const void* address = reinterpret_cast<const void*>(kernel);
    const cudaError_t wrong = check_launch(address, grid, block, shared);
    if (wrong != cudaSuccess) return report(wrong);
    return enqueue(stream, [=, call = Call{kernel, {arguments...}}] {
        Launch launch;
        launch.run = [](const void* at) {
            const Call& c = *static_cast<const Call*>(at);
            std::apply(c.kernel, c.arguments);
        };
        launch.arguments = &call;
        launch.kernel = address;
        launch.grid = {grid.x, grid.y, grid.z};
        launch.block = {block.x, block.y, block.z};
        launch.shared = shared;
        launch.threads = block.x * block.y * block.z;
        launch.blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
        run_launch(launch);
    });
}

// The running block's dynamic shared memory as one struct.
template <class T>
inline T& shared_memory() {
    if (sizeof(T) > block->launch->shared)
        fail_block("shared memory of " + std::to_string(sizeof(T)) + " bytes is used, of " +
                   std::to_string(block->launch->shared) + " bytes launched");
    return *reinterpret_cast<T*>(block->shared);
}

}  // namespace monocu_host

// The order of threads and blocks from here on: 0 in order, else an order per seed.
inline void monocu_host_seed(unsigned seed) { monocu_host::settings().seed = seed; }

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaLaunchAttributeID { cudaLaunchAttributeCooperative = 2, cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
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

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<size_t>(value) > monocu_host::SHARED_OPTIN) return monocu_host::report(cudaErrorInvalidValue);
    std::lock_guard<std::mutex> lock(monocu_host::opt_ins().mutex);
    monocu_host::opt_ins().bytes[reinterpret_cast<const void*>(kernel)] = static_cast<size_t>(value);
    return cudaSuccess;
}

inline cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
    Dl_info info;
    if (!dladdr(kernel, &info) || !info.dli_sname) return monocu_host::report(cudaErrorInvalidDeviceFunction);
    *name = info.dli_sname;
    return cudaSuccess;
}

template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
    return monocu_host::launch_kernel<Parameters...>(config->stream, kernel, config->gridDim, config->blockDim,
                                                     config->dynamicSmemBytes, std::forward<Arguments>(arguments)...);
}
