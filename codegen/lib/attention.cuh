// What a warp keeps of its page: WIDTH columns of its keys (a run more, against bank conflicts) and their weights.
template <class T, int HD>
struct PageScratch {
  static constexpr int WIDTH = HD % 2 ? 16 : 64 / sizeof(T);
  static constexpr int LENGTH = 16 / sizeof(T);  // of what is read at once
  Run<T, LENGTH> key[PAGE][WIDTH / LENGTH + 1];
  alignas(16) float weight[PAGE];
};

// Columns of a page's keys on their way to shared memory: a lane's part of [64][WIDTH].
template <class T, int HD>
struct KeyColumns {
  static constexpr int LENGTH = run_length(HD, 16 / sizeof(T)), EACH = PageScratch<T, HD>::WIDTH / LENGTH;
  static constexpr int COUNT = PAGE * EACH / 32;
  Run<T, LENGTH> run[COUNT];
  __device__ void load(const T* page, int column, int lane, int first, int end) {
    const T* from = page + min(column + lane % EACH * LENGTH, HD - LENGTH);
    constexpr int STEP = 32 / EACH;  // keys that a warp loads at once
    if (end - first == PAGE) {
      UNROLL
      for (int i = 0; i < COUNT; i++) run[i] = run_at<LENGTH>(from + (i * STEP + lane / EACH) * HD);
    } else {
      UNROLL
      for (int i = 0; i < COUNT; i++) {  // in the place of keys that take no part, others
        run[i] = run_at<LENGTH>(from + min(max(i * STEP + lane / EACH, first), end - 1) * HD);
      }
    }
  }
  __device__ void store(PageScratch<T, HD>& s, int lane) const {
    UNROLL
    for (int i = 0; i < COUNT; i++) {
      run_at<LENGTH>((T*)s.key[(i * 32 + lane) / EACH] + lane % EACH * LENGTH) = run[i];
    }
  }
};

