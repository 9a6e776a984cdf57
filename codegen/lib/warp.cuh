// The greatest of a warp's values, as max_of has it, for all its lanes. NaNs are one NaN above all; floats are ordered as
// integers are, those below zero the other way around.
__device__ inline float warp_max(float value) {
  const int bits = int(bits_of(value == value ? value : not_a_number()));
  const int greatest = __reduce_max_sync(~0u, bits < 0 ? bits ^ 0x7fffffff : bits);
  return float_of(unsigned(greatest < 0 ? greatest ^ 0x7fffffff : greatest));
}

// The sum of a warp's integers, for all its lanes.
__device__ inline int warp_sum(int value) { return __reduce_add_sync(~0u, value); }
