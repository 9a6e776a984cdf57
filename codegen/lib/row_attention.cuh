// A page's keys and values in shared memory; a key has 16 bytes more, against bank conflicts.
template <class T, int HD>
struct StagedPage {
  static constexpr int RUN = 16 / sizeof(T);
  static_assert(HD % RUN == 0, "keys are copied 16 bytes at once");
  alignas(16) T key[PAGE][HD + RUN];
  alignas(16) T value[PAGE][HD];
};

// What a row's own launch shares: its query, key and value, and for each team the page at work and the next one.
template <class T, int HD, int PAIRS, int TEAMS>
struct RowAttentionShared {
  static constexpr int TEAM = HD <= 64 ? 64 : (HD + 31) / 32 * 32;  // threads of a team: one a key, one a column
  static constexpr int FOLDERS = (HD + 31) / 32;
  StagedPage<T, HD> page[2][TEAMS];
  alignas(16) float q[FOLDERS * 32];
  alignas(16) T own_key[HD], own_value[HD];
  Turns<PAIRS> turns;
  float exchange[3][HD];
  float score[TEAMS][PAGE];
  alignas(16) float weight[TEAMS * TEAM / 32][PAGE];
  PageParts<HD, TEAMS> round[2];
  float old_share[FOLDERS][32], new_share[FOLDERS][32];
  int last;
};

// Begins the copy of a page's keys and values [first, end) by the THREADS threads of a team, this one `thread`; one group.
template <int THREADS, class T, int HD>
__device__ inline void stage_page(AsyncCopies& copies, StagedPage<T, HD>& to, const T* keys, const T* values, int first, int end, int thread) {
  constexpr int RUN = StagedPage<T, HD>::RUN, RUNS = HD / RUN;
  for (int i = first * RUNS + thread; i < end * RUNS; i += THREADS) {
    const int k = i / RUNS, d = i % RUNS * RUN;
    copy_async<16>(copies, &to.key[k][d], keys + k * HD + d);
    copy_async<16>(copies, &to.value[k][d], values + k * HD + d);
  }
  commit_copies(copies);
}

// q . k: one chain a segment of 128 columns, segments in order.
template <int HD, class T>
__device__ inline float key_dot(const float* q, const T* key) {
  constexpr int RUN = 16 / sizeof(T);
  float dot = -0.0f;  // -0.0 changes no first term
  for (int segment = 0; segment < HD; segment += 128) {
    float chain = -0.0f;
    UNROLL
    for (int d = segment; d < segment + 128; d += RUN) {
      if (d >= HD) break;
      float value[RUN];
      unpack(run_at<RUN>(key + d), value);
      UNROLL
      for (int i = 0; i < RUN; i += 4) {
        const auto query = run_at<4>(q + d + i);
        UNROLL
        for (int j = 0; j < 4; j++) chain = fmaf(query.value[j], value[i + j], chain);
      }
    }
    dot = dot + chain;
  }
  return dot;
}

// One value of a cache as a float.
__device__ inline float cached(float value) { return value; }

__device__ inline float cached(uint16_t value) { return half_to_float(value); }

// A page that a team attends to: the keys [first, end) of it that take part, and whether the row's own is the last of them.
struct TeamPage {
  int team, thread;
  int first, end;
  bool owns;
};

// The scores of a staged page's keys, a thread a key; a barrier must follow.
template <class S, class T, int HD, class Score>
__device__ inline void score_page(S& s, const StagedPage<T, HD>& page, TeamPage at, Score score_of) {
  const int k = at.thread;
  if (k < at.first || k >= at.end) return;
  s.score[at.team][k] = score_of(key_dot<HD>(s.q, at.owns && k == at.end - 1 ? s.own_key : page.key[k]));
}

// A column of a page's weighted values, and the weights' sum, from its scores; every warp of the team makes the weights.
template <class S, class T, int HD>
__device__ inline void weigh_page(S& s, const StagedPage<T, HD>& page, TeamPage at, PagePart part) {
  const int lane = threadIdx.x % 32, d = at.thread;
  float* weight = s.weight[threadIdx.x / 32];
  float score[2], top = -infinity();
  for (int half = 0; half < 2; half++) {
    const int k = half * 32 + lane;
    score[half] = s.score[at.team][k];
    if (k >= at.first && k < at.end) top = max_of(top, score[half]);
  }
  top = warp_max(top);
  for (int half = 0; half < 2; half++) weight[half * 32 + lane] = exp32(score[half] - top);
  __syncwarp();
  float total = -0.0f, sum = -0.0f;
  const int copied = at.end - (at.owns ? 1 : 0), column = min(d, HD - 1);
  int k = at.first;
  for (; k < copied && k % 8 != 0; k++) {
    total = total + weight[k];
    sum = fmaf(weight[k], cached(page.value[k][column]), sum);
  }
  for (; k + 8 <= copied; k += 8) {
    float share[8];
    UNROLL
    for (int i = 0; i < 8; i += 4) {
      const auto four = run_at<4>(weight + k + i);
      for (int j = 0; j < 4; j++) share[i + j] = four.value[j];
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
      total = total + share[i];
      sum = fmaf(share[i], cached(page.value[k + i][column]), sum);
    }
  }
  for (; k < copied; k++) {
    total = total + weight[k];
    sum = fmaf(weight[k], cached(page.value[k][column]), sum);
  }
  if (at.owns) {
    total = total + weight[copied];
    sum = fmaf(weight[copied], cached(s.own_value[column]), sum);
  }
  if (d < HD) part.sum[d] = sum;
  if (d == 0) {
    *part.top = top;
    *part.total = total;
  }
}
