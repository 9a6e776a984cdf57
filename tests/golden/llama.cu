// llama.model, compiled by monocu for a model's checkpoint
// SPDX-License-Identifier: Apache-2.0 (this file is generated: it is yours)
//
// numerics int8, cache f16, at most 64 rows a step
//   nvcc -std=c++17 -O3 -fmad=false -lineinfo -gencode=arch=compute_90a,code=sm_90a llama.cu
//   ncu --set full --import-source yes ./a.out ...
//
// kernel                                       launches
// embed_norm                                   1
// linear_attn_q_attn_k_attn_v                  4
// heads                                        4
// attention                                    4
// row_attention                                4
// quantize                                     4
// linear_residual_attn_output                  4
// glu_ffn_gate_ffn_up                          4
// linear_residual_ffn_down                     3
// linear_residual_ffn_down_2                   1
// embed_norm_2                                 1
// head_choose_token_embd                       1
// choose_key                                   1
//
// weights 1064192 bytes, buffers 93440 bytes, caches 512 bytes a position of a sequence
#include <cstdint>

// What one step works on, on the device; kernels read the true counts here.
constexpr int MAX_ROWS = 64;    // rows of a step, at most
constexpr int MAX_WANTED = 8;  // of them with results
constexpr int MAX_SEQS = 8;    // sequences at once
struct Step {
  int rows, wanted;         // T, R; they stay while a step runs, so that kernels may read them at once
  int keep_logits;          // whether the logits are asked for, not the choices from them alone
  int turn;                 // which of two places the chosen tokens go to
  int token[MAX_ROWS];      // of each row: its token,
  int seq[MAX_ROWS];        // its sequence,
  int pos[MAX_ROWS];        // its position there
  int want[MAX_WANTED];     // the row of each wanted result
  int pages_per_seq;
  int* pages;               // [MAX_SEQS][pages_per_seq]: which page of a cache holds 64 positions of a sequence
};

// f32: plain elements; byte offsets of its parts, -1: none.
struct F32 {
  static constexpr int GGML = 0, BLOCK = 1, SIZE = 4, BITS = 32;
  static constexpr int SCALE = -1, OFFSET = -1, LEVELS = 0, ZERO = 0;
  static constexpr int SCALES = -1, GROUP = 32, HIGH = -1, RUN = 16;
};
// q8_0: 32 weights a block of 34 bytes; byte offsets of its parts, -1: none.
struct Q8_0 {
  static constexpr int GGML = 8, BLOCK = 32, SIZE = 34, BITS = 8;
  static constexpr int SCALE = 0, OFFSET = -1, LEVELS = 2, ZERO = 0;
  static constexpr int SCALES = -1, GROUP = 32, HIGH = -1, RUN = 16;
};

// (helpers)

// ---- kernels, in the order of their launches

// llama.model:27  n = rmsnorm(x, w.attn_norm, eps)
// llama.model:39  x = embed(token, token_embd)
//   kernel embed_norm(token: i32[T], token_embd: q8_0[160, 64], attn_norm: f32[64]) {
//     x: f32[T, 64] = embed(token, token_embd)
//     mul: f32[T, 64] = x * attn_norm
//     q: q8[T, 64] = quantize(mul)
//     s: f32[T, 2] = square_sums(x)
//     return x, q, s
//   }
template <int D, int THREADS>
__global__ void __launch_bounds__(THREADS) embed_norm(const Step* step, const int* token, const uint8_t* token_embd, const float* attn_norm, float* x_out, Q8 q_out, float* s_out) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= step->rows) return;
  const size_t at = size_t(row) * D;
  float x[4];
  float mul[4];
  each_value_of_chunk<D, THREADS>([&](int i, int d) {
    x[i] = embedded<Q8_0, 160, D>(token_embd, token[row], d);
    x_out[at + d] = x[i];
    const float attn_norm_d = attn_norm[d];
    mul[i] = x[i] * attn_norm_d;
  });
  quantize_chunk<D, THREADS>(mul, row, q_out);
  square_sums_chunk<D, THREADS>(x, row, s_out);
}

// llama.model:27  n = rmsnorm(x, w.attn_norm, eps)
// llama.model:28  q = turned(heads(linear(n, w.attn_q), H))
// llama.model:29  k = turned(heads(linear(n, w.attn_k), KV))
// llama.model:31  c.v = append(c.v, heads(linear(n, w.attn_v), KV))
//   kernel sibling_linear(q: q8[T, 64], attn_q: q8_0[64, 64], s: f32[T, 2], attn_k: q8_0[32, 64], attn_v: q8_0[32, 64]) {
//     linear: f32[T, 64] = linear(q, attn_q)
//     root_factor: f32[T, 1] = root_factor(s, n=64, eps=9.999999747378752e-06)
//     attn_q_out: f32[T, 64] = linear * root_factor
//     linear_2: f32[T, 32] = linear(q, attn_k)
//     attn_k_out: f32[T, 32] = linear_2 * root_factor
//     linear_3: f32[T, 32] = linear(q, attn_v)
//     attn_v_out: f32[T, 32] = linear_3 * root_factor
//     return attn_q_out, attn_k_out, attn_v_out
//   }
template <int K, class FORM, int ROWS, class W0, int N0, class W1, int N1, class W2, int N2>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT) linear_attn_q_attn_k_attn_v(const Step* step, Q8 x, const uint8_t* attn_q, const float* square_sums, const uint8_t* attn_k, const uint8_t* attn_v, float* attn_q_out, float* attn_k_out, float* attn_v_out) {
  using L = typename FORM::Shape;
  grid_dependency_trigger();
  const int rows = step->rows, first = first_row<FORM, ROWS>();
  if (first >= rows) return grid_dependency_wait();
  auto& s = shared<typename FORM::Shared>();
  int block = output_block<FORM>();  // of this projection: each takes its blocks, then the next
  if (block < L::blocks(N0)) {
    const auto w = early_weights<W0, N0, K, FORM>(block, {attn_q});
    grid_dependency_wait();
    const auto sums_0 = load_root_sums<2, ROWS, L>(square_sums, first, rows);
    block_dots<W0, N0, K, FORM, ROWS>(s, block, {attn_q}, w, x, first, rows);
    fold_root_sums(s.factor[0], sums_0, 64.0f, 1.0e-5f);
    __syncthreads();
    each_output<N0, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
      const float dot = dot_of(s, 0, r, output);
      attn_q_out[size_t(first + r) * N0 + n] = dot * s.factor[0][r];
    });
    return;
  }
  block -= L::blocks(N0);
  if (block < L::blocks(N1)) {
    const auto w = early_weights<W1, N1, K, FORM>(block, {attn_k});
    grid_dependency_wait();
    const auto sums_0 = load_root_sums<2, ROWS, L>(square_sums, first, rows);
    block_dots<W1, N1, K, FORM, ROWS>(s, block, {attn_k}, w, x, first, rows);
    fold_root_sums(s.factor[0], sums_0, 64.0f, 1.0e-5f);
    __syncthreads();
    each_output<N1, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
      const float dot = dot_of(s, 0, r, output);
      attn_k_out[size_t(first + r) * N1 + n] = dot * s.factor[0][r];
    });
    return;
  }
  block -= L::blocks(N1);
  const auto w = early_weights<W2, N2, K, FORM>(block, {attn_v});
  grid_dependency_wait();
  const auto sums_0 = load_root_sums<2, ROWS, L>(square_sums, first, rows);
  block_dots<W2, N2, K, FORM, ROWS>(s, block, {attn_v}, w, x, first, rows);
  fold_root_sums(s.factor[0], sums_0, 64.0f, 1.0e-5f);
  __syncthreads();
  each_output<N2, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const float dot = dot_of(s, 0, r, output);
    attn_v_out[size_t(first + r) * N2 + n] = dot * s.factor[0][r];
  });
}

