// Atomics, fences and cached loads: one CPU operation each.
#pragma once

namespace monocu_host {

// Replaces *at by change(*at), atomically, and returns what was there.
template <class T, class Change> inline T exchange_by(T* at, Change change) {
    T old;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    for (;;) {
        T fresh = change(old);
        if (__atomic_compare_exchange(at, &old, &fresh, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return old;
    }
}

}  // namespace monocu_host

inline int atomicAdd(int* at, int v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
inline unsigned atomicAdd(unsigned* at, unsigned v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long v) {
    return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
}
inline float atomicAdd(float* at, float v) {
    return monocu_host::exchange_by(at, [v](float old) { return old + v; });
}
inline int atomicSub(int* at, int v) { return __atomic_fetch_sub(at, v, __ATOMIC_RELAXED); }
inline unsigned atomicSub(unsigned* at, unsigned v) { return __atomic_fetch_sub(at, v, __ATOMIC_RELAXED); }
// old >= limit ? 0 : old + 1, as CUDA's atomicInc.
inline unsigned atomicInc(unsigned* at, unsigned limit) {
    return monocu_host::exchange_by(at, [limit](unsigned old) { return old >= limit ? 0 : old + 1; });
}

#define MONOCU_ATOMICS(type)                                                                          \
    inline type atomicMax(type* at, type v) {                                                         \
        return monocu_host::exchange_by(at, [v](type old) { return old < v ? v : old; });             \
    }                                                                                                 \
    inline type atomicMin(type* at, type v) {                                                         \
        return monocu_host::exchange_by(at, [v](type old) { return v < old ? v : old; });             \
    }                                                                                                 \
    inline type atomicOr(type* at, type v) { return __atomic_fetch_or(at, v, __ATOMIC_RELAXED); }     \
    inline type atomicAnd(type* at, type v) { return __atomic_fetch_and(at, v, __ATOMIC_RELAXED); }   \
    inline type atomicExch(type* at, type v) { return __atomic_exchange_n(at, v, __ATOMIC_RELAXED); } \
    inline type atomicCAS(type* at, type expected, type v) {                                          \
        __atomic_compare_exchange_n(at, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);     \
        return expected;                                                                              \
    }
MONOCU_ATOMICS(int)
MONOCU_ATOMICS(unsigned)
MONOCU_ATOMICS(unsigned long long)
#undef MONOCU_ATOMICS
inline float atomicExch(float* at, float v) {
    __atomic_exchange(at, &v, &v, __ATOMIC_RELAXED);
    return v;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <class T> inline T __ldg(const T* at) { return *at; }
template <class T> inline T __ldcg(const T* at) { return *at; }
template <class T> inline T __ldcs(const T* at) { return *at; }
template <class T> inline void __stcg(T* at, T value) { *at = value; }