// q . k for a lane's keys, lane and lane + 32, of a page: one chain a segment of 128 columns, segments in order.
template <class T, int HD>
__device__ inline void page_dots(const T* page, KeyColumns<T, HD>& columns, const float* q, PageScratch<T, HD>& s,
                                 int first, int end, float (&dot)[2]) {
  constexpr int WIDTH = PageScratch<T, HD>::WIDTH, LENGTH = PageScratch<T, HD>::LENGTH;
  const int lane = threadIdx.x % 32;
  float chain[2] = {-0.0f, -0.0f};  // -0.0 changes no first term
  dot[0] = dot[1] = -0.0f;
  for (int column = 0; column < HD; column += WIDTH) {
    columns.store(s, lane);
    __syncwarp();
    if (column + WIDTH < HD) columns.load(page, column + WIDTH, lane, first, end);
    UNROLL
    for (int c = 0; c < WIDTH; c += LENGTH) {
      if (HD % WIDTH != 0 && column + c >= HD) break;
      float query[LENGTH], key[2][LENGTH];
      UNROLL
      for (int i = 0; i < LENGTH; i += 4) {
        const auto part = run_at<4>(q + column + c + i);
        for (int j = 0; j < 4; j++) query[i + j] = part.value[j];
      }
      unpack(s.key[lane][c / LENGTH], key[0]);
      unpack(s.key[32 + lane][c / LENGTH], key[1]);
      UNROLL
      for (int i = 0; i < LENGTH; i++) {
        if (HD % LENGTH != 0 && column + c + i >= HD) continue;
        chain[0] = fmaf(query[i], key[0][i], chain[0]);
        chain[1] = fmaf(query[i], key[1][i], chain[1]);
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

// Values of KEYS keys on their way to a lane, whose columns are runs: run i begins at column (32 i + lane) * LENGTH.
template <class T, int HD>
struct ValueRows {
  static constexpr int LENGTH = HD % 32 == 0 ? run_length(HD / 32, 16 / sizeof(T)) : 1;
  static constexpr int COUNT = (HD + 32 * LENGTH - 1) / (32 * LENGTH);
  static constexpr int WORDS = COUNT * ((LENGTH * int(sizeof(T)) + 3) / 4);  // registers a key
  static constexpr int KEYS = WORDS >= 4 ? 4 : WORDS >= 2 ? 8 : 16;
  Run<T, LENGTH> run[KEYS][COUNT];
  __device__ void load(const T* page, int start, int end, int lane) {
    UNROLL
    for (int i = 0; i < COUNT; i++) {
      const T* from = page + start * HD + min((i * 32 + lane) * LENGTH, HD - LENGTH);
      if (start + KEYS <= end) {
        UNROLL
        for (int k = 0; k < KEYS; k++) run[k][i] = run_at<LENGTH>(from + k * HD);
      } else {
        UNROLL
        for (int k = 0; k < KEYS; k++) run[k][i] = run_at<LENGTH>(from + min(k, end - 1 - start) * HD);  // none beyond
      }
    }
  }
};

// Sums of a lane's columns and of the weights, as they grow key by key.
template <class T, int HD>
struct ValueSums {
  using V = ValueRows<T, HD>;
  float total = -0.0f, sum[V::COUNT][V::LENGTH];
  __device__ void begin() {
    for (int i = 0; i < V::COUNT; i++) {
      for (int j = 0; j < V::LENGTH; j++) sum[i][j] = -0.0f;
    }
  }
  __device__ void add(const V& value, int k, float weight) {
    total = total + weight;
    UNROLL
    for (int i = 0; i < V::COUNT; i++) {
      float v[V::LENGTH];
      unpack(value.run[k][i], v);
      UNROLL
      for (int j = 0; j < V::LENGTH; j++) sum[i][j] = fmaf(weight, v[j], sum[i][j]);
    }
  }
  __device__ void add(const V& value, const float* weight, int start, int first, int end) {
    float share[V::KEYS];
    UNROLL
    for (int k = 0; k < V::KEYS; k += 4) {
      const auto part = run_at<4>(weight + start + k);
      for (int j = 0; j < 4; j++) share[k + j] = part.value[j];
    }
    if (start >= first && start + V::KEYS <= end) {
      UNROLL
      for (int k = 0; k < V::KEYS; k++) add(value, k, share[k]);
    } else {
      UNROLL
      for (int k = 0; k < V::KEYS; k++) {
        if (start + k >= first && start + k < end) add(value, k, share[k]);
      }
    }
  }
};

// A score drawn in between -cap and cap.
__device__ inline float capped(float score, float cap) { return cap * tanh32(score / cap); }

// This warp's attention to a page's keys [first, end); score_of(dot) is a key's score.
template <class T, int HD, class Score>
__device__ inline void attend_page(const float* q, PageScratch<T, HD>& s, const T* keys, const T* values, int first,
                                   int end, Score score_of, PagePart part) {
  using V = ValueRows<T, HD>;
  const int lane = threadIdx.x % 32;
  KeyColumns<T, HD> columns;
  V now, next = {};  // values are on their way while others are worked on
  int start = first / V::KEYS * V::KEYS;
  columns.load(keys, 0, lane, first, end);
  now.load(values, start, end, lane);
  float score[2], top = -infinity();
  page_dots(keys, columns, q, s, first, end, score);
  for (int half = 0; half < 2; half++) {
    score[half] = score_of(score[half]);
    if (half * 32 + lane >= first && half * 32 + lane < end) top = max_of(top, score[half]);
  }
  top = warp_max(top);
  for (int half = 0; half < 2; half++) s.weight[half * 32 + lane] = exp32(score[half] - top);
  __syncwarp();
  ValueSums<T, HD> sums;
  sums.begin();
  for (; start < end; start += 2 * V::KEYS) {
    if (start + V::KEYS < end) next.load(values, start + V::KEYS, end, lane);
    sums.add(now, s.weight, start, first, end);
    if (start + V::KEYS >= end) break;
    if (start + 2 * V::KEYS < end) now.load(values, start + 2 * V::KEYS, end, lane);
    sums.add(next, s.weight, start + V::KEYS, first, end);
  }
  for (int i = 0; i < V::COUNT; i++) {
    for (int j = 0; j < V::LENGTH; j++) {
      const int d = (i * 32 + lane) * V::LENGTH + j;
      if (d < HD) part.sum[d] = sums.sum[i][j];
    }
  }
  if (lane == 0) {
    *part.top = top;
    *part.total = sums.total;
  }
}

// A block's shared memory: the query, each warp's page at work, the parts of two rounds of pages, the shares of a fold.
template <class T, int HD, int WARPS>
struct AttentionShared {
  static constexpr int FOLDERS = (HD + 31) / 32;  // warps whose threads each own a column of the result
  alignas(16) float q[FOLDERS * 32];
  PageScratch<T, HD> page[WARPS];
  PageParts<HD, WARPS> round[2];
  float old_share[FOLDERS][32], new_share[FOLDERS][32];
  int last;
};