// llama.model:24  return rope(x, theta, interleaved=1, dims=turn, freqs=rope_freqs)
// llama.model:30  c.k = append(c.k, k)
// llama.model:31  c.v = append(c.v, heads(linear(n, w.attn_v), KV))
//   kernel head_epilogue(heads: f32[T, 4, 16], rows: rows[T], heads_2: f32[T, 2, 16], k: cache_f16[2, 16], heads_3: f32[T, 2, 16], v: cache_f16[2, 16]) {
//     q: f32[T, 4, 16] = rope(heads, rows, theta=10000.0, interleaved=1, dims=16)
//     rope: f32[T, 2, 16] = rope(heads_2, rows, theta=10000.0, interleaved=1, dims=16)
//     cast: f16[T, 2, 16] = cast(rope, dtype=f16)
//     k_2: cache_f16[2, 16] = append(k, cast, rows)
//     cast_2: f16[T, 2, 16] = cast(heads_3, dtype=f16)
//     v_2: cache_f16[2, 16] = append(v, cast_2, rows)
//     return q, k_2, v_2
//   }
template <int HD, int WARPS, int H0, int H1, int H2>
__global__ void __launch_bounds__(32 * WARPS) heads(const Step* step, const float* attn_q_out, float* q_out, const float* attn_k_out, uint16_t* k_out, const float* attn_v_out, uint16_t* v_out) {
  constexpr int PAIRS = 8;
  static constexpr double RADIANS[] = {  // a position: theta^(-2i / dims) / factor
      0x1.0000000000000p+0, 0x1.43d136248490fp-2, 0x1.999999999999ap-4, 0x1.030dc4ea03a72p-5,
      0x1.47ae147ae147bp-7, 0x1.9e7c6e43390b7p-9, 0x1.0624dd2f1a9fcp-10, 0x1.4b96be9c2da2cp-12,
  };
  grid_dependency_wait();
  const int row = blockIdx.x, warp = threadIdx.x / 32, pos = step->pos[row];
  if (row >= step->rows) return;
  auto& s = shared<HeadsShared<HD, PAIRS, WARPS>>();
  fill_turns(s.turns, RADIANS, nullptr, pos);
  __syncthreads();
  const int page = step->pages[size_t(step->seq[row]) * step->pages_per_seq + pos / PAGE];
  int head = blockIdx.y * WARPS + warp;  // of q, then of k, then of v
  if (head < H0) {
    const size_t at = (size_t(row) * H0 + head) * HD;
    float q[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { q[i] = attn_q_out[at + d]; });
    turn_head<HD, PAIRS, true>(q, s.exchange[warp], s.turns);
    each_value<HD, 32>([&](int i, int d) { q_out[at + d] = q[i]; });
    return;
  }
  head -= H0;
  if (head < H1) {
    const size_t at = (size_t(row) * H1 + head) * HD;
    float k[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { k[i] = attn_k_out[at + d]; });
    turn_head<HD, PAIRS, true>(k, s.exchange[warp], s.turns);
    uint16_t* entry = cache_page<H1, HD>(k_out, page, head) + pos % PAGE * HD;
    each_value<HD, 32>([&](int i, int d) { entry[d] = float_to_half(k[i]); });
    return;
  }
  head -= H1;
  if (head < H2) {
    const size_t at = (size_t(row) * H2 + head) * HD;
    float v[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { v[i] = attn_v_out[at + d]; });
    uint16_t* entry = cache_page<H2, HD>(v_out, page, head) + pos % PAGE * HD;
    each_value<HD, 32>([&](int i, int d) { entry[d] = float_to_half(v[i]); });
  }
}

// llama.model:32  return linear(attention(q, c.k, c.v), w.attn_output)
//   l0.attention: f32[T, 64] = attention(l0.attend.q, l0.kv.k_2, l0.kv.v_2, rows)
template <int H, int KV, int HD, int WINDOW, int WARPS, int SPLITS>
__global__ void __launch_bounds__(32 * WARPS) attention(const Step* step, const float* q, const uint16_t* k, const uint16_t* v, float* y_out_out) {
  grid_dependency_wait();
  const int row = blockIdx.x, head = blockIdx.y, kv = head / (H / KV), warp = threadIdx.x / 32;
  if (row >= step->rows) return;
  const int* stored = step->pages + size_t(step->seq[row]) * step->pages_per_seq;
  const int end = step->pos[row] + 1, first = WINDOW > 0 ? max(0, end - WINDOW) : 0;
  const int pages = (end + PAGE - 1) / PAGE;
  int page = first / PAGE;
  const bool alone = SPLITS == 1 || step->rows > 1 || pages - page <= WARPS;  // else SPLITS blocks share the pages
  if (alone && blockIdx.z > 0) return;
  auto& s = shared<AttentionShared<uint16_t, HD, WARPS>>();
  const size_t at = (size_t(row) * H + head) * HD;
  for (int d = threadIdx.x; d < HD; d += 32 * WARPS) s.q[d] = q[at + d];
  __syncthreads();
  auto score = [](float dot) { return dot * 0.25f; };
  auto attend = [&](int mine, PagePart part) {
    const uint16_t* key = cache_page<KV, HD>(k, stored[mine], kv);
    const uint16_t* value = cache_page<KV, HD>(v, stored[mine], kv);
    attend_page(s.q, s.page[warp], key, value, max(0, first - mine * PAGE), min(PAGE, end - mine * PAGE), score, part);
  };
  Attended result;
  if constexpr (SPLITS > 1) {
    if (!alone) {
      auto& all = shared_heads<H, HD>.head[head];
      const int count = min(SHARED_PAGES, pages - page);
      for (int p = warp * SPLITS + int(blockIdx.z); p < count; p += SPLITS * WARPS) attend(page + p, all.parts.part(p));
      if (!arrives_last(&all.arrived, SPLITS, &s.last)) return;
      for (int p = 0; p < count; p += 32) fold_pages(s, all.parts, p, min(32, count - p), result);
      page += count;
    }
  }
  for (int round = 0; page < pages; page += WARPS, round++) {
    const int mine = page + warp, count = min(WARPS, pages - page);
    auto& parts = s.round[round % 2];
    if (mine < pages) attend(mine, parts.part(warp));
    __syncthreads();
    fold_pages(s, parts, 0, count, result);
  }
  if (const int d = threadIdx.x; d < HD) {
    const float y = end > first ? result.sum / result.total : 0.0f;
    y_out_out[at + d] = y;
  }
}

