// The device's description, and CUDA graphs: a captured stream's calls, replayed in order.
#pragma once

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor,
        l2CacheSize;
    int maxGridSize[3], maxThreadsDim[3];
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};

namespace monocu_host {

constexpr int MULTIPROCESSORS = 2;
constexpr size_t SHARED_DEFAULT = 48 << 10, SHARED_OPTIN = 227 << 10;

}  // namespace monocu_host

inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
    return device ? monocu_host::report(cudaErrorInvalidDevice) : cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
// The device "host". Its compute capability is 0.0: no kernel may count on an architecture's instructions.
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
    if (device) return monocu_host::report(cudaErrorInvalidDevice);
    *p = {};
    memcpy(p->name, "host", 5);
    p->totalGlobalMem = monocu_host::memory_info("MemTotal:");
    p->sharedMemPerBlock = monocu_host::SHARED_DEFAULT;
    p->sharedMemPerBlockOptin = monocu_host::SHARED_OPTIN;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->multiProcessorCount = monocu_host::MULTIPROCESSORS;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsPerMultiProcessor = 1024;
    p->l2CacheSize = 32 << 20;
    p->maxGridSize[0] = INT_MAX;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; return cudaSuccess;
        case cudaDevAttrMultiProcessorCount: *value = monocu_host::MULTIPROCESSORS; return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
        case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = monocu_host::SHARED_OPTIN; return cudaSuccess;
    }
    return monocu_host::report(cudaErrorInvalidValue);
}
inline cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
    *available = monocu_host::memory_info("MemAvailable:");
    *total = monocu_host::memory_info("MemTotal:");
    return cudaSuccess;
}
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) {
    *version = 0;
    return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = 0;
    return cudaSuccess;
}

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
using cudaGraph_t = monocu_host::Graph*;
using cudaGraphExec_t = monocu_host::Graph*;

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (!stream || stream->capture) return monocu_host::report(cudaErrorStreamCaptureUnsupported);
    stream->capture = new monocu_host::Graph;
    monocu_host::captures++;
    return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    if (!stream || !stream->capture) return monocu_host::report(cudaErrorInvalidValue);
    *graph = std::exchange(stream->capture, nullptr);
    monocu_host::captures--;
    return cudaSuccess;
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    *status = stream && stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long = 0) {
    graph->owners++;
    *exec = graph;
    return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    monocu_host::drop(graph);
    return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    monocu_host::drop(exec);
    return cudaSuccess;
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    return monocu_host::enqueue(stream, [exec] {
        for (const monocu_host::Node* node : exec->nodes) node->run();
    });
}
