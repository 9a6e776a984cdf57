// The float whose bits are `bits`.
__device__ inline float float_of(unsigned int bits) {
  union { unsigned int u; float f; } both;
  both.u = bits;
  return both.f;
}

// The bits of a float.
__device__ inline unsigned int bits_of(float value) {
  union { float f; unsigned int u; } both;
  both.f = value;
  return both.u;
}

// NaN as every function here gives it.
__device__ inline float not_a_number() {
  return float_of(0x7fc00000u);
}

// +inf.
__device__ inline float infinity() {
  return float_of(0x7f800000u);
}

// The sign of `sign` on the magnitude of `size`.
__device__ inline float with_sign(float size, float sign) {
  return float_of((bits_of(size) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

// The greater: NaN if either is NaN, +0 above -0, so that no order of a maximum matters. Selections, no branches: lanes of
// a warp would go their ways one after the other.
__device__ inline float max_of(float a, float b) {
  const float greater = a > b ? a : b, equal = float_of(bits_of(a) & bits_of(b)), most = a == b ? equal : greater;
  return (a == a) & (b == b) ? most : not_a_number();
}

// The lesser: NaN if either is NaN, -0 below +0.
__device__ inline float min_of(float a, float b) {
  const float lesser = a < b ? a : b, equal = float_of(bits_of(a) | bits_of(b)), least = a == b ? equal : lesser;
  return (a == a) & (b == b) ? least : not_a_number();
}

// The nearest integer, ties to even; the sign of a zero is kept.
__device__ inline float round_even(float x) {
  return rintf(x);
}

// exp(x), within 0.87 ulp: x = n ln 2 + r, a polynomial of degree 6 in r, then 2^n as two factors,
// of which only the last can round. Beyond its range x is cut, and the result selected.
__device__ inline float exp32(float x) {
  const bool is_number = x == x, over = x > 89.0f, under = x < -104.0f;
  const float cut = is_number & !over & !under ? x : 0.0f;
  float n = fmaf(cut, 0x1.715476p+0f, 0x1.8p+23f) - 0x1.8p+23f;
  float r = fmaf(n, -0x1.62e400p-1f, cut);
  r = fmaf(n, -0x1.7f7d1cp-20f, r);
  float p = 1.37805939e-3f;
  p = fmaf(p, r, 8.37312452e-3f);
  p = fmaf(p, r, 4.16695364e-2f);
  p = fmaf(p, r, 1.66664720e-1f);
  p = fmaf(p, r, 4.99999851e-1f);
  p = fmaf(p, r, 1.0f);
  p = fmaf(p, r, 1.0f);
  int whole = (int)n;
  int half = whole >> 1;
  p = p * float_of((unsigned int)(half + 127) << 23);
  p = p * float_of((unsigned int)(whole - half + 127) << 23);
  p = over ? infinity() : p;
  p = under ? 0.0f : p;
  return is_number ? p : not_a_number();
}

// log(x), within 0.86 ulp: x = m 2^e with m in [2/3, 4/3), log1p(m - 1) by a polynomial.
__device__ inline float log32(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -infinity() : not_a_number();
  if (x == infinity()) return x;
  bool tiny = x < 0x1p-126f;
  float a = tiny ? x * 0x1p+23f : x;
  int e = (int)((bits_of(a) - 0x3f2aaaabu) & 0xff800000u);
  float m = float_of(bits_of(a) - (unsigned int)e) - 1.0f;
  float scale = fmaf((float)e, 0x1p-23f, tiny ? -23.0f : 0.0f);
  float s = m * m;
  float r = fmaf(-0.130310059f, s, -0.121483512f);
  float t = fmaf(0.140869141f, s, 0.139814854f);
  r = fmaf(r, s, -0.166846126f);
  t = fmaf(t, s, 0.200120345f);
  r = fmaf(r, s, -0.249996200f);
  r = fmaf(t, m, r);
  r = fmaf(r, m, 0.333331972f);
  r = fmaf(r, m, -0.5f);
  r = fmaf(r, s, m);
  return fmaf(scale, 0x1.62e430p-1f, r);
}

// tanh(x), within 1.41 ulp: an odd polynomial below 0.6, else 1 - 2 / (exp(2|x|) + 1).
__device__ inline float tanh32(float x) {
  if (x != x) return not_a_number();
  float t = with_sign(x, 0.0f);
  if (t >= 0.6f) return with_sign(1.0f - 2.0f / (exp32(t + t) + 1.0f), x);
  float s = x * x;
  float p = -5.89059666e-3f;
  p = fmaf(p, s, 2.07923576e-2f);
  p = fmaf(p, s, -5.37828542e-2f);
  p = fmaf(p, s, 1.33319139e-1f);
  p = fmaf(p, s, -3.33332986e-1f);
  return with_sign(fmaf(p * s, t, t), x);
}

// erf(x), within 1.0 ulp: an odd polynomial below 0.92, else 1 - exp of a polynomial.
__device__ inline float erf32(float x) {
  if (x != x) return not_a_number();
  float t = with_sign(x, 0.0f);
  float s = x * x;
  if (t >= 0.921875f) {
    if (t > 4.0f) return with_sign(1.0f, x);
    float r = fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
    float u = fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
    r = fmaf(r, s, u);
    r = fmaf(r, t, -1.06777877e-1f);
    r = fmaf(r, t, -6.34846687e-1f);
    r = fmaf(r, t, -1.28717512e-1f);
    return with_sign(1.0f - exp32(fmaf(r, t, -t)), x);
  }
  float r = -5.96761703e-4f;
  r = fmaf(r, s, 4.99119423e-3f);
  r = fmaf(r, s, -2.67681349e-2f);
  r = fmaf(r, s, 1.12819925e-1f);
  r = fmaf(r, s, -3.76125336e-1f);
  r = fmaf(r, s, 1.28379166e-1f);
  return with_sign(fmaf(r, t, t), x);
}

// sin and cos of an angle in radians, spelled float64, rounded to float: Cody and Waite's reduction,
// then fdlibm's polynomials; within an ulp up to 2^26, NaN for what is not finite.
__device__ inline void sincos64(double angle, float* sine, float* cosine) {
  if (!(angle <= 0x1p+30 && angle >= -0x1p+30)) {
    *sine = *cosine = not_a_number();
    return;
  }
  double n = (angle * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
  double r = ((angle - n * 0x1.921fb54p+0) - n * 0x1.10b461p-30) - n * 0x1.a62633145c06ep-58;
  double z = r * r;
  double p = 1.58969099521155010221e-10;
  p = p * z + -2.50507602534068634195e-08;
  p = p * z + 2.75573137070700676789e-06;
  p = p * z + -1.98412698298579493134e-04;
  p = p * z + 8.33333333332248946124e-03;
  p = p * z + -1.66666666666666324348e-01;
  double q = -1.13596475577881948265e-11;
  q = q * z + 2.08757232129817482790e-09;
  q = q * z + -2.75573143513906633035e-07;
  q = q * z + 2.48015872894767294178e-05;
  q = q * z + -1.38888888888741095749e-03;
  q = q * z + 4.16666666666666019037e-02;
  double s = r + (r * z) * p;
  double c = 1.0 - (0.5 * z - (z * z) * q);
  long long quadrant = (long long)n & 3;
  double across = quadrant & 1 ? c : s;
  double along = quadrant & 1 ? s : c;
  *sine = (float)(quadrant & 2 ? -across : across);
  *cosine = (float)((quadrant + 1) & 2 ? -along : along);
}

// A half's 16 bits as a float; every half is one.
__device__ inline float half_to_float(unsigned short half) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#else
  unsigned int sign = (half & 0x8000u) << 16;
  unsigned int rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return rest > 0x7c00u ? not_a_number() : float_of(sign | 0x7f800000u);
  if (rest < 0x0400u) return with_sign((float)rest * 0x1p-24f, float_of(sign));
  return float_of(sign | ((rest << 13) + 0x38000000u));
#endif
}

// The nearest half's 16 bits, ties to even; too great is inf, NaN is 0x7e00.
__device__ inline unsigned short float_to_half(float value) {
#ifdef __CUDA_ARCH__
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return value == value ? half : (unsigned short)0x7e00;
#else
  unsigned int bits = bits_of(value);
  unsigned int sign = (bits >> 16) & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return 0x7e00;
  if (bits >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (bits < 0x38800000u) {
    float shifted = float_of(bits) * 0x1p+24f;
    return (unsigned short)(sign | (unsigned int)rintf(shifted));
  }
  unsigned int rounded = bits - 0x38000000u + 0x0fffu + ((bits >> 13) & 1u);
  return (unsigned short)(sign | (rounded >> 13));
#endif
}

// A bf16's 16 bits as a float; every bf16 is one.
__device__ inline float bfloat_to_float(unsigned short bfloat) {
  return float_of((unsigned int)bfloat << 16);
}

// The nearest bf16's 16 bits, ties to even; too great is inf, NaN is 0x7fc0.
__device__ inline unsigned short float_to_bfloat(float value) {
  if (value != value) return 0x7fc0;
  unsigned int bits = bits_of(value);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