// llama.model:24  return rope(x, theta, interleaved=1, dims=turn, freqs=rope_freqs)
// llama.model:30  c.k = append(c.k, k)
// llama.model:31  c.v = append(c.v, heads(linear(n, w.attn_v), KV))
// llama.model:32  return linear(attention(q, c.k, c.v), w.attn_output)
//   kernel head_epilogue(heads: f32[T, 4, 16], rows: rows[T], heads_2: f32[T, 2, 16], k: cache_f16[2, 16], heads_3: f32[T, 2, 16], v: cache_f16[2, 16]) {
//     q: f32[T, 4, 16] = rope(heads, rows, theta=10000.0, interleaved=1, dims=16)
//     rope: f32[T, 2, 16] = rope(heads_2, rows, theta=10000.0, interleaved=1, dims=16)
//     cast: f16[T, 2, 16] = cast(rope, dtype=f16)
//     k_2: cache_f16[2, 16] = append(k, cast, rows)
//     cast_2: f16[T, 2, 16] = cast(heads_3, dtype=f16)
//     v_2: cache_f16[2, 16] = append(v, cast_2, rows)
//     return q, k_2, v_2
//   }
//   l0.attention: f32[T, 64] = attention(l0.attend.q, l0.kv.k_2, l0.kv.v_2, rows)
template <int H, int KV, int HD, int WINDOW, int TEAMS, int SPLITS>
__global__ void __launch_bounds__(TEAMS * RowAttentionShared<uint16_t, HD, 8, TEAMS>::TEAM) row_attention(const Step* step, const float* attn_q_out, const float* attn_k_out, const float* attn_v_out, uint16_t* keys, uint16_t* values, float* y_out_out) {
  constexpr int PAIRS = 8;
  static constexpr double RADIANS[] = {  // a position: theta^(-2i / dims) / factor
      0x1.0000000000000p+0, 0x1.43d136248490fp-2, 0x1.999999999999ap-4, 0x1.030dc4ea03a72p-5,
      0x1.47ae147ae147bp-7, 0x1.9e7c6e43390b7p-9, 0x1.0624dd2f1a9fcp-10, 0x1.4b96be9c2da2cp-12,
  };
  using S = RowAttentionShared<uint16_t, HD, PAIRS, TEAMS>;
  grid_dependency_trigger();
  constexpr int row = 0;
  const int head = blockIdx.y, kv = head / (H / KV), warp = threadIdx.x / 32, team = threadIdx.x / S::TEAM, thread = threadIdx.x % S::TEAM;
  const int* stored = step->pages + size_t(step->seq[row]) * step->pages_per_seq;
  const int pos = step->pos[row], end = pos + 1, first = WINDOW > 0 ? max(0, end - WINDOW) : 0;
  const int pages = pos / PAGE + 1, page = first / PAGE;
  const int blocks = pages - page <= 2 * TEAMS ? 1 : min(SPLITS, (pages - page + TEAMS - 1) / TEAMS);  // that share the pages
  if (int(blockIdx.z) >= blocks) return;  // it makes nothing that a launch behind could wait for
  auto& s = shared<S>();
  AsyncCopies copies;
  auto stage = [&](int round, int mine, int until) {  // keys and values of earlier steps: they may be read before the wait
    const bool there = mine < until;
    const uint16_t* key = cache_page<KV, HD>(keys, stored[there ? mine : page], kv);
    const uint16_t* value = cache_page<KV, HD>(values, stored[there ? mine : page], kv);
    stage_page<S::TEAM>(copies, s.page[round % 2][team], key, value, max(0, first - mine * PAGE), there ? min(PAGE, pos - mine * PAGE) : 0, thread);
  };
  bool apart = blocks > 1;  // this block leaves its parts to the last one of the head
  const int share = apart ? min(pages, page + SHARED_PAGES) : pages;
  int from = page + int(blockIdx.z) * TEAMS, stride = blocks * TEAMS, until = share;
  auto stage_two = [&](int round) {
    KEEP_LOOP
    for (int i = 0; i < 2; i++) stage(round + i, from + i * stride + team, until);
  };
  stage_two(0);
  const int own = stored[pages - 1];
  fill_turns(s.turns, RADIANS, nullptr, pos);
  __syncthreads();
  grid_dependency_wait();
  if (warp == 0) {  // the row's own query
    const size_t at = size_t(head) * HD;
    float q[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { q[i] = attn_q_out[at + d]; });
    turn_head<HD, PAIRS, true>(q, s.exchange[0], s.turns);
    each_value<HD, 32>([&](int i, int d) { s.q[d] = q[i]; });
  }
  if (warp == 1) {  // the row's own key
    const size_t at = size_t(kv) * HD;
    float k[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { k[i] = attn_k_out[at + d]; });
    turn_head<HD, PAIRS, true>(k, s.exchange[1], s.turns);
    each_value<HD, 32>([&](int i, int d) { s.own_key[d] = float_to_half(k[i]); });
  }
  if (warp == 2) {  // the row's own value
    const size_t at = size_t(kv) * HD;
    float v[ROW_VALUES<HD, 32>];
    each_value<HD, 32>([&](int i, int d) { v[i] = attn_v_out[at + d]; });
    each_value<HD, 32>([&](int i, int d) { s.own_value[d] = float_to_half(v[i]); });
  }
  wait_copies<1>(copies);
  __syncthreads();
  if (head % (H / KV) == 0 && blockIdx.z == 0 && int(threadIdx.x) < HD) {  // one of the heads that share them keeps them
    const size_t entry = size_t(pos % PAGE) * HD + threadIdx.x;
    cache_page<KV, HD>(keys, own, kv)[entry] = s.own_key[threadIdx.x];
    cache_page<KV, HD>(values, own, kv)[entry] = s.own_value[threadIdx.x];
  }
  auto score = [](float dot) { return dot * 0.25f; };
  Attended result;
  auto part_of = [&](int round, int mine) {
    if constexpr (SPLITS > 1) {
      if (apart) return shared_heads<H, HD>.head[head].parts.part(mine - page);
    }
    return s.round[round % 2].part(team);
  };
  for (int round = 0; from < until;) {  // two rounds are staged
    const int mine = from + team;
    const auto& staged = s.page[round % 2][team];
    const TeamPage at = {team, thread, max(0, first - mine * PAGE), min(PAGE, end - mine * PAGE), mine == pages - 1};
    if (mine < until) score_page(s, staged, at, score);
    __syncthreads();
    Attended part;
    if (mine < until) part = weigh_page(s, staged, at);
    if (until - page == 1) {  // the only one, the first team's
      result = part;
      break;
    }
    if (mine < until) leave_part<HD>(part_of(round, mine), part, thread);
    __syncthreads();
    stage(round, from + 2 * stride + team, until);
    if (!apart) fold_pages(s, s.round[round % 2], 0, min(TEAMS, until - from), result);
    from += stride, round++;
    if constexpr (SPLITS > 1) {
      if (apart && from >= until) {
        auto& all = shared_heads<H, HD>.head[head];
        if (!arrives_last(&all.arrived, blocks, &s.last)) return;
        for (int p = 0; p < share - page; p += 32) fold_pages(s, all.parts, p, min(32, share - page - p), result);
        apart = false, from = share, until = pages, stride = TEAMS;
        stage_two(round);
      }
    }
    wait_copies<1>(copies);
    __syncthreads();
  }
  if (const int d = threadIdx.x; d < HD) {
    const size_t at = size_t(head) * HD;
    const float y = end > first ? result.sum / result.total : 0.0f;
    y_out_out[at + d] = y;
  }
}

// llama.model:32  return linear(attention(q, c.k, c.v), w.attn_output)
//   l0.quantize: q8[T, 64] = quantize(l0.attention)
template <int D, int THREADS>
__global__ void __launch_bounds__(THREADS) quantize(const Step* step, const float* x, Q8 y_out) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= step->rows) return;
  const size_t at = size_t(row) * D;
  float x_d[4];
  each_value_of_chunk<D, THREADS>([&](int i, int d) {
    x_d[i] = x[at + d];
  });
  quantize_chunk<D, THREADS>(x_d, row, y_out);
}

