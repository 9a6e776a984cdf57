// Integer intrinsics and the two pieces of arithmetic that CPUs spell differently: byte dots and f16.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// sum + the 16 products of signed bytes of a and b, wrapping: four __dp4a.
inline __attribute__((always_inline)) int dot16(int4 a, int4 b, int sum) {
#if defined(__AVX2__)
    const __m256i wide_a = _mm256_cvtepi8_epi16(bit_cast<__m128i>(a)), wide_b = _mm256_cvtepi8_epi16(bit_cast<__m128i>(b));
    const __m256i pairs = _mm256_madd_epi16(wide_a, wide_b);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
    return static_cast<int>(static_cast<unsigned>(sum) + static_cast<unsigned>(_mm_cvtsi128_si32(four)));
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
