// COUNT products on tensor cores, d += a . b: a warp's 16 x 8 tiles over 32 signed bytes each. Lane l has words l % 4 and
// l % 4 + 4 of rows l / 4 and l / 4 + 8 of a (a[0], a[2] and a[1], a[3]) and of column l / 4 of b, and columns l % 4 * 2 and
// one more of those rows of d.
template <int COUNT>
__device__ __forceinline__ void mma_s8(int (&d)[COUNT][4], const unsigned (&a)[COUNT][4], const unsigned (&b)[COUNT][2]) {
#ifdef __CUDACC__
  UNROLL
  for (int i = 0; i < COUNT; i++) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])
        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[i][0]), "r"(b[i][1]));
  }
#else
  monocu_host::MmaLane lane = {d, a, b};
  monocu_host::warp_call<monocu_host::MmaLane, monocu_host::mma_lanes<COUNT>>(&lane);
#endif
}

// COUNT times four matrices of 8 rows of 16 bytes from shared memory: lane l names row l % 8 of matrix l / 8 and gets
// word l % 4 of row l / 4 of each.
template <int COUNT>
__device__ __forceinline__ void load_matrices(unsigned (&to)[COUNT][4], const void* const (&row)[COUNT]) {
#ifdef __CUDACC__
  UNROLL
  for (int i = 0; i < COUNT; i++) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[i][0]), "=r"(to[i][1]), "=r"(to[i][2]), "=r"(to[i][3])
                 : "r"(unsigned(__cvta_generic_to_shared(row[i]))));
  }
#else
  monocu_host::MatrixLane lane = {to, row};
  monocu_host::warp_call<monocu_host::MatrixLane, monocu_host::matrix_lanes<COUNT>>(&lane);
#endif
}

// The copies to shared memory that this thread has begun and not waited for.
#ifdef __CUDACC__
struct AsyncCopies {};
#else
using AsyncCopies = monocu_host::AsyncCopies;
#endif

// Begins a copy of 4, 8 or 16 bytes to shared memory, of zeros where there is nothing to copy.
template <int BYTES>
__device__ __forceinline__ void copy_async([[maybe_unused]] AsyncCopies& copies, void* to, const void* from, bool present = true) {
#ifdef __CUDACC__
  const unsigned at = unsigned(__cvta_generic_to_shared(to)), count = present ? BYTES : 0;
  if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(count));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(count));
#else
  copies.add(to, present ? from : nullptr, BYTES);
#endif
}

// Ends a group of copies.
__device__ __forceinline__ void commit_copies([[maybe_unused]] AsyncCopies& copies) {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;");
#else
  copies.commit();
#endif
}

// Waits until all but the last PENDING groups of this thread's copies have landed.
template <int PENDING>
__device__ __forceinline__ void wait_copies([[maybe_unused]] AsyncCopies& copies) {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#else
  copies.wait(PENDING);
#endif
}

// No load moves to before this place. A compiler that is free to loads all that a long run of mma needs at its beginning,
// and spills for lack of registers.
__device__ __forceinline__ void hold_loads() {
#ifdef __CUDACC__
  __syncwarp();
#endif
}