// llama.model:32  return linear(attention(q, c.k, c.v), w.attn_output)
// llama.model:35  n = rmsnorm(x, w.ffn_norm, eps)
// llama.model:41  x = x + attend(x, blk[l], kv[l])
//   kernel linear_residual(quantize: q8[T, 64], attn_output: q8_0[64, 64], x: f32[T, 64], ffn_norm: f32[64]) {
//     linear: f32[T, 64] = linear(quantize, attn_output)
//     x_2: f32[T, 64] = x + linear
//     mul: f32[T, 64] = x_2 * ffn_norm
//     q: q8[T, 64] = quantize(mul)
//     s: f32[T, 2] = square_sums(x_2)
//     return x_2, q, s
//   }
template <int N, int K, class FORM, int ROWS, class W0>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT) linear_residual_attn_output(const Step* step, Q8 x, const uint8_t* attn_output, const float* x_2, float* x_3_out, const float* ffn_norm, Q8 q_out, float* s_2_out) {
  using L = typename FORM::Shape;
  grid_dependency_trigger();
  const int rows = step->rows, first = first_row<FORM, ROWS>(), block = output_block<FORM>();
  if (first >= rows) return grid_dependency_wait();
  const auto w = early_weights<W0, N, K, FORM>(block, {attn_output});
  grid_dependency_wait();
  auto& s = shared<typename FORM::Shared>();
  const auto x_2_ahead = read_ahead<N, L, ROWS>(x_2, block, first, rows);
  const auto ffn_norm_ahead = read_ahead<N, L, ROWS>(ffn_norm, block);
  block_dots<W0, N, K, FORM, ROWS>(s, block, {attn_output}, w, x, first, rows);
  __syncthreads();
  each_output<N, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const size_t at = size_t(first + r) * N + n;
    const float linear = dot_of(s, 0, r, output);
    const float x_2_n = x_2_ahead.there ? x_2_ahead.value : x_2[at];
    const float x_3 = x_2_n + linear;
    x_3_out[at] = x_3;
    const float ffn_norm_n = ffn_norm_ahead.there ? ffn_norm_ahead.value : ffn_norm[n];
    const float mul = x_3 * ffn_norm_n;
    quantize_warp<N>(mul, first + r, n, q_out);
    square_sum_warp<N>(x_3, first + r, n, s_2_out);
  });
}

// llama.model:35  n = rmsnorm(x, w.ffn_norm, eps)
// llama.model:36  return linear(silu(linear(n, w.ffn_gate)) * linear(n, w.ffn_up), w.ffn_down)
//   kernel glu(q: q8[T, 64], ffn_gate: q8_0[96, 64], s: f32[T, 2], ffn_up: q8_0[96, 64]) {
//     linear: f32[T, 96] = linear(q, ffn_gate)
//     root_factor: f32[T, 1] = root_factor(s, n=64, eps=9.999999747378752e-06)
//     mul: f32[T, 96] = linear * root_factor
//     silu: f32[T, 96] = silu(mul)
//     linear_2: f32[T, 96] = linear(q, ffn_up)
//     mul_2: f32[T, 96] = linear_2 * root_factor
//     mul_3: f32[T, 96] = silu * mul_2
//     glu: q8[T, 96] = quantize(mul_3)
//     return glu
//   }
template <int N, int K, class FORM, int ROWS, class W0, class W1>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT) glu_ffn_gate_ffn_up(const Step* step, Q8 x, const uint8_t* ffn_gate, const uint8_t* ffn_up, const float* square_sums, Q8 glu_out) {
  using L = typename FORM::Shape;
  grid_dependency_trigger();
  const int rows = step->rows, first = first_row<FORM, ROWS>(), block = output_block<FORM>();
  if (first >= rows) return grid_dependency_wait();
  const auto w = early_weights<W0, N, K, FORM>(block, {ffn_gate, ffn_up});
  grid_dependency_wait();
  auto& s = shared<typename FORM::Shared>();
  const auto sums_0 = load_root_sums<2, ROWS, L>(square_sums, first, rows);
  block_dots<W0, N, K, FORM, ROWS>(s, block, {ffn_gate, ffn_up}, w, x, first, rows);
  fold_root_sums(s.factor[0], sums_0, 64.0f, 1.0e-5f);
  __syncthreads();
  each_output<N, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const float linear = dot_of(s, 0, r, output);
    const float mul = linear * s.factor[0][r];
    const float silu = mul / (1.0f + exp32(-mul));
    const float linear_2 = dot_of(s, 1, r, output);
    const float mul_2 = linear_2 * s.factor[0][r];
    const float mul_3 = silu * mul_2;
    quantize_warp<N>(mul_3, first + r, n, glu_out);
  });
}

// llama.model:27  n = rmsnorm(x, w.attn_norm, eps)
// llama.model:36  return linear(silu(linear(n, w.ffn_gate)) * linear(n, w.ffn_up), w.ffn_down)
// llama.model:42  x = x + mlp(x, blk[l])
//   kernel linear_residual(glu: q8[T, 96], ffn_down: q8_0[64, 96], x: f32[T, 64], attn_norm: f32[64]) {
//     linear: f32[T, 64] = linear(glu, ffn_down)
//     x_2: f32[T, 64] = x + linear
//     mul: f32[T, 64] = x_2 * attn_norm
//     q: q8[T, 64] = quantize(mul)
//     s: f32[T, 2] = square_sums(x_2)
//     return x_2, q, s
//   }
template <int N, int K, class FORM, int ROWS, class W0>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT) linear_residual_ffn_down(const Step* step, Q8 x, const uint8_t* ffn_down, const float* x_2, float* x_2_2_out, const float* attn_norm, Q8 q_out, float* s_2_out) {
  using L = typename FORM::Shape;
  grid_dependency_trigger();
  const int rows = step->rows, first = first_row<FORM, ROWS>(), block = output_block<FORM>();
  if (first >= rows) return grid_dependency_wait();
  const auto w = early_weights<W0, N, K, FORM>(block, {ffn_down});
  grid_dependency_wait();
  auto& s = shared<typename FORM::Shared>();
  const auto x_2_ahead = read_ahead<N, L, ROWS>(x_2, block, first, rows);
  const auto attn_norm_ahead = read_ahead<N, L, ROWS>(attn_norm, block);
  block_dots<W0, N, K, FORM, ROWS>(s, block, {ffn_down}, w, x, first, rows);
  __syncthreads();
  each_output<N, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const size_t at = size_t(first + r) * N + n;
    const float linear = dot_of(s, 0, r, output);
    const float x_2_n = x_2_ahead.there ? x_2_ahead.value : x_2[at];
    const float x_2_2 = x_2_n + linear;
    x_2_2_out[at] = x_2_2;
    const float attn_norm_n = attn_norm_ahead.there ? attn_norm_ahead.value : attn_norm[n];
    const float mul = x_2_2 * attn_norm_n;
    quantize_warp<N>(mul, first + r, n, q_out);
    square_sum_warp<N>(x_2_2, first + r, n, s_2_out);
  });
}

// llama.model:36  return linear(silu(linear(n, w.ffn_gate)) * linear(n, w.ffn_up), w.ffn_down)
// llama.model:42  x = x + mlp(x, blk[l])
//   kernel linear_residual(glu: q8[T, 96], ffn_down: q8_0[64, 96], x: f32[T, 64]) {
//     linear: f32[T, 64] = linear(glu, ffn_down)
//     x_2: f32[T, 64] = x + linear
//     return x_2
//   }
template <int N, int K, class FORM, int ROWS, class W0>
__global__ void __launch_bounds__(FORM::THREADS, FORM::RESIDENT) linear_residual_ffn_down_2(const Step* step, Q8 x, const uint8_t* ffn_down, const float* x_2, float* x_2_2_out) {
  using L = typename FORM::Shape;
  grid_dependency_trigger();
  const int rows = step->rows, first = first_row<FORM, ROWS>(), block = output_block<FORM>();
  if (first >= rows) return grid_dependency_wait();
  const auto w = early_weights<W0, N, K, FORM>(block, {ffn_down});
  grid_dependency_wait();
  auto& s = shared<typename FORM::Shared>();
  const auto x_2_ahead = read_ahead<N, L, ROWS>(x_2, block, first, rows);
  block_dots<W0, N, K, FORM, ROWS>(s, block, {ffn_down}, w, x, first, rows);
  __syncthreads();
  each_output<N, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const size_t at = size_t(first + r) * N + n;
    const float linear = dot_of(s, 0, r, output);
    const float x_2_n = x_2_ahead.there ? x_2_ahead.value : x_2[at];
    const float x_2_2 = x_2_n + linear;
    x_2_2_out[at] = x_2_2;
  });
}

