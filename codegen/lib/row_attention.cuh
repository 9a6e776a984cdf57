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
  alignas(16) float weight[TEAMS * TEAM / 32][PAGE + 4];  // the row's own key's behind the page's
  PageParts<HD, TEAMS> round[2];
  float old_share[FOLDERS][32], new_share[FOLDERS][32];
  int last;
};

// -0.0, which times a weight of 0.0 changes no sum.
__device__ inline void set_nothing(float& value) { value = -0.0f; }

__device__ inline void set_nothing(uint16_t& value) { value = 0x8000; }

// Values are weighed so many at once; a page's rows beside those that take part are nothing.
constexpr int WEIGHED = 16;

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
  if (thread >= HD) return;
  for (int k = first / WEIGHED * WEIGHED; k < first; k++) set_nothing(to.value[k][thread]);
  for (int k = end; k % WEIGHED != 0; k++) set_nothing(to.value[k][thread]);
}

// q . k: one chain a segment of 128 columns, segments in order. The text of 32 columns is a loop's: a block runs it once, and
// fetching straight text of all columns takes longer than their chain.
template <int HD, class T>
__device__ inline float key_dot(const float* q, const T* key) {
  constexpr int RUN = 16 / sizeof(T);
  float dot = -0.0f, chain = -0.0f;  // -0.0 changes no first term
  KEEP_LOOP
  for (int from = 0; from < HD; from += 32) {
    UNROLL
    for (int d = from; d < from + 32; d += RUN) {
      if (HD % 32 && d >= HD) break;
      float value[RUN];
      unpack(run_at<RUN>(key + d), value);
      UNROLL
      for (int i = 0; i < RUN; i += 4) {
        const auto query = run_at<4>(q + d + i);
        UNROLL
        for (int j = 0; j < 4; j++) chain = fmaf(query.value[j], value[i + j], chain);
      }
    }
    if (from % 128 == 96 || from + 32 >= HD) {
      dot = dot + chain;
      chain = -0.0f;
    }
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
__device__ inline Attended weigh_page(S& s, const StagedPage<T, HD>& page, TeamPage at) {
  const int lane = threadIdx.x % 32, column = min(at.thread, HD - 1), copied = at.end - at.owns;
  float* weight = s.weight[threadIdx.x / 32];
  float score[2], top = -infinity();
  UNROLL
  for (int half = 0; half < 2; half++) {
    const int k = half * 32 + lane;
    score[half] = s.score[at.team][k];
    if (k >= at.first && k < at.end) top = max_of(top, score[half]);
  }
  top = warp_max(top);
  UNROLL
  for (int half = 0; half < 2; half++) {
    const int k = half * 32 + lane;
    const float share = exp32(score[half] - top);
    weight[k] = k >= at.first && k < copied ? share : 0.0f;
    if (k >= copied && k < at.end) weight[PAGE] = share;
  }
  __syncwarp();
  Attended part = {1, top, -0.0f, -0.0f};
  KEEP_LOOP
  for (int k = at.first / WEIGHED * WEIGHED; k < copied; k += WEIGHED) {
    float share[WEIGHED], value[WEIGHED];
    UNROLL
    for (int i = 0; i < WEIGHED; i += 4) {
      const auto four = run_at<4>(weight + k + i);
      UNROLL
      for (int j = 0; j < 4; j++) share[i + j] = four.value[j];
    }
    UNROLL
    for (int i = 0; i < WEIGHED; i++) value[i] = cached(page.value[k + i][column]);
    UNROLL
    for (int i = 0; i < WEIGHED; i++) {
      part.total = part.total + share[i];
      part.sum = fmaf(share[i], value[i], part.sum);
    }
  }
  if (at.owns) {
    part.total = part.total + weight[PAGE];
    part.sum = fmaf(weight[PAGE], cached(s.own_value[column]), part.sum);
  }
  return part;
}

// Leaves what a team's thread has of a page for those who fold pages.
template <int HD>
__device__ inline void leave_part(PagePart to, const Attended& part, int column) {
  if (column < HD) to.sum[column] = part.sum;
  if (column > 0) return;
  *to.top = part.top;
  *to.total = part.total;
}
