// NVTX ranges: what a profiler calls a stretch of the host's time. Where NVTX's header is not there they are left out.
#ifndef __CUDACC_RTC__
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
constexpr bool HAS_RANGES = true;
#else
constexpr bool HAS_RANGES = false;
inline void nvtxRangePushA(const char*) {}
inline void nvtxRangePop() {}
#endif
constexpr const char* NO_RANGES = "NVTX ranges are left out: nvtx3/nvToolsExt.h was not there when this was built";
struct ProfilerRange {
    explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
    ~ProfilerRange() { nvtxRangePop(); }
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;
};
#endif
