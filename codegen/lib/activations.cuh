// Quantized activations [rows][K]: words of 8 bits, one scale and one sum a group of 32.
struct Q8 {
  static constexpr int WORDS = 1;
  int8_t* words;
  float* scales;
  float* sums;
};

// The same with a second word: value = scale * (word + low / 128), some 14 bits.
struct Q8x2 {
  static constexpr int WORDS = 2;
  int8_t* words;
  int8_t* low;
  float* scales;
  float* sums;
};

// Stores a value's word (or words) and returns what it adds to its group's sum.
__device__ inline int store_word(Q8 q, size_t at, float value, float scale) {
  const int word = word_of(value, scale);
  q.words[at] = int8_t(word);
  return word;
}

__device__ inline int store_word(Q8x2 q, size_t at, float value, float scale) {
  const int word = word_of(value, scale), low = low_word_of(value, scale, word);
  q.words[at] = int8_t(word);
  q.low[at] = int8_t(low);
  return 128 * word + low;
}

// Stores a group's scale and the sum of its values, as formats with an offset need it.
__device__ inline void store_scale(Q8 q, size_t group, float scale, int sum) {
  q.scales[group] = scale;
  q.sums[group] = group_sum(scale, sum);
}

__device__ inline void store_scale(Q8x2 q, size_t group, float scale, int sum) {
  q.scales[group] = scale;
  q.sums[group] = group_sum2(scale, 0, sum);  // 128 * word + low is in the sum already
}