// llama.model:44  return linear(rmsnorm(wanted(x), output_norm, eps), output)
//   kernel embed_norm(x: f32[T, 64], rows: rows[T], output_norm: f32[64]) {
//     wanted: f32[R, 64] = wanted(x, rows)
//     mul: f32[R, 64] = wanted * output_norm
//     embed_norm: q8[R, 64] = quantize(mul)
//     embed_norm_2: f32[R, 2] = square_sums(wanted)
//     return embed_norm, embed_norm_2
//   }
template <int D, int THREADS>
__global__ void __launch_bounds__(THREADS) embed_norm_2(const Step* step, const float* x_2, const float* output_norm, Q8 embed_norm_out, float* embed_norm_2_out) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= step->wanted) return;
  float wanted_[4];
  float mul[4];
  each_value_of_chunk<D, THREADS>([&](int i, int d) {
    wanted_[i] = x_2[size_t(step->want[row]) * D + d];
    const float output_norm_d = output_norm[d];
    mul[i] = wanted_[i] * output_norm_d;
  });
  quantize_chunk<D, THREADS>(mul, row, embed_norm_out);
  square_sums_chunk<D, THREADS>(wanted_, row, embed_norm_2_out);
}

// llama.model:44  return linear(rmsnorm(wanted(x), output_norm, eps), output)
//   kernel head_choose(embed_norm: q8[R, 64], token_embd: q8_0[160, 64], embed_norm_2: f32[R, 2]) {
//     linear: f32[R, 160] = linear(embed_norm, token_embd)
//     root_factor: f32[R, 1] = root_factor(embed_norm_2, n=64, eps=9.999999747378752e-06)
//     logits: f32[R, 160] = linear * root_factor
//     keys: i64[R, 5] = choice_keys(logits)
//     return logits, keys
//   }
template <int N, int K, int ROW_TILES, int WARPS, int ROWS, class W0>
__global__ void __launch_bounds__(32 * WARPS) head_choose_token_embd(const Step* step, Q8 x, const uint8_t* token_embd, const float* square_sums, float* logits_out, long long* keys_out) {
  using L = LinearShape<K, ROW_TILES, WARPS>;
  grid_dependency_trigger();
  const int rows = step->wanted, first = int(blockIdx.y) * ROWS, block = blockIdx.x;
  if (first >= rows) return grid_dependency_wait();
  const auto w0 = first_tiles<W0, N, K, L>(block, {token_embd});
  grid_dependency_wait();
  auto& s = shared<LinearShared<L, ROWS, 1, 1>>();
  const auto sums_0 = load_root_sums<2, ROWS, L>(square_sums, first, rows);
  partial_dots<W0, N, K, L, ROWS>(s.partials, block, {token_embd}, w0, x, first, rows);
  fold_root_sums(s.factor[0], sums_0, 64.0f, 1.0e-5f);
  __syncthreads();
  each_output<N, L, ROWS>(block, first, rows, [&](int r, int n, int output) {
    const size_t at = size_t(first + r) * N + n;
    const float linear = folded_dot(s.partials[0], r, output);
    const float logits = linear * s.factor[0][r];
    if (step->keep_logits) logits_out[at] = logits;
    choice_key_warp<N>(logits, first + r, n, keys_out);
  });
}

// llama.model:44  return linear(rmsnorm(wanted(x), output_norm, eps), output)
//   next: i32[R] = choose_key(logits.keys)
template <int N, int THREADS>
__global__ void __launch_bounds__(THREADS) choose_key(const Step* step, const long long* x, int* y) {
  grid_dependency_wait();
  const int row = blockIdx.x;
  if (row >= step->wanted) return;
  const Best<long long> best = best_of_block<THREADS>(best_of_stride<N, THREADS>(x + size_t(row) * N));
  if (threadIdx.x == 0) y[row] = index_of_key(best.value);
}

