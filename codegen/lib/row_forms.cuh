// A form of few rows of quantized activations: a block's warps, or those of a cluster, share the tiles of its outputs. Small blocks of a single row
// whose warps have several tiles are two an SM: weights come for one while the other ends.
template <class L, int ROWS, int WEIGHTS, int FACTORS>
struct FewRows {
  static constexpr bool TILED = false;
  static constexpr int PARTS = L::PARTS_EACH;
  static constexpr int THREADS = L::THREADS, RESIDENT = ROWS == 1 && WEIGHTS * L::TILES > L::WARPS_EACH && THREADS <= 256 ? 2 : 0;  // blocks an SM; 0: no bound
  using Shape = L;
  using Shared = LinearShared<L, ROWS, WEIGHTS, FACTORS>;
};

// A form of many rows: blocks make tiles. TILED tells it from FewRows.
template <class L, class X, int FACTORS>
struct ManyRows {
  static constexpr bool TILED = true;
  static constexpr int PARTS = 1;
  static constexpr int THREADS = L::THREADS, RESIDENT = L::DOWN * L::ACROSS <= 4 ? 2 : 1;  // blocks an SM
  using Shape = L;
  using Shared = TileShared<L, X::WORDS, FACTORS>;
};

// How rows of quantized activations are cut in a form of ROWS: as FEW has it, or in tiles.
template <int ROWS, class FEW, class X, int WEIGHTS, int FACTORS>
struct RowForm : FewRows<FEW, ROWS, WEIGHTS, FACTORS> {};
template <class FEW, class X, int WEIGHTS, int FACTORS>
struct RowForm<64, FEW, X, WEIGHTS, FACTORS> : ManyRows<DotTile<64, 64, 16, 32, X::WORDS == 1 ? 4 : 3, WEIGHTS>, X, FACTORS> {};
template <class FEW, class X, int WEIGHTS, int FACTORS>
struct RowForm<128, FEW, X, WEIGHTS, FACTORS> : ManyRows<DotTile<128, 128, 32, 64, X::WORDS == 1 ? 4 : 2, WEIGHTS>, X, FACTORS> {};

// The dot of row r and output `output` of the block's with one of its weights.
template <class L, int WORDS, int FACTORS>
__device__ inline float dot_of(const TileShared<L, WORDS, FACTORS>& s, int weight, int r, int output) {
  return s.dots[r][weight * L::OUTPUTS + output];
}

template <class L, int ROWS, int WEIGHTS, int FACTORS>
__device__ inline float dot_of(const LinearShared<L, ROWS, WEIGHTS, FACTORS>& s, int weight, int r, int output) {
  return folded_dot(s.partials[weight], r, output);
}

// What is loaded before the wait for the launches before this one: a warp's first tiles, in forms of few rows.
template <class W, int N, int K, class FORM, int WEIGHTS>
__device__ inline auto early_weights(int block, const uint8_t* const (&weights)[WEIGHTS]) {
  if constexpr (FORM::PARTS > 1) cluster_begin();
  if constexpr (FORM::TILED) return block;
  else return first_tiles<W, N, K, typename FORM::Shape>(block, weights);
}

// All dots of a block with its weights, as the form has it; a barrier must follow.
template <class W, int N, int K, class FORM, int ROWS, class X, class EARLY, int WEIGHTS>
__device__ inline void block_dots(typename FORM::Shared& s, int block, const uint8_t* const (&weights)[WEIGHTS], const EARLY& early, X x, int first, int rows) {
  using L = typename FORM::Shape;
  if constexpr (FORM::TILED) tile_dots<W, N, K, L>(s, block, weights, x, first, rows);
  else if constexpr (FORM::PARTS == 1) partial_dots<W, N, K, L, ROWS>(s.partials, block, weights, early, x, first, rows);
  else partial_dots<W, N, K, L, ROWS>(of_first_block(s.partials), block, weights, early, x, first, rows);
}

// The barrier behind block_dots where a cluster makes them; false in blocks that made them for its first one.
template <class FORM>
__device__ inline bool has_dots() {
  if constexpr (FORM::PARTS == 1 || !HAS_CLUSTERS) {
    __syncthreads();
    return true;
  }
  cluster_arrive();
  if (blockIdx.x % FORM::PARTS > 0) return false;
  cluster_wait();
  return true;
}

// Which rows and which outputs a block has: blocks of the same weights are neighbours, where there are many.
template <class FORM, int ROWS>
__device__ inline int first_row() {
  if constexpr (FORM::TILED) return int((blockIdx.y * gridDim.x + blockIdx.x) % gridDim.y) * ROWS;
  else return int(blockIdx.y) * ROWS;
}

template <class FORM>
__device__ inline int output_block() {
  if constexpr (FORM::TILED) return int((blockIdx.y * gridDim.x + blockIdx.x) / gridDim.y);
  else return int(blockIdx.x) / FORM::PARTS;
}

// Whether a block has no part in the dots: where there are no clusters the first of them makes all.
template <class FORM>
__device__ inline bool is_spare() { return !HAS_CLUSTERS && blockIdx.x % FORM::PARTS > 0; }
