// N values of a cache side by side, moved as one.
template <class T, int N>
struct Run {
  alignas(sizeof(T) * N) T at[N];
};

// The greatest power of two, at most `most`, that divides n.
constexpr int run_length(int n, int most) {
  int length = 1;
  while (length < most && n % (2 * length) == 0) length *= 2;
  return length;
}

// A cached value as a float.
__device__ inline float cached(float value) { return value; }

__device__ inline float cached(uint16_t half) { return half_to_float(half); }

// What a warp keeps of its page: WIDTH columns of the 64 keys (rows 16 bytes longer, against bank conflicts), then the keys' weights.
template <class T, int HD>
struct PageScratch {
  static constexpr int WIDTH = HD % 2 ? 16 : 64 / sizeof(T);
  alignas(16) T key[PAGE][WIDTH + 16 / sizeof(T)];
  float weight[PAGE];
};

// Columns of a page's keys on their way to shared memory: a lane's part of [64][WIDTH].
template <class T, int HD>
struct KeyColumns {
  static constexpr int WIDTH = PageScratch<T, HD>::WIDTH, LENGTH = run_length(HD, 16 / sizeof(T)), EACH = WIDTH / LENGTH;
  static constexpr int COUNT = PAGE * EACH / 32;
  Run<T, LENGTH> run[COUNT];
  __device__ void load(const T* page, int column, int lane, int first, int end) {
    UNROLL
    for (int i = 0; i < COUNT; i++) {
      const int key = (i * 32 + lane) / EACH, c = column + (i * 32 + lane) % EACH * LENGTH;  // beyond the ends: what is there
      run[i] = *(const Run<T, LENGTH>*)(page + min(max(key, first), end - 1) * HD + min(c, HD - LENGTH));
    }
  }
  __device__ void store(PageScratch<T, HD>& s, int lane) const {
    UNROLL
    for (int i = 0; i < COUNT; i++) *(Run<T, LENGTH>*)&s.key[(i * 32 + lane) / EACH][(i * 32 + lane) % EACH * LENGTH] = run[i];
  }
};

// q . k for a lane's keys, lane and lane + 32, of a page's [first, end): one chain a segment of 128 columns, segments in order.
template <class T, int HD>
__device__ inline void page_dots(const T* page, const float* q, PageScratch<T, HD>& s, int first, int end, float (&dot)[2]) {
  constexpr int WIDTH = PageScratch<T, HD>::WIDTH, LENGTH = 16 / sizeof(T);
  const int lane = threadIdx.x % 32;
  float chain[2] = {-0.0f, -0.0f};  // -0.0 changes no first term
  KeyColumns<T, HD> columns;
  dot[0] = dot[1] = -0.0f;
  columns.load(page, 0, lane, first, end);
  for (int column = 0; column < HD; column += WIDTH) {
    columns.store(s, lane);
    __syncwarp();
    if (column + WIDTH < HD) columns.load(page, column + WIDTH, lane, first, end);
    for (int c = 0; c < WIDTH; c += LENGTH) {
      if (HD % WIDTH != 0 && column + c >= HD) break;
      for (int half = 0; half < 2; half++) {
        const int key = half * 32 + lane;
        if (key < first || key >= end) continue;
        const auto run = *(const Run<T, LENGTH>*)&s.key[key][c];
        UNROLL
        for (int i = 0; i < LENGTH; i++) {
          if (HD % LENGTH == 0 || column + c + i < HD) chain[half] = fmaf(q[column + c + i], cached(run.at[i]), chain[half]);
        }
      }
    }
    __syncwarp();
    if ((column + WIDTH) % 128 != 0 && column + WIDTH < HD) continue;
    for (int half = 0; half < 2; half++) {
      dot[half] = dot[half] + chain[half];
      chain[half] = -0.0f;
    }
  }
}

// Which columns of a head a lane sums values for: run i of LENGTH starts at column (32 i + lane) * LENGTH.
template <class T, int HD>
struct ValueColumns {
  static constexpr int LENGTH = HD % 32 == 0 ? run_length(HD / 32, 16 / sizeof(T)) : 1;
  static constexpr int COUNT = (HD + 32 * LENGTH - 1) / (32 * LENGTH);
  static constexpr int WORDS = COUNT * ((LENGTH * int(sizeof(T)) + 3) / 4);  // registers a key
  static constexpr int KEYS = WORDS >= 8 ? 4 : WORDS >= 4 ? 8 : 16;          // in flight
};