// The next decode step's tokens and positions, from the tokens that this one chose; the host finds them in `chosen`.
__global__ void advance(Step* step, const int* next, int* chosen) {
  grid_dependency_wait();
  const int turn = step->turn;
  for (int i = threadIdx.x; i < step->wanted; i += blockDim.x) {
    step->token[i] = next[i];
    step->pos[i] += 1;
    chosen[turn * MAX_WANTED + i] = next[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) step->turn = 1 - turn;
}

#ifndef __CUDACC_RTC__
// ---- tables

inline constexpr const char* PROGRAM = "llama";
inline constexpr const char* NUMERICS = "int8";
inline constexpr const char* KV = "f16";
inline constexpr int VOCAB = 160;
inline constexpr int TRAINED_CONTEXT = 256;  // tokens; 0: not said
inline constexpr size_t WEIGHT_BYTES = 1064192;
inline constexpr size_t BUFFER_BYTES = 93440;
inline constexpr size_t CACHE_BYTES_PER_POSITION = 512;
inline constexpr size_t LOGITS = 87552;
inline constexpr size_t NEXT = 93184;

// What the program has read of its checkpoint's metadata: with other values it would be another program.
struct MetaValue {
  const char* key;
  const char* value;  // "": the key is absent
};
inline constexpr MetaValue METADATA[] = {
    {"llama.block_count", "4"},
    {"llama.embedding_length", "64"},
    {"llama.feed_forward_length", "96"},
    {"llama.attention.head_count", "4"},
    {"llama.attention.head_count_kv", "2"},
    {"llama.attention.key_length", "16"},
    {"llama.rope.dimension_count", "16"},
    {"llama.attention.layer_norm_rms_epsilon", "9.99999975e-06"},
    {"llama.rope.freq_base", "10000"},
};
inline constexpr int METADATA_COUNT = 9;

// A tensor of the checkpoint, or one of each layer: `%d` is first .. first + count - 1.
struct Family {
  const char* name;
  int first, count;
  uint32_t type;        // ggml's number
  const char* format;
  int dims;
  uint64_t shape[3];    // outermost first
  size_t offset, stride;  // bytes in the weights' allocation
  int layout;           // 0: plain f32; 1: tiles
};
inline constexpr Family TOKEN_EMBD = {"token_embd.weight", 0, 1, 8, "q8_0", 2, {160, 64}, 0, 87040, 1};
inline constexpr Family ATTN_NORM = {"blk.%d.attn_norm.weight", 0, 4, 0, "f32", 1, {64}, 87040, 256, 0};
inline constexpr Family ATTN_Q = {"blk.%d.attn_q.weight", 0, 4, 8, "q8_0", 2, {64, 64}, 88064, 34816, 1};
inline constexpr Family ATTN_K = {"blk.%d.attn_k.weight", 0, 4, 8, "q8_0", 2, {32, 64}, 227328, 17408, 1};
inline constexpr Family ATTN_V = {"blk.%d.attn_v.weight", 0, 4, 8, "q8_0", 2, {32, 64}, 296960, 17408, 1};
inline constexpr Family ATTN_OUTPUT = {"blk.%d.attn_output.weight", 0, 4, 8, "q8_0", 2, {64, 64}, 366592, 34816, 1};
inline constexpr Family FFN_NORM = {"blk.%d.ffn_norm.weight", 0, 4, 0, "f32", 1, {64}, 505856, 256, 0};
inline constexpr Family FFN_GATE = {"blk.%d.ffn_gate.weight", 0, 4, 8, "q8_0", 2, {96, 64}, 506880, 52224, 1};
inline constexpr Family FFN_UP = {"blk.%d.ffn_up.weight", 0, 4, 8, "q8_0", 2, {96, 64}, 715776, 52224, 1};
inline constexpr Family FFN_DOWN = {"blk.%d.ffn_down.weight", 0, 4, 8, "q8_0", 2, {64, 96}, 924672, 34816, 1};
inline constexpr Family OUTPUT_NORM = {"output_norm.weight", 0, 1, 0, "f32", 1, {64}, 1063936, 256, 0};
inline constexpr int WEIGHT_COUNT = 11;
inline constexpr Family WEIGHTS[] = {TOKEN_EMBD, ATTN_NORM, ATTN_Q, ATTN_K, ATTN_V, ATTN_OUTPUT, FFN_NORM, FFN_GATE, FFN_UP, FFN_DOWN, OUTPUT_NORM};

// A value that is stored: where, and by which launch (`launch + i * period` for layer first + i); -1 and -2 in a shape are T and R.
struct Value {
  const char* name;
  int first, count;
  const char* dtype;
  int rank;
  int64_t shape[4];
  size_t offset;  // bytes in the buffers
  int launch, period;
};
inline constexpr Value VALUES[] = {
    {"x", 0, 1, "f32", 2, {-1, 64}, 0, 0, 0},
    {"l%d.attend.n.q", 0, 4, "q8", 2, {-1, 64}, 81920, 0, 7},
    {"x.s", 0, 1, "f32", 2, {-1, 2}, 92672, 0, 0},
    {"l%d.attn_q_out", 0, 4, "f32", 2, {-1, 64}, 16384, 1, 7},
    {"l%d.attn_k_out", 0, 4, "f32", 2, {-1, 32}, 65536, 1, 7},
    {"l%d.attn_v_out", 0, 4, "f32", 2, {-1, 32}, 73728, 1, 7},
    {"l%d.heads", 0, 4, "f32", 3, {-1, 4, 16}, 16384, 1, 7},
    {"l%d.heads_2", 0, 4, "f32", 3, {-1, 2, 16}, 65536, 1, 7},
    {"l%d.heads_3", 0, 4, "f32", 3, {-1, 2, 16}, 73728, 1, 7},
    {"l%d.attend.q", 0, 4, "f32", 3, {-1, 4, 16}, 32768, 2, 7},
    {"l%d.attention", 0, 4, "f32", 2, {-1, 64}, 49152, 3, 7},
    {"l%d.quantize", 0, 4, "q8", 2, {-1, 64}, 32768, 4, 7},
    {"l%d.x", 0, 4, "f32", 2, {-1, 64}, 16384, 5, 7},
    {"l%d.mlp.n.q", 0, 4, "q8", 2, {-1, 64}, 40960, 5, 7},
    {"l%d.x.s", 0, 4, "f32", 2, {-1, 2}, 46592, 5, 7},
    {"l%d.glu", 0, 4, "q8", 2, {-1, 96}, 32768, 6, 7},
    {"l%d.x_2", 0, 4, "f32", 2, {-1, 64}, 0, 7, 7},
    {"l%d.x_2.s", 0, 3, "f32", 2, {-1, 2}, 92672, 7, 7},
    {"embed_norm", 0, 1, "q8", 2, {-2, 64}, 16384, 29, 0},
    {"embed_norm_2", 0, 1, "f32", 2, {-2, 2}, 17664, 29, 0},
    {"logits", 0, 1, "f32", 2, {-2, 160}, 87552, 30, 0},
    {"logits.keys", 0, 1, "i64", 2, {-2, 5}, 0, 30, 0},
    {"next", 0, 1, "i32", 1, {-2}, 93184, 31, 0},
};
inline constexpr int VALUE_COUNT = 23;

struct KernelInfo {
  const char* name;
  int launches;  // a step
};
inline constexpr KernelInfo KERNELS[] = {
    {"embed_norm", 1},
    {"linear_attn_q_attn_k_attn_v", 4},
    {"heads", 4},
    {"attention", 4},
    {"row_attention", 4},
    {"quantize", 4},
    {"linear_residual_attn_output", 4},
    {"glu_ffn_gate_ffn_up", 4},
    {"linear_residual_ffn_down", 3},
    {"linear_residual_ffn_down_2", 1},
    {"embed_norm_2", 1},
    {"head_choose_token_embd", 1},
    {"choose_key", 1},
};
inline constexpr int KERNEL_COUNT = 13;

// ---- the step

// Steps differ in their launches by whether a row attends to more pages of a cache than these.
constexpr int FEW_PAGES = 4, MANY_PAGES = 1 << 24;

// Three allocations and a stream; `after` is told of each launch.
struct Device {
  cudaStream_t stream;
  uint8_t* weights;
  uint8_t* buffers;
  uint8_t* cache;
  size_t positions;  // of a cache, all sequences together
  Step* step;
  int launches;
  void (*after)(Device&, int launch);
  int pages = MANY_PAGES;  // of a cache that a row of the step attends to, at most
};

// The parts of a quantized value of `count` elements at `at`.
inline size_t part_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

inline Q8 q8_at(uint8_t* at, size_t count) {
  uint8_t* scales = at + part_bytes(count);
  return {(int8_t*)at, (float*)scales, (float*)(scales + part_bytes(count / 8))};
}

// Activations: what each buffer holds, at its largest.
struct Buffers {
  float* attn_q_out;  // attn_q_out: f32[T, 64]
  float* attn_k_out;  // attn_k_out: f32[T, 32]
  float* attn_v_out;  // attn_v_out: f32[T, 32]
  float* attend_q;  // attend_q: f32[T, 4, 16]
  float* attention;  // attention: f32[T, 64]
  Q8 quantize;  // quantize: q8[T, 64]
  float* x;  // x: f32[T, 64]
  Q8 mlp_n_q;  // mlp_n_q: q8[T, 64]
  float* x_s;  // x_s: f32[T, 2]
  Q8 glu;  // glu: q8[T, 96]
  float* x_2;  // x, x_2: f32[T, 64]
  Q8 attend_n_q;  // attend_n_q: q8[T, 64]
  float* x_2_s;  // x_s, x_2_s: f32[T, 2]
  float* attn_q_out_2;  // attn_q_out: f32[T, 64]
  float* attn_k_out_2;  // attn_k_out: f32[T, 32]
  float* attn_v_out_2;  // attn_v_out: f32[T, 32]
  float* attend_q_2;  // attend_q: f32[T, 4, 16]
  float* attention_2;  // attention: f32[T, 64]
  Q8 quantize_2;  // quantize: q8[T, 64]
  float* x_3;  // x: f32[T, 64]
  Q8 mlp_n_q_2;  // mlp_n_q: q8[T, 64]
  float* x_s_2;  // x_s: f32[T, 2]
  Q8 glu_2;  // glu: q8[T, 96]
  float* x_2_2;  // x_2: f32[T, 64]
  Q8 embed_norm;  // embed_norm: q8[R, 64]
  float* embed_norm_2;  // embed_norm_2: f32[R, 2]
  float* logits;  // logits: f32[R, 160]
  long long* logits_keys;  // logits_keys: i64[R, 5]
  int* next;  // next: i32[R]
  explicit Buffers(uint8_t* at) {
    attn_q_out = (float*)(at + 16384);
    attn_k_out = (float*)(at + 65536);
    attn_v_out = (float*)(at + 73728);
    attend_q = (float*)(at + 32768);
    attention = (float*)(at + 49152);
    quantize = q8_at(at + 32768, 4096);
    x = (float*)(at + 16384);
    mlp_n_q = q8_at(at + 40960, 4096);
    x_s = (float*)(at + 46592);
    glu = q8_at(at + 32768, 6144);
    x_2 = (float*)(at + 0);
    attend_n_q = q8_at(at + 81920, 4096);
    x_2_s = (float*)(at + 92672);
    attn_q_out_2 = (float*)(at + 16384);
    attn_k_out_2 = (float*)(at + 65536);
    attn_v_out_2 = (float*)(at + 73728);
    attend_q_2 = (float*)(at + 32768);
    attention_2 = (float*)(at + 49152);
    quantize_2 = q8_at(at + 32768, 4096);
    x_3 = (float*)(at + 16384);
    mlp_n_q_2 = q8_at(at + 40960, 4096);
    x_s_2 = (float*)(at + 46592);
    glu_2 = q8_at(at + 32768, 6144);
    x_2_2 = (float*)(at + 0);
    embed_norm = q8_at(at + 16384, 512);
    embed_norm_2 = (float*)(at + 17664);
    logits = (float*)(at + 87552);
    logits_keys = (long long*)(at + 0);
    next = (int*)(at + 93184);
  }
};

inline const float* vector(const Device& d, const Family& f, int l = 0) { return (const float*)(d.weights + f.offset + l * f.stride); }

inline const uint8_t* tiles(const Device& d, const Family& f, int l = 0) { return d.weights + f.offset + l * f.stride; }

// A cache of one layer, or of each: bytes a position of those before it, and of one.
struct CacheFamily {
  size_t before, each;
};
inline constexpr CacheFamily KV_K_CACHE = {0, 64};  // kv.{}.k cache_f16[2, 16]
inline constexpr CacheFamily KV_V_CACHE = {256, 64};  // kv.{}.v cache_f16[2, 16]
template <class T>
T* cache(const Device& d, const CacheFamily& f, int l = 0) {
  return (T*)(d.cache + (f.before + l * f.each) * d.positions);
}

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// The first launch of a step waits for the step before it: those behind may read the Step table, and what earlier steps
// left in the caches, before their own grid_dependency_wait.
template <class... P, class... A>
void run(Device& d, void (*kernel)(P...), dim3 grid, int threads, size_t shared, A... args) {
  launch(d.stream, kernel, Shape{grid, dim3(threads), shared, d.launches > 0}, args...);
  const int number = d.launches++;
  if (d.after) d.after(d, number);
}

// Every launch of a step of `rows` rows, `wanted` of them with results.
template <int ROWS, int WANTED>
void launch_all(Device& d, [[maybe_unused]] int rows, [[maybe_unused]] int wanted) {
  const Buffers b(d.buffers);
  // x: f32[T, 64], l0.attend.n.q: q8[T, 64], x.s: f32[T, 2]
  run(d, embed_norm<64, 32>, dim3(rows), 32, 0,
      d.step, d.step->token, tiles(d, TOKEN_EMBD), vector(d, ATTN_NORM), b.x_2, b.attend_n_q, b.x_2_s);
  for (int l = 0; l < 3; l++) {
    // l0.attn_q_out: f32[T, 64], l0.attn_k_out: f32[T, 32], l0.attn_v_out: f32[T, 32]
    run(d, linear_attn_q_attn_k_attn_v<64, RowForm<ROWS, LinearShape<64, 1, 1, 1>, Q8, 1, 1>, ROWS, Q8_0, 64, Q8_0, 32, Q8_0, 32>, dim3(ceil_div(64, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)) + ceil_div(32, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)) + ceil_div(32, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 64 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 1, 1, 1>, Q8, 1, 1>::Shared),
        d.step, b.attend_n_q, tiles(d, ATTN_Q, l), b.x_2_s, tiles(d, ATTN_K, l), tiles(d, ATTN_V, l), b.attn_q_out, b.attn_k_out, b.attn_v_out);
    if constexpr (ROWS == 1) {
      // l0.kv.k_2: cache_f16[2, 16], l0.kv.v_2: cache_f16[2, 16], l0.attention: f32[T, 64]
      run(d, row_attention<4, 2, 16, 0, 2, 1>, dim3(1, 4), 128, sizeof(RowAttentionShared<uint16_t, 16, 8, 2>),
          d.step, b.attn_q_out, b.attn_k_out, b.attn_v_out, cache<uint16_t>(d, KV_K_CACHE, l), cache<uint16_t>(d, KV_V_CACHE, l), b.attention);
    } else {
      // l0.attend.q: f32[T, 4, 16], l0.kv.k_2: cache_f16[2, 16], l0.kv.v_2: cache_f16[2, 16]
      run(d, heads<16, 4, 4, 2, 2>, dim3(rows, 2), 128, sizeof(HeadsShared<16, 8, 4>),
          d.step, b.attn_q_out, b.attend_q, b.attn_k_out, cache<uint16_t>(d, KV_K_CACHE, l), b.attn_v_out, cache<uint16_t>(d, KV_V_CACHE, l));
      // l0.attention: f32[T, 64]
      run(d, attention<4, 2, 16, 0, 8, 1>, dim3(rows, 4), 256, sizeof(AttentionShared<uint16_t, 16, 8>),
          d.step, b.attend_q, cache<uint16_t>(d, KV_K_CACHE, l), cache<uint16_t>(d, KV_V_CACHE, l), b.attention);
    }
    // l0.quantize: q8[T, 64]
    run(d, quantize<64, 32>, dim3(rows), 32, 0,
        d.step, b.attention, b.quantize);
    // l0.x: f32[T, 64], l0.mlp.n.q: q8[T, 64], l0.x.s: f32[T, 2]
    run(d, linear_residual_attn_output<64, 64, RowForm<ROWS, LinearShape<64, 4, 4>, Q8, 1, 1>, ROWS, Q8_0>, dim3(ceil_div(64, 32 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 128 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 4, 4>, Q8, 1, 1>::Shared),
        d.step, b.quantize, tiles(d, ATTN_OUTPUT, l), b.x_2, b.x, vector(d, FFN_NORM, l), b.mlp_n_q, b.x_s);
    // l0.glu: q8[T, 96]
    run(d, glu_ffn_gate_ffn_up<96, 64, RowForm<ROWS, LinearShape<64, 4, 8, 1>, Q8, 2, 1>, ROWS, Q8_0, Q8_0>, dim3(ceil_div(96, 32 * (ROWS <= 8) + (ROWS >> 1) * (ROWS > 8)), ceil_div(rows, ROWS)), 288 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 4, 8, 1>, Q8, 2, 1>::Shared),
        d.step, b.mlp_n_q, tiles(d, FFN_GATE, l), tiles(d, FFN_UP, l), b.x_s, b.glu);
    // l0.x_2: f32[T, 64], l1.attend.n.q: q8[T, 64], l0.x_2.s: f32[T, 2]
    run(d, linear_residual_ffn_down<64, 96, RowForm<ROWS, LinearShape<96, 4, 4>, Q8, 1, 1>, ROWS, Q8_0>, dim3(ceil_div(64, 32 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 128 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<96, 4, 4>, Q8, 1, 1>::Shared),
        d.step, b.glu, tiles(d, FFN_DOWN, l), b.x, b.x_2, vector(d, ATTN_NORM, l + 1), b.attend_n_q, b.x_2_s);
  }
  // l3.attn_q_out: f32[T, 64], l3.attn_k_out: f32[T, 32], l3.attn_v_out: f32[T, 32]
  run(d, linear_attn_q_attn_k_attn_v<64, RowForm<ROWS, LinearShape<64, 1, 1, 1>, Q8, 1, 1>, ROWS, Q8_0, 64, Q8_0, 32, Q8_0, 32>, dim3(ceil_div(64, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)) + ceil_div(32, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)) + ceil_div(32, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 64 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 1, 1, 1>, Q8, 1, 1>::Shared),
      d.step, b.attend_n_q, tiles(d, ATTN_Q, 3), b.x_2_s, tiles(d, ATTN_K, 3), tiles(d, ATTN_V, 3), b.attn_q_out_2, b.attn_k_out_2, b.attn_v_out_2);
  if constexpr (ROWS == 1) {
    // l3.kv.k_2: cache_f16[2, 16], l3.kv.v_2: cache_f16[2, 16], l3.attention: f32[T, 64]
    run(d, row_attention<4, 2, 16, 0, 2, 1>, dim3(1, 4), 128, sizeof(RowAttentionShared<uint16_t, 16, 8, 2>),
        d.step, b.attn_q_out_2, b.attn_k_out_2, b.attn_v_out_2, cache<uint16_t>(d, KV_K_CACHE, 3), cache<uint16_t>(d, KV_V_CACHE, 3), b.attention_2);
  } else {
    // l3.attend.q: f32[T, 4, 16], l3.kv.k_2: cache_f16[2, 16], l3.kv.v_2: cache_f16[2, 16]
    run(d, heads<16, 4, 4, 2, 2>, dim3(rows, 2), 128, sizeof(HeadsShared<16, 8, 4>),
        d.step, b.attn_q_out_2, b.attend_q_2, b.attn_k_out_2, cache<uint16_t>(d, KV_K_CACHE, 3), b.attn_v_out_2, cache<uint16_t>(d, KV_V_CACHE, 3));
    // l3.attention: f32[T, 64]
    run(d, attention<4, 2, 16, 0, 8, 1>, dim3(rows, 4), 256, sizeof(AttentionShared<uint16_t, 16, 8>),
        d.step, b.attend_q_2, cache<uint16_t>(d, KV_K_CACHE, 3), cache<uint16_t>(d, KV_V_CACHE, 3), b.attention_2);
  }
  // l3.quantize: q8[T, 64]
  run(d, quantize<64, 32>, dim3(rows), 32, 0,
      d.step, b.attention_2, b.quantize_2);
  // l3.x: f32[T, 64], l3.mlp.n.q: q8[T, 64], l3.x.s: f32[T, 2]
  run(d, linear_residual_attn_output<64, 64, RowForm<ROWS, LinearShape<64, 4, 4>, Q8, 1, 1>, ROWS, Q8_0>, dim3(ceil_div(64, 32 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 128 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 4, 4>, Q8, 1, 1>::Shared),
      d.step, b.quantize_2, tiles(d, ATTN_OUTPUT, 3), b.x_2, b.x_3, vector(d, FFN_NORM, 3), b.mlp_n_q_2, b.x_s_2);
  // l3.glu: q8[T, 96]
  run(d, glu_ffn_gate_ffn_up<96, 64, RowForm<ROWS, LinearShape<64, 4, 8, 1>, Q8, 2, 1>, ROWS, Q8_0, Q8_0>, dim3(ceil_div(96, 32 * (ROWS <= 8) + (ROWS >> 1) * (ROWS > 8)), ceil_div(rows, ROWS)), 288 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<64, 4, 8, 1>, Q8, 2, 1>::Shared),
      d.step, b.mlp_n_q_2, tiles(d, FFN_GATE, 3), tiles(d, FFN_UP, 3), b.x_s_2, b.glu_2);
  // l3.x_2: f32[T, 64]
  run(d, linear_residual_ffn_down_2<64, 96, RowForm<ROWS, LinearShape<96, 1, 1>, Q8, 1, 1>, ROWS, Q8_0>, dim3(ceil_div(64, 8 * (ROWS <= 8) + ROWS * (ROWS > 8)), ceil_div(rows, ROWS)), 32 * (ROWS <= 8) + 256 * (ROWS > 8), sizeof(typename RowForm<ROWS, LinearShape<96, 1, 1>, Q8, 1, 1>::Shared),
      d.step, b.glu_2, tiles(d, FFN_DOWN, 3), b.x_3, b.x_2_2);
  // embed_norm: q8[R, 64], embed_norm_2: f32[R, 2]
  run(d, embed_norm_2<64, 32>, dim3(wanted), 32, 0,
      d.step, b.x_2_2, vector(d, OUTPUT_NORM), b.embed_norm, b.embed_norm_2);
  // logits: f32[R, 160], logits.keys: i64[R, 5]
  run(d, head_choose_token_embd<160, 64, 4, 4, WANTED, Q8_0>, dim3(ceil_div(160, 32), ceil_div(wanted, WANTED)), 128, WANTED * 260,
      d.step, b.embed_norm, tiles(d, TOKEN_EMBD), b.embed_norm_2, b.logits, b.logits_keys);
  // next: i32[R]
  run(d, choose_key<5, 32>, dim3(wanted), 32, sizeof(BestOfWarps<long long>),
      d.step, b.logits_keys, b.next);
}

