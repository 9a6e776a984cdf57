// Integer intrinsics and the two pieces of arithmetic that CPUs spell differently: byte dots and f16.
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
    for (int i = 0; i < 4; i++) out |= static_cast<unsigned>(both >> ((which >> 4 * i & 7) * 8) & 0xff) << 8 * i;
    return out;
}

// c + the sum of four products of signed bytes, wrapping.
inline int __dp4a(int a, int b, int c) {
    unsigned sum = static_cast<unsigned>(c);
    for (int shift = 0; shift < 32; shift += 8)
        sum += static_cast<unsigned>(static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift));
    return static_cast<int>(sum);
}

namespace monocu_host {

// GCC's vectors, as <immintrin.h> takes a second to read.
using Bytes16 = signed char __attribute__((vector_size(16)));
using Words16 = short __attribute__((vector_size(32)));
using Pairs8 = unsigned __attribute__((vector_size(32)));
using Pairs4 = unsigned __attribute__((vector_size(16)));

// sum + the 16 products of signed bytes of a and b, wrapping: four __dp4a.
inline __attribute__((always_inline)) int dot16(int4 a, int4 b, int sum) {
#if defined(__AVX2__)
    const Words16 wide_a = __builtin_convertvector(bit_cast<Bytes16>(a), Words16);
    const Words16 wide_b = __builtin_convertvector(bit_cast<Bytes16>(b), Words16);
    const Pairs8 pairs = __builtin_bit_cast(Pairs8, __builtin_ia32_pmaddwd256(wide_a, wide_b));
    const Pairs4 four = __builtin_shufflevector(pairs, pairs, 0, 1, 2, 3) + __builtin_shufflevector(pairs, pairs, 4, 5, 6, 7);
    const Pairs4 two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
    return static_cast<int>(static_cast<unsigned>(sum) + two[0] + two[1]);
#else
    sum = __dp4a(a.x, b.x, sum);
    sum = __dp4a(a.y, b.y, sum);
    sum = __dp4a(a.z, b.z, sum);
    return __dp4a(a.w, b.w, sum);
#endif
}

// _Float16 converts in hardware where the CPU has it (F16C, every aarch64), rounding to nearest even.
inline float half_to_float(unsigned short bits) { return static_cast<float>(bit_cast<_Float16>(bits)); }
inline unsigned short float_to_half(float v) { return bit_cast<unsigned short>(static_cast<_Float16>(v)); }

}  // namespace monocu_host