// The weights' sum of a page's keys [first, end) and, for this lane's columns, their values' weighted sums, in key order.
template <class T, int HD, class V = ValueColumns<T, HD>>
__device__ inline float page_values(const T* page, const float* weight, int first, int end, float (&sum)[V::COUNT][V::LENGTH]) {
  const int lane = threadIdx.x % 32;
  float total = -0.0f;
  for (int i = 0; i < V::COUNT; i++) {
    for (int j = 0; j < V::LENGTH; j++) sum[i][j] = -0.0f;
  }
  for (int start = first; start < end; start += V::KEYS) {
    Run<T, V::LENGTH> value[V::KEYS][V::COUNT];
    UNROLL
    for (int k = 0; k < V::KEYS; k++) {
      UNROLL
      for (int i = 0; i < V::COUNT; i++) {
        const int key = min(start + k, end - 1), d = min((i * 32 + lane) * V::LENGTH, HD - V::LENGTH);
        value[k][i] = *(const Run<T, V::LENGTH>*)(page + key * HD + d);
      }
    }
    UNROLL
    for (int k = 0; k < V::KEYS; k++) {
      if (start + k >= end) break;
      const float share = weight[start + k];
      total = total + share;
      UNROLL
      for (int i = 0; i < V::COUNT; i++) {
        UNROLL
        for (int j = 0; j < V::LENGTH; j++) sum[i][j] = fmaf(share, cached(value[k][i].at[j]), sum[i][j]);
      }
    }
  }
  return total;
}

// A block's shared memory: the query, each warp's page at work, and the results of two rounds of pages.
template <class T, int HD, int WARPS>
struct AttentionShared {
  static constexpr int FOLDERS = (HD + 31) / 32;  // warps whose threads each own a column of the result
  alignas(16) float q[(HD + 31) / 32 * 32];
  PageScratch<T, HD> page[WARPS];
  float top[2][WARPS], total[2][WARPS], sum[2][WARPS][HD];
  float old_share[FOLDERS][WARPS], new_share[FOLDERS][WARPS];
};

// This warp's page: its keys' greatest score, their weights relative to it, the weights' sum and the weighted values.
template <class T, int HD, int WARPS>
__device__ inline void attend_page(AttentionShared<T, HD, WARPS>& s, int round, const T* keys, const T* values, int first, int end, float scale) {
  using V = ValueColumns<T, HD>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  PageScratch<T, HD>& scratch = s.page[warp];
  float score[2], top = -infinity(), sum[V::COUNT][V::LENGTH];
  page_dots<T, HD>(keys, s.q, scratch, first, end, score);
  for (int half = 0; half < 2; half++) {
    score[half] = score[half] * scale;
    if (half * 32 + lane >= first && half * 32 + lane < end) top = max_of(top, score[half]);
  }
  for (int step = 1; step < 32; step *= 2) top = max_of(top, __shfl_xor_sync(~0u, top, step));
  for (int half = 0; half < 2; half++) scratch.weight[half * 32 + lane] = exp32(score[half] - top);
  __syncwarp();
  const float total = page_values<T, HD>(values, scratch.weight, first, end, sum);
  for (int i = 0; i < V::COUNT; i++) {
    for (int j = 0; j < V::LENGTH; j++) {
      const int d = (i * 32 + lane) * V::LENGTH + j;
      if (d < HD) s.sum[round % 2][warp][d] = sum[i][j];
    }
  }
  if (lane == 0) {
    s.top[round % 2][warp] = top;
    s.total[round % 2][warp] = total;
  }
}

// Attention over the pages so far, for this thread's column.
struct Attended {
  float top = -0.0f, total = -0.0f, sum = -0.0f;
};

// Adds a round's pages in order: what was there and what is new, each scaled to the greatest score of both.
template <class T, int HD, int WARPS>
__device__ inline void fold_pages(AttentionShared<T, HD, WARPS>& s, int round, int pages, Attended& so_far) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp >= s.FOLDERS) return;
  const float* page_top = s.top[round % 2];
  if (lane < pages) {
    const bool begins = round == 0 && lane == 0;  // no page before: exp of -inf less -inf is no number
    float before = round == 0 ? page_top[0] : so_far.top;
    for (int p = 0; p < lane; p++) before = max_of(before, page_top[p]);
    const float after = max_of(before, page_top[lane]);
    s.old_share[warp][lane] = begins ? 0.0f : exp32(before - after);
    s.new_share[warp][lane] = begins ? 1.0f : exp32(page_top[lane] - after);
  }
  __syncwarp();
  const int d = min(int(threadIdx.x), HD - 1);
  so_far.top = round == 0 ? page_top[0] : so_far.top;
  for (int p = 0; p < pages; p++) {
    const float old_share = s.old_share[warp][p], new_share = s.new_share[warp][p];
    so_far.top = max_of(so_far.top, page_top[p]);
    so_far.total = fmaf(so_far.total, old_share, s.total[round % 2][p] * new_share);
    so_far.sum = fmaf(so_far.sum, old_share, s.sum[round % 2][p][d] * new_share);
  }
}