template <int ROWS>
void launch_rows(Device& d, int rows, int wanted) {
  if constexpr (ROWS > 4) {
    if (wanted > 4) return launch_all<ROWS, 8>(d, rows, wanted);
  }
  if constexpr (ROWS > 1) {
    if (wanted > 1) return launch_all<ROWS, 4>(d, rows, wanted);
  }
  launch_all<ROWS, 1>(d, rows, wanted);
}

void forward(Device& d, int rows, int wanted) {
  if (rows <= 1) return launch_rows<1>(d, rows, wanted);
  if (rows <= 4) return launch_rows<4>(d, rows, wanted);
  if (rows <= 16) return launch_rows<8>(d, rows, wanted);
  return launch_rows<64>(d, rows, wanted);
}

inline Shape threads_of_128(size_t threads) { return Shape{dim3(unsigned((threads + 127) / 128)), dim3(128), 0}; }

// Rows first_row .. of a tensor as the checkpoint stores it, on the device, to their place.
void repack(const Family& f, const void* raw, size_t first_row, size_t rows, uint8_t* to, cudaStream_t stream) {
  const int n = f.dims > 1 ? int(f.shape[f.dims - 2]) : 1, k = int(f.shape[f.dims - 1]);
  const uint8_t* from = (const uint8_t*)raw;
  if (f.type == Q8_0::GGML && f.layout == 1) launch(stream, repack_rows<Q8_0>, threads_of_128(rows * ((k + 511) / 512 * 4)), from, first_row, rows, n, k, to);
  if (f.type == F32::GGML && f.layout == 1) launch(stream, repack_rows<F32>, threads_of_128(rows * ((k + 511) / 512 * 4)), from, first_row, rows, n, k, to);
  if (f.type == F32::GGML && f.layout == 0) launch(stream, widen_elements<F32>, threads_of_128(rows * k), from, rows * k, (float*)to + first_row * k);
}

// Such rows without a checkpoint (--synthetic), by the tensor's key.
void synthesize(const Family& f, uint32_t key, size_t first_row, size_t rows, uint8_t* raw, cudaStream_t stream) {
  const size_t k = f.shape[f.dims - 1];
  if (f.type == Q8_0::GGML) launch(stream, fill_hashed<Q8_0>, threads_of_128(rows * k / Q8_0::BLOCK), key, first_row * k / Q8_0::BLOCK, rows * k / Q8_0::BLOCK, int(k), f.dims == 1, raw);
  if (f.type == F32::GGML) launch(stream, fill_hashed<F32>, threads_of_128(rows * k / F32::BLOCK), key, first_row * k / F32::BLOCK, rows * k / F32::BLOCK, int(k), f.dims == 1, raw);
}

// (the driver)

#endif  // __CUDACC_RTC__
