// The CUDA runtime API's subset that a driver uses: errors, memory, streams, events, the device. Semantics are CUDA's,
// with work done at once, in order, where CUDA would queue it. Fresh memory is poisoned.
#pragma once

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
};
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum {
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4
};

inline const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "no error";
        case cudaErrorInvalidValue: return "invalid argument";
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
        case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
        case cudaErrorInvalidDeviceFunction: return "invalid device function";
        case cudaErrorInvalidDevice: return "invalid device ordinal";
        case cudaErrorInvalidResourceHandle: return "invalid resource handle";
        case cudaErrorNotReady: return "device not ready";
        case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
        case cudaErrorStreamCaptureInvalidated:
            return "operation failed due to a previous error during capture";
    }
    return "unrecognized error code";
}

namespace monocu_host {

inline __thread cudaError_t last_error = cudaSuccess;

// Keeps an error for cudaGetLastError, as the runtime does.
inline cudaError_t report(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

// Recorded work: what a graph replays, in order. Shared by a graph and what was instantiated from it.
struct Node {
    virtual void run() const = 0;
    virtual ~Node() = default;
};
template <class Work> struct NodeOf final : Node {
    Work work;
    explicit NodeOf(Work w) : work(std::move(w)) {}
    void run() const override { work(); }
};
struct Graph {
    std::vector<Node*> nodes;
    int owners = 1;
};
inline void drop(Graph* graph) {
    if (--graph->owners) return;
    for (Node* node : graph->nodes) delete node;
    delete graph;
}
struct Stream {
    Graph* capture = nullptr;  // where calls are recorded instead of done
};
struct Event {
    double time = 0;  // seconds; 0: not recorded yet
};

// Streams that capture. While there is one, calls that CUDA forbids then are refused here too.
inline std::atomic<int> captures{0};
inline bool capturing() { return captures.load() > 0; }

template <class Work> inline cudaError_t enqueue(Stream* stream, Work work) {
    if (stream && stream->capture) {
        stream->capture->nodes.push_back(new NodeOf<Work>(std::move(work)));
    } else if (!stream && capturing()) {
        return report(cudaErrorStreamCaptureUnsupported);  // the legacy stream waits for all others
    } else {
        work();
    }
    return cudaSuccess;
}

inline size_t memory_info(const char* key) {
    size_t kib = 0;
    char line[128];
    FILE* file = fopen("/proc/meminfo", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) kib = strtoull(line + strlen(key), nullptr, 10);
    fclose(file);
    return kib * 1024;
}

inline cudaError_t allocate(void** out, size_t bytes) {
    if (capturing()) return report(cudaErrorStreamCaptureUnsupported);
    if (!out) return report(cudaErrorInvalidValue);
    *out = nullptr;
    if (!bytes) return cudaSuccess;
    void* memory = nullptr;
    const bool too_much =
        bytes > 64 << 20 && bytes > memory_info("MemTotal:");  // malloc would promise it all the same
    if (too_much || posix_memalign(&memory, 256, bytes)) return report(cudaErrorMemoryAllocation);
    fill_poison(memory, bytes);
    *out = memory;
    return cudaSuccess;
}

}  // namespace monocu_host

using cudaStream_t = monocu_host::Stream*;
using cudaEvent_t = monocu_host::Event*;

inline cudaError_t cudaGetLastError() { return std::exchange(monocu_host::last_error, cudaSuccess); }
inline cudaError_t cudaPeekAtLastError() { return monocu_host::last_error; }

template <class T> inline cudaError_t cudaMalloc(T** out, size_t bytes) {
    return monocu_host::allocate(reinterpret_cast<void**>(out), bytes);
}
template <class T> inline cudaError_t cudaMallocHost(T** out, size_t bytes) {
    return monocu_host::allocate(reinterpret_cast<void**>(out), bytes);
}
template <class T> inline cudaError_t cudaHostAlloc(T** out, size_t bytes, unsigned) {
    return monocu_host::allocate(reinterpret_cast<void**>(out), bytes);
}
inline cudaError_t cudaFree(void* memory) {
    if (monocu_host::capturing()) return monocu_host::report(cudaErrorStreamCaptureUnsupported);
    free(memory);
    return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

// Memory that nobody may touch from here on, or may again: ASan reports who does. Without it they do nothing.
inline void monocu_host_forbid([[maybe_unused]] const void* at, [[maybe_unused]] size_t bytes) {
#if MONOCU_ASAN
    ASAN_POISON_MEMORY_REGION(at, bytes);
#endif
}
inline void monocu_host_allow([[maybe_unused]] const void* at, [[maybe_unused]] size_t bytes) {
#if MONOCU_ASAN
    ASAN_UNPOISON_MEMORY_REGION(at, bytes);
#endif
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return monocu_host::report(cudaErrorInvalidMemcpyDirection);
    if (bytes && (!to || !from)) return monocu_host::report(cudaErrorInvalidValue);
    return monocu_host::enqueue(stream, [=] {
        if (bytes) memcpy(to, from, bytes);
    });
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
// A __device__ variable is a plain one here.
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes, kind);
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr) {
    if (bytes && !to) return monocu_host::report(cudaErrorInvalidValue);
    return monocu_host::enqueue(stream, [=] {
        if (bytes) memset(to, value, bytes);
    });
}
inline cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, nullptr);
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
    *out = new monocu_host::Stream;
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* out) {
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!stream) return monocu_host::report(cudaErrorInvalidResourceHandle);
    delete stream;
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return monocu_host::capturing() ? monocu_host::report(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
inline cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
    *out = new monocu_host::Event;
    return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* out) {
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
    if (!event) return monocu_host::report(cudaErrorInvalidResourceHandle);
    return monocu_host::enqueue(stream, [=] { event->time = monocu_host::now(); });
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (start->time == 0 || end->time == 0) return monocu_host::report(cudaErrorInvalidResourceHandle);
    *milliseconds = static_cast<float>(1e3 * (end->time - start->time));
    return cudaSuccess;
}
