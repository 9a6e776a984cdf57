// What a row's pairs are turned by.
template <int PAIRS>
struct Turns {
  float sine[PAIRS], cosine[PAIRS];
};

// Turns of a position, by the whole block: its angles are radians[i] a position, divided by freqs[i] where there are some.
template <int PAIRS>
__device__ inline void fill_turns(Turns<PAIRS>& turns, const double* radians, const float* freqs, int pos) {
  for (int i = threadIdx.x; i < PAIRS; i += blockDim.x) {
    const double angle = double(pos) * radians[i];
    sincos64(freqs ? angle / double(freqs[i]) : angle, &turns.sine[i], &turns.cosine[i]);
  }
}

// Turns a head that a warp holds as each_value<HD, 32>: pairs (i, i + PAIRS), or neighbours; exchange: HD floats of its own.
template <int HD, int PAIRS, bool NEIGHBOURS, int COUNT>
__device__ inline void turn_head(float (&value)[COUNT], float* exchange, const Turns<PAIRS>& turns) {
  each_value<HD, 32>([&](int i, int d) { exchange[d] = value[i]; });
  __syncwarp();
  each_value<HD, 32>([&](int i, int d) {
    if (d >= 2 * PAIRS) return;
    const bool first = NEIGHBOURS ? d % 2 == 0 : d < PAIRS;
    const float other = exchange[NEIGHBOURS ? d ^ 1 : first ? d + PAIRS : d - PAIRS];
    const float c = turns.cosine[NEIGHBOURS ? d / 2 : d % PAIRS], s = turns.sine[NEIGHBOURS ? d / 2 : d % PAIRS];
    value[i] = first ? value[i] * c - other * s : other * s + value[i] * c;
  });
  __syncwarp();
}

// What a block of heads shares: its row's turns, and a head of each warp.
template <int HD, int PAIRS, int WARPS>
struct HeadsShared {
  Turns<PAIRS> turns;
  float exchange[WARPS][HD];
};
