// The keys and values of sequences in a cache: a tensor of pages, of which a table says which
// belong to a sequence, or without a table one page a sequence.
//
// A page is [tokens, heads, columns] in any order of dimensions, with dense rows. Lengths and table
// are data: they are checked when a call runs, before anything is read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attention/engine/attention.hpp"
#include "ops/operator/indices.hpp"

namespace velo::ops {

// `batch` is the distance of pages.
struct cache_problem {
  element_type type = element_type::f32;  // of queries and outputs
  bool narrow = false;                    // the cache holds int8
  std::int64_t batch = 0, sq = 0, heads = 0, kv_heads = 0, d = 0, dv = 0;
  std::int64_t pages = 0, page_tokens = 0;
  std::int64_t table_pages = 0;  // of a sequence
  bool paged = false;
  std::int64_t pre = unlimited;
  float scale = 1.0f;
  attention_strides q, k, v, out;
  attention_strides key_scale, value_scale;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t rows() const { return group() * sq; }  // that share a key head
  std::int64_t capacity() const { return page_tokens * (paged ? table_pages : 1); }
  std::int64_t element() const { return narrow ? 1 : element_bytes(type); }
};

struct cache_tensors {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  const float *key_scale = nullptr, *value_scale = nullptr;
  const std::int32_t *table = nullptr, *lengths = nullptr;  // or null
  void* out = nullptr;
};

struct cached_sequence {
  const cache_problem& p;
  const cache_tensors& t;
  std::int64_t index, length;
  visible_keys keys;

  cached_sequence(const cache_problem& problem, const cache_tensors& tensors, std::int64_t b)
      : p(problem),
        t(tensors),
        index(b),
        length(tensors.lengths == nullptr ? problem.capacity() : tensors.lengths[b]),
        keys({problem.pre, 0, true}, problem.sq, length, 0) {}

  // run(first element, count) for the runs of `count` keys from `key` on that lie side by side.
  template <class Run>
  void runs(const attention_strides& of, std::int64_t head, std::int64_t key, std::int64_t count,
            Run&& run) const {
    while (count > 0) {
      const std::int64_t page = key / p.page_tokens, token = key % p.page_tokens;
      const std::int64_t at = t.table == nullptr ? index : t.table[index * p.table_pages + page];
      const std::int64_t n = std::min(count, p.page_tokens - token);
      run(at * of.batch + token * of.token + head * of.head, n);
      key += n, count -= n;
    }
  }
  // The first element of one row.
  std::int64_t row(const attention_strides& of, std::int64_t head, std::int64_t key) const {
    std::int64_t first = 0;
    runs(of, head, key, 1, [&](std::int64_t at, std::int64_t) { first = at; });
    return first;
  }
  // Keys that some of these rows of queries see lie from first to last.
  std::int64_t first_key(std::int64_t row) const { return keys.first(row / p.group()); }
  std::int64_t last_key(std::int64_t row) const { return keys.last(row / p.group()); }
};

// The first element of a row of queries or outputs, of all that share a key head.
inline std::int64_t new_row(const cache_problem& p, const attention_strides& of, std::int64_t b,
                            std::int64_t kv_head, std::int64_t row) {
  return b * of.batch + row / p.group() * of.token +
         (kv_head * p.group() + row % p.group()) * of.head;
}

struct cached_attention_kernels;
std::size_t cached_attention_bytes(const cache_problem& p, const cache_tensors& t, int threads);
void cached_attention_pass(const cache_problem& p, const cache_tensors& t,
                           const cached_attention_kernels& kernels, const core::parallel& threads,
                           void* scratch);
void cached_attention_reference(const cache_problem& p, const cache_tensors& t,
                                const core::parallel& threads);

}  // namespace velo::ops
