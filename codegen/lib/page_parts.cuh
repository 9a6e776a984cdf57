// What attention to a page gives: the greatest score, the weights' sum relative to it, the weighted values.
struct PagePart {
  float* top;
  float* total;
  float* sum;  // [HD]
};

// Parts of COUNT pages.
template <int HD, int COUNT>
struct PageParts {
  float top[COUNT], total[COUNT], sum[COUNT][HD];
  __device__ PagePart part(int page) { return {&top[page], &total[page], sum[page]}; }
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
