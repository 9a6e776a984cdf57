// CUDA's qualifiers, vector types and bit casts for g++: same names, same sizes, same alignments.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// NOTE: no `__shared__`: shared memory is one struct, reached by `shared<Smem>()`, so that it can be poisoned.

#define MONOCU_VECTOR2(name, type, bytes) \
    struct alignas(bytes) name {          \
        type x, y;                        \
    };                                    \
    constexpr name make_##name(type x, type y) { return name{x, y}; }
#define MONOCU_VECTOR3(name, type) \
    struct name {                  \
        type x, y, z;              \
    };                             \
    constexpr name make_##name(type x, type y, type z) { return name{x, y, z}; }
#define MONOCU_VECTOR4(name, type, bytes) \
    struct alignas(bytes) name {          \
        type x, y, z, w;                  \
    };                                    \
    constexpr name make_##name(type x, type y, type z, type w) { return name{x, y, z, w}; }

MONOCU_VECTOR2(char2, signed char, 2)
MONOCU_VECTOR2(uchar2, unsigned char, 2)
MONOCU_VECTOR2(short2, short, 4)
MONOCU_VECTOR2(ushort2, unsigned short, 4)
MONOCU_VECTOR2(int2, int, 8)
MONOCU_VECTOR2(uint2, unsigned, 8)
MONOCU_VECTOR2(float2, float, 8)
MONOCU_VECTOR2(longlong2, long long, 16)
MONOCU_VECTOR2(ulonglong2, unsigned long long, 16)
MONOCU_VECTOR2(double2, double, 16)
MONOCU_VECTOR3(int3, int)
MONOCU_VECTOR3(uint3, unsigned)
MONOCU_VECTOR3(float3, float)
MONOCU_VECTOR4(char4, signed char, 4)
MONOCU_VECTOR4(uchar4, unsigned char, 4)
MONOCU_VECTOR4(short4, short, 8)
MONOCU_VECTOR4(ushort4, unsigned short, 8)
MONOCU_VECTOR4(int4, int, 16)
MONOCU_VECTOR4(uint4, unsigned, 16)
MONOCU_VECTOR4(float4, float, 16)
#undef MONOCU_VECTOR2
#undef MONOCU_VECTOR3
#undef MONOCU_VECTOR4

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

namespace monocu_host {

template <class To, class From> inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast between types of different size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// Rounded already, a float to the nearest int; out of range saturates and NaN is 0, as cvt.rni.s32.f32.
inline int saturate(float rounded) {
    if (rounded != rounded) return 0;
    if (rounded >= 2147483648.0f) return INT_MAX;
    if (rounded < -2147483648.0f) return INT_MIN;
    return static_cast<int>(rounded);
}

}  // namespace monocu_host

inline float __int_as_float(int v) { return monocu_host::bit_cast<float>(v); }
inline float __uint_as_float(unsigned v) { return monocu_host::bit_cast<float>(v); }
inline int __float_as_int(float v) { return monocu_host::bit_cast<int>(v); }
inline unsigned __float_as_uint(float v) { return monocu_host::bit_cast<unsigned>(v); }
inline double __longlong_as_double(long long v) { return monocu_host::bit_cast<double>(v); }
inline long long __double_as_longlong(double v) { return monocu_host::bit_cast<long long>(v); }
inline int __float2int_rn(float v) { return monocu_host::saturate(rintf(v)); }
inline int __float2int_rz(float v) { return monocu_host::saturate(truncf(v)); }
inline float __int2float_rn(int v) { return static_cast<float>(v); }

constexpr int min(int a, int b) { return b < a ? b : a; }
constexpr int max(int a, int b) { return a < b ? b : a; }
constexpr unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
constexpr unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
constexpr long long min(long long a, long long b) { return b < a ? b : a; }
constexpr long long max(long long a, long long b) { return a < b ? b : a; }
constexpr unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
constexpr unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
