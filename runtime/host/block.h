// One block's threads: which may run, which wait where, and how a barrier or a warp collective lets them go on.
// All of it runs on one CPU thread; nothing here is shared between CPU threads.
#pragma once

inline __thread uint3 threadIdx;
inline __thread uint3 blockIdx;
inline __thread uint3 blockDim;
inline __thread uint3 gridDim;
constexpr int warpSize = 32;

namespace monocu_host {

constexpr unsigned WARP = 32;
constexpr unsigned MAX_THREADS = 1024;
constexpr unsigned MAX_WARPS = MAX_THREADS / WARP;

// What a thread waits for. A block barrier's kinds differ by their result, a warp collective's by theirs.
enum class Wait : uint8_t {
    BARRIER,
    BARRIER_COUNT,
    BARRIER_AND,
    BARRIER_OR,
    WARP_SYNC,
    WARP_SHUFFLE,
    WARP_BALLOT,
    WARP_CALL
};
constexpr int WAITS = 8;

inline const char* wait_name(Wait kind) {
    constexpr const char* NAMES[] = {"__syncthreads",    "__syncthreads_count", "__syncthreads_and",
                                     "__syncthreads_or", "__syncwarp",          "a shuffle",
                                     "a vote",           "a warp's operation"};
    return NAMES[static_cast<int>(kind)];
}

struct Launch {
    void (*run)(const void* arguments);  // the kernel, for the thread that threadIdx and blockIdx name
    const void* arguments;
    const void* kernel;
    uint3 grid, block;
    size_t shared;
    unsigned threads;
    uint64_t blocks;
    uint64_t stride, offset;  // block number i is run as (i * stride + offset) % blocks
    uint64_t next;  // the block to be begun next; CPU threads take them atomically
};

// A bit mask is by lane. Every lane is in one of: fresh, ready, waiting, at_barrier, spinning, ended, or runs.
struct alignas(1024) Warp {
    uint32_t lanes;  // the lanes that exist
    uint32_t fresh, ready, waiting, at_barrier, spinning, ended;
    Wait kind[WARP];
    uint8_t source[WARP];  // of a shuffle: the lane whose value this one asks for
    uint32_t group[WARP];  // the collective's mask
    uint64_t post[WARP];
    uint64_t result[WARP];
    Fiber* fiber[WARP];                   // of lanes that wait or are ready
    void (*call)(const uint64_t* posts);  // of WARP_CALL
};

struct Block {
    const Launch* launch = nullptr;
    uint3 index = {};
    uint32_t runnable = 0;  // warps with fresh or ready lanes
    unsigned warps = 0, live = 0, arrived = 0, spinning = 0;
    unsigned warp = 0, lane = 0;  // of the thread that runs
    Wait barrier = Wait::BARRIER;
    unsigned votes = 0, outcome = 0;  // of a barrier that counts: so far; of the last one
    uint32_t random = 0;              // the order's state; 0: in order
    char* shared = nullptr;
    size_t shared_bytes = 0;
    Warp warp_at[MAX_WARPS];
};

inline __thread Block* block = nullptr;

// The first set bit, counted from the bottom, or from a random bit where the order is shuffled.
inline unsigned choose(uint32_t mask, uint32_t& random) {
    if (!random) return __builtin_ctz(mask);
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    unsigned turn = random >> 27;
    uint32_t turned = mask >> turn | mask << (-turn & 31);
    return (__builtin_ctz(turned) + turn) & 31;
}

// A kernel's mangled name, null where the binary was linked without -rdynamic.
inline const char* kernel_symbol(const void* kernel) {
    Dl_info info;
    return dladdr(kernel, &info) ? info.dli_sname : nullptr;
}

// Ends the process over a fault of a kernel.
[[noreturn]] __attribute__((cold, noinline, format(printf, 2, 3))) inline void fail_kernel(const Launch& launch,
                                                                           const char* format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char* symbol = kernel_symbol(launch.kernel);
    const char* plain = symbol ? abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr) : nullptr;
    fail("kernel %s: %s", plain ? plain : symbol ? symbol : "without a name (link with -rdynamic)", what);
}

