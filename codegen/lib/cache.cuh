// Positions of a page of a cache.
constexpr int PAGE = 64;

// Head `kv` of a stored page, [64][HD], of a cache [page][KV][64][HD].
template <int KV, int HD, class T>
__device__ inline T* cache_page(T* cache, int stored, int kv) {
  return cache + (size_t(stored) * KV + kv) * (PAGE * HD);
}
