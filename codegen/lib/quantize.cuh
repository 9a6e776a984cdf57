// The scale of a group of 32 values from the greatest magnitude among them.
__device__ inline float group_scale(float amax) {
  return amax / 127.0f;
}

// Whether words can be made with a scale: above 0 and finite; the words are 0 otherwise.
__device__ inline bool usable_scale(float scale) {
  return scale > 0.0f && scale < infinity();
}

// A whole number clamped to a signed byte's -127..127.
__device__ inline int clamp_word(float whole) {
  return whole > 127.0f ? 127 : whole < -127.0f ? -127 : (int)whole;
}

// The word of a value (q8, and the high one of q8x2).
__device__ inline int word_of(float value, float scale) {
  return usable_scale(scale) ? clamp_word(rintf(value / scale)) : 0;
}

// The low word of a value (q8x2): what the high word leaves, in 128ths of the scale.
__device__ inline int low_word_of(float value, float scale, int word) {
  float fine = scale * 0x1p-7f;
  if (!(fine >= 0x1p-126f && scale < infinity())) return 0;
  return clamp_word(rintf(fmaf(-(float)word, scale, value) / fine));
}

// What a group adds for a weight's offset, from the sum of its words (q8).
__device__ inline float group_sum(float scale, int words) {
  return scale * (float)words;
}

// What a group adds for a weight's offset, from the sums of its high and low words (q8x2).
__device__ inline float group_sum2(float scale, int words, int low) {
  return scale * 0x1p-7f * (float)(128 * words + low);
}

// Quantizes 32 values held by one thread (q8): words, the scale, and the group's sum.
__device__ inline void quantize_group(
    const float* values, signed char* words, float* scale, float* sum) {
  float amax = 0.0f;
  for (int i = 0; i < 32; i++) amax = max_of(amax, with_sign(values[i], 0.0f));
  *scale = group_scale(amax);
  int total = 0;
  for (int i = 0; i < 32; i++) {
    int word = word_of(values[i], *scale);
    words[i] = (signed char)word;
    total += word;
  }
  *sum = group_sum(*scale, total);
}

// Quantizes 32 values held by one thread (q8x2): high and low words, the scale, the group's sum.
__device__ inline void quantize_group2(
    const float* values, signed char* words, signed char* low, float* scale, float* sum) {
  float amax = 0.0f;
  for (int i = 0; i < 32; i++) amax = max_of(amax, with_sign(values[i], 0.0f));
  *scale = group_scale(amax);
  int total = 0;
  int rest = 0;
  for (int i = 0; i < 32; i++) {
    int word = word_of(values[i], *scale);
    int fine = low_word_of(values[i], *scale, word);
    words[i] = (signed char)word;
    low[i] = (signed char)fine;
    total += word;
    rest += fine;
  }
  *sum = group_sum2(*scale, total, rest);
}