// The same, of the block that runs.
[[noreturn]] __attribute__((cold, noinline, format(printf, 1, 2))) inline void fail_block(const char* format, ...) {
    char what[480];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const uint3 at = block->index;
    fail_kernel(*block->launch, "block (%u, %u, %u): %s", at.x, at.y, at.z, what);
}

// No thread can run and some have not ended: counts them by what they wait for.
[[noreturn]] __attribute__((cold, noinline)) inline void fail_deadlock() {
    unsigned count[WAITS] = {}, ended = 0;
    for (unsigned w = 0; w < block->warps; w++) {
        const Warp& warp = block->warp_at[w];
        ended += static_cast<unsigned>(__builtin_popcount(warp.ended));
        for (uint32_t left = warp.waiting | warp.at_barrier; left; left &= left - 1)
            count[static_cast<int>(warp.kind[__builtin_ctz(left)])]++;
    }
    char what[400];
    int length = 0;
    for (int kind = 0; kind < WAITS; kind++)
        if (count[kind])
            length += snprintf(what + length, sizeof what - static_cast<size_t>(length), "%u threads at %s, ",
                               count[kind], wait_name(static_cast<Wait>(kind)));
    fail_block("deadlock: %s%u ended", what, ended);
}

inline void start_block(Block& b, const Launch& launch, uint3 index, uint32_t random) {
    b.launch = &launch;
    b.index = index;
    b.warps = (launch.threads + WARP - 1) / WARP;
    b.live = launch.threads;
    b.arrived = b.spinning = b.votes = b.warp = b.lane = 0;
    b.random = random;
    b.runnable = b.warps == 32 ? ~0u : (1u << b.warps) - 1;
    for (unsigned w = 0; w < b.warps; w++) {
        Warp& warp = b.warp_at[w];
        unsigned lanes = min(WARP, launch.threads - w * WARP);
        warp.lanes = warp.fresh = lanes == 32 ? ~0u : (1u << lanes) - 1;
        warp.ready = warp.waiting = warp.at_barrier = warp.spinning = warp.ended = 0;
    }
}

// Makes some lanes of a warp ready.
inline void wake(Block& b, unsigned w, uint32_t lanes) {
    b.warp_at[w].ready |= lanes;
    if (lanes) b.runnable |= 1u << w;
}

// Every thread has arrived: all go on, the caller without being switched to.
inline void release_barrier(Block& b) {
    b.outcome = b.votes;
    b.votes = b.arrived = 0;
    for (unsigned w = 0; w < b.warps; w++) {
        uint32_t lanes = b.warp_at[w].at_barrier;
        b.warp_at[w].at_barrier = 0;
        wake(b, w, lanes);
    }
}

[[noreturn]] __attribute__((cold, noinline)) inline void fail_meeting(Wait one, Wait other) {
    if (one == other) fail_block("lanes of one warp meet at %s with different masks", wait_name(one));
    fail_block("lanes of one warp meet in different collectives: %s and %s", wait_name(one),
               wait_name(other));
}

// The last lane of a collective has arrived: computes every lane's result and lets the others go on.
inline void release_group(Block& b, Warp& warp, uint32_t group) {
    const Wait kind = warp.kind[b.lane];
    uint64_t ballot = 0;
    for (uint32_t left = group; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (warp.group[lane] != group || warp.kind[lane] != kind) fail_meeting(warp.kind[lane], kind);
        ballot |= (warp.post[lane] & 1) << lane;
    }
    if (kind == Wait::WARP_CALL) warp.call(warp.post);
    for (uint32_t left = group; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        warp.result[lane] = kind == Wait::WARP_SHUFFLE ? warp.post[warp.source[lane]] : ballot;
    }
    warp.waiting &= ~group;
    wake(b, b.warp, group & ~(1u << b.lane));
}

}  // namespace monocu_host
