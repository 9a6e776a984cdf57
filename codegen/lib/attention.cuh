// N values side by side, moved as one.
template <class T, int N>
struct Run {
  alignas(N * sizeof(T)) T value[N];
};

// Halves are two a word.
template <int N>
struct Run<uint16_t, N> {
  alignas(2 * N) unsigned word[N / 2];
};

template <>
struct Run<uint16_t, 1> {
  uint16_t half;
};

// The run that begins at an element.
template <int N, class T>
__device__ inline Run<T, N>& run_at(T* at) { return *(Run<T, N>*)at; }

template <int N, class T>
__device__ inline const Run<T, N>& run_at(const T* at) { return *(const Run<T, N>*)at; }

// The values of a run as floats.
template <int N>
__device__ inline void unpack(const Run<float, N>& run, float (&value)[N]) {
  UNROLL
  for (int i = 0; i < N; i++) value[i] = run.value[i];
}

template <int N>
__device__ inline void unpack(const Run<uint16_t, N>& run, float (&value)[N]) {
  UNROLL
  for (int i = 0; i < N / 2; i++) halves_to_floats(run.word[i], value[2 * i], value[2 * i + 1]);
}

__device__ inline void unpack(const Run<uint16_t, 1>& run, float (&value)[1]) { value[0] = half_to_float(run.half); }

// Two halves of a word, the low one first.
__device__ inline void halves_to_floats(unsigned word, float& low, float& high) {
#ifdef __CUDA_ARCH__
  asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
      : "=f"(low), "=f"(high)
      : "r"(word));
#else
  low = half_to_float(uint16_t(word));
  high = half_to_float(uint16_t(word >> 16));
#endif
}

// The greatest power of two, at most `most`, that divides n.
__host__ __device__ constexpr int run_length(int n, int most) {
  int length = 1;
  while (length < most && n % (2 * length) == 0) length *= 2;
  return length;
}

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

// What attention to a page gives: the greatest score, the weights' sum relative to it, the weighted values.
struct PagePart {
  float* top;
  float* total;
  float* sum;  // [HD]
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

// Parts of COUNT pages.
template <int HD, int COUNT>
struct PageParts {
  float top[COUNT], total[COUNT], sum[COUNT][HD];
  __device__ PagePart part(int page) { return {&top[page], &total[page], sum[page]}; }
};

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

// Attention to the pages so far, for this thread's column.
struct Attended {
  int pages = 0;
  float top = -0.0f, total = -0.0f, sum = -0.0f;
};

// Adds up to 32 pages' parts in order: what was there and what is new, each scaled to the greatest score of both.
template <class Shared, int HD, int COUNT>
__device__ inline void fold_pages(Shared& s, const PageParts<HD, COUNT>& parts, int from, int pages, Attended& so_far) {
  constexpr int MOST = COUNT < 32 ? COUNT : 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = min(int(threadIdx.x), HD - 1);
  if (warp >= s.FOLDERS) return;
  float total[MOST], sum[MOST];
  UNROLL
  for (int p = 0; p < MOST; p++) {
    total[p] = parts.total[from + min(p, pages - 1)];
    sum[p] = parts.sum[from + min(p, pages - 1)][d];
  }
  const float mine = parts.top[from + min(lane, pages - 1)];
  float after = so_far.pages == 0 ? mine : max_of(so_far.top, mine);  // the greatest up to and with this lane's page
  for (int step = 1; step < MOST; step *= 2) after = max_of(after, __shfl_up_sync(~0u, after, step));
  float before = __shfl_up_sync(~0u, after, 1);
  if (lane == 0) before = so_far.top;
  const bool begins = so_far.pages + lane == 0;  // no page before: -inf less -inf is no number
  __syncwarp();
  s.old_share[warp][lane] = begins ? 0.0f : exp32(before - after);
  s.new_share[warp][lane] = begins ? 1.0f : exp32(mine - after);
  so_far.top = __shfl_sync(~0u, after, pages - 1);
  so_far.pages += pages;
  __syncwarp();
  UNROLL
  for (int p = 0; p < MOST; p++) {  // no branch: it would make each load wait for the page before
    const float old_share = s.old_share[warp][p], new_share = s.new_share[warp][p];
    const float next_total = fmaf(so_far.total, old_share, total[p] * new_share);
    const float next_sum = fmaf(so_far.sum, old_share, sum[p] * new_share);
    so_far.total = p < pages ? next_total : so_far.total;
    so_far.sum = p < pages ? next_sum : so_far.sum;
  }
}

// Pages of a single row that several blocks share; they leave their parts here and the last one folds them. What is
// beyond, the last block attends to alone.
constexpr int SHARED_PAGES = 512;

// Of each head; zero at first. A launch leaves `arrived` at 0.
template <int HD>
struct SharedPages {
  alignas(128) PageParts<HD, SHARED_PAGES> parts;
  unsigned arrived;
};

template <int H, int HD>
struct SharedHeads {
  SharedPages<HD> head[H];
};

// NOTE: device memory outside of the three allocations: H * 512 * (HD + 2) floats, until a launch can ask for scratch.
template <int H, int HD>
__device__ SharedHeads<H, HD> shared_heads = {};

// Whether this block is the last of `blocks` to arrive; what the others wrote before is then visible to all its threads.
__device__ inline bool arrives_last(unsigned* arrived, unsigned blocks, int* last) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    *last = atomicAdd(arrived, 1u) == blocks - 1;
    if (*last) *arrived = 0;
  }
  __syncthreads();
  __threadfence();
  return *last;
}
