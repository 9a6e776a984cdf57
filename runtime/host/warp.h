// Block barriers, warp collectives and `wait_until`, as the running thread calls them.
#pragma once

namespace monocu_host {

inline __attribute__((noinline)) unsigned barrier(Wait kind, unsigned vote) {
    Block& b = *block;
    if (b.arrived && b.barrier != kind)
        fail_block("threads meet at different barriers: %s and %s", wait_name(b.barrier), wait_name(kind));
    b.barrier = kind;
    b.votes += vote;
    if (++b.arrived == b.launch->threads) {
        release_barrier(b);
        asm volatile("" ::: "memory");
        return b.outcome;
    }
    Warp& warp = b.warp_at[b.warp];
    warp.kind[b.lane] = kind;
    warp.at_barrier |= 1u << b.lane;
    suspend();
    asm volatile("" ::: "memory");
    return block->outcome;
}

// One rendezvous of the lanes of `mask`: each posts a value and gets its result.
inline __attribute__((noinline)) uint64_t collective(Wait kind, uint32_t mask, uint64_t value,
                                                     unsigned source) {
    Block& b = *block;
    Warp& warp = b.warp_at[b.warp];
    const unsigned lane = b.lane;
    const uint32_t bit = 1u << lane, group = mask & warp.lanes;
    if (!(mask & bit)) fail_block("%s: the calling lane is not in its mask", wait_name(kind));
    if (kind == Wait::WARP_SHUFFLE && !(group >> source & 1))
        fail_block("a shuffle reads a lane that is not in its mask");
    warp.kind[lane] = kind;
    warp.group[lane] = group;
    warp.post[lane] = value;
    warp.source[lane] = static_cast<uint8_t>(source);
    warp.waiting |= bit;
    if ((warp.waiting & group) == group)
        release_group(b, warp, group);
    else
        suspend();
    asm volatile("" ::: "memory");
    return warp.result[lane];
}

inline unsigned lane_number() { return block->lane; }

// One operation of a whole warp, as mma: `all` is run once, when every lane has come, with each lane's operands.
template <class Operands, void (*all)(Operands* const* lanes)> inline void warp_call(Operands* mine) {
    block->warp_at[block->warp].call = [](const uint64_t* posts) {
        Operands* lanes[WARP];
        for (unsigned lane = 0; lane < WARP; lane++) lanes[lane] = reinterpret_cast<Operands*>(posts[lane]);
        all(lanes);
    };
    if (block->warp_at[block->warp].lanes != ~0u)
        fail_block("a warp's operation in a warp of fewer than 32 threads");
    collective(Wait::WARP_CALL, ~0u, reinterpret_cast<uint64_t>(mine), 0);
}

template <class T> inline T shuffle(unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                  "a shuffle takes 1 to 8 plain bytes");
    uint64_t sent = 0;
    memcpy(&sent, &value, sizeof value);
    uint64_t got = collective(Wait::WARP_SHUFFLE, mask, sent, source);
    memcpy(&value, &got, sizeof value);
    return value;
}

// Where the source would lie outside the segment of `width` lanes, a lane keeps its own value.
inline unsigned segment_source(int from, int width) {
    const int lane = static_cast<int>(lane_number()), first = lane & ~(width - 1);
    return static_cast<unsigned>(from >= first && from < first + width ? from : lane);
}

// Returns when *flag >= value, at once or after others have run.
inline void wait_until(const unsigned* flag, unsigned value) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value) {
        Block& b = *block;
        b.warp_at[b.warp].spinning |= 1u << b.lane;
        b.spinning++;
        suspend();
    }
    worker->stuck_since = 0;
}

}  // namespace monocu_host

inline void __syncthreads() { monocu_host::barrier(monocu_host::Wait::BARRIER, 0); }
inline int __syncthreads_count(int vote) {
    return static_cast<int>(monocu_host::barrier(monocu_host::Wait::BARRIER_COUNT, vote != 0));
}
inline int __syncthreads_or(int vote) {
    return monocu_host::barrier(monocu_host::Wait::BARRIER_OR, vote != 0) != 0;
}
inline int __syncthreads_and(int vote) {
    return monocu_host::barrier(monocu_host::Wait::BARRIER_AND, vote == 0) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    monocu_host::collective(monocu_host::Wait::WARP_SYNC, mask, 0, 0);
}

template <class T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const int first = static_cast<int>(monocu_host::lane_number()) & ~(width - 1);
    return monocu_host::shuffle(mask, value, static_cast<unsigned>(first + (source & (width - 1))));
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const int from = static_cast<int>(monocu_host::lane_number()) ^ bits;
    return monocu_host::shuffle(mask, value, monocu_host::segment_source(from, width));
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int from = static_cast<int>(monocu_host::lane_number() + delta);
    return monocu_host::shuffle(mask, value, monocu_host::segment_source(from, width));
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int from = static_cast<int>(monocu_host::lane_number()) - static_cast<int>(delta);
    return monocu_host::shuffle(mask, value, monocu_host::segment_source(from, width));
}

// Reductions of a whole warp; a lane's operand is its value, then the result.
namespace monocu_host {
inline int greater_of(int a, int b) { return a > b ? a : b; }
inline int sum_of(int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
template <int join(int, int)> inline void reduce_lanes(int* const* lanes) {
    int all = *lanes[0];
    for (unsigned lane = 1; lane < WARP; lane++) all = join(all, *lanes[lane]);
    for (unsigned lane = 0; lane < WARP; lane++) *lanes[lane] = all;
}
template <int join(int, int)> inline int warp_reduce(unsigned mask, int value) {
    if (mask != ~0u) fail_block("a reduction takes a whole warp");
    warp_call<int, reduce_lanes<join>>(&value);
    return value;
}
}  // namespace monocu_host
inline int __reduce_max_sync(unsigned mask, int value) {
    return monocu_host::warp_reduce<monocu_host::greater_of>(mask, value);
}
inline int __reduce_add_sync(unsigned mask, int value) {
    return monocu_host::warp_reduce<monocu_host::sum_of>(mask, value);
}

inline unsigned __ballot_sync(unsigned mask, int vote) {
    return static_cast<unsigned>(monocu_host::collective(monocu_host::Wait::WARP_BALLOT, mask, vote != 0, 0));
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }
// The lanes of the warp that run together here. On a fiber that is this lane alone.
inline unsigned __activemask() { return 1u << monocu_host::lane_number(); }
