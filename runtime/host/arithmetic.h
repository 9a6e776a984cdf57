// Integer intrinsics and the byte dots, which CPUs spell in another way.
#pragma once

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
// The bytes of b:a that the four low nibbles of `which` name (bit 3 of a nibble, sign replication, is not supported).
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; i++)
        out |= static_cast<unsigned>(both >> ((which >> 4 * i & 7) * 8) & 0xff) << 8 * i;
    return out;
}

namespace monocu_host {

// GCC's vectors and built-ins, as <immintrin.h> takes a second to read.
#if defined(__AVX2__) && !defined(__clang__)
#define MONOCU_AVX2 1
using Bytes16 = char __attribute__((vector_size(16)));
using Words16 = short __attribute__((vector_size(32)));
using Sums8 = unsigned __attribute__((vector_size(32)));
using Sums4 = unsigned __attribute__((vector_size(16)));
#else
#define MONOCU_AVX2 0
#endif

}  // namespace monocu_host

// c + the sum of four products of signed bytes, wrapping.
inline __attribute__((always_inline)) int __dp4a(int a, int b, int c) {
#if MONOCU_AVX2
    using namespace monocu_host;
    const Bytes16 bytes_a = reinterpret_cast<Bytes16>(Sums4{static_cast<unsigned>(a)});
    const Bytes16 bytes_b = reinterpret_cast<Bytes16>(Sums4{static_cast<unsigned>(b)});
    const Sums4 sums = reinterpret_cast<Sums4>(
        __builtin_ia32_pmaddwd128(__builtin_ia32_pmovsxbw128(bytes_a), __builtin_ia32_pmovsxbw128(bytes_b)));
    return static_cast<int>(static_cast<unsigned>(c) + sums[0] + sums[1]);
#else
    unsigned sum = static_cast<unsigned>(c);
    for (int shift = 0; shift < 32; shift += 8)
        sum += static_cast<unsigned>(static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift));
    return static_cast<int>(sum);
#endif
}

namespace monocu_host {

// sum + the 16 products of signed bytes of a and b, wrapping: four __dp4a.
inline __attribute__((always_inline)) int dot16(int4 a, int4 b, int sum) {
#if MONOCU_AVX2
    const Words16 wide_a = __builtin_ia32_pmovsxbw256(bit_cast<Bytes16>(a));
    const Words16 wide_b = __builtin_ia32_pmovsxbw256(bit_cast<Bytes16>(b));
    const Sums8 sums = reinterpret_cast<Sums8>(__builtin_ia32_pmaddwd256(wide_a, wide_b));
    const Sums4 four =
        __builtin_shufflevector(sums, sums, 0, 1, 2, 3) + __builtin_shufflevector(sums, sums, 4, 5, 6, 7);
    const Sums4 two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
    return static_cast<int>(static_cast<unsigned>(sum) + two[0] + two[1]);
#else
    sum = __dp4a(a.x, b.x, sum);
    sum = __dp4a(a.y, b.y, sum);
    sum = __dp4a(a.z, b.z, sum);
    return __dp4a(a.w, b.w, sum);
#endif
}

}  // namespace monocu_host
