// cached_attention as an operator: its shapes, and the lengths and pages that its tensors hold.
#include "ops/attention/cached_attention.hpp"

#include <cfloat>
#include <cmath>

#include "ops/attention/attention_layout.hpp"
#include "ops/attention/cache.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/kernel/target.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

constexpr std::int64_t widest_key = 576, widest_value = 512;

void require_columns(const char* field, std::int64_t got, std::int64_t most) {
  if (got >= 1 && got <= most) return;
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field),
       core::concat("rows of 1 to ", most, " elements"), core::number(got));
}

attention_strides strides_of_cache(const velo_tensor& t) {
  return strides_of(t, VELO_ATTENTION_LAYOUT_BSND, 0);
}

// The factors of int8 keys or values, for each page or sequence, token and head.
attention_strides describe_scale(const velo_tensor* scale, const char* field,
                                 const velo_tensor& cache, bool narrow) {
  if (!narrow) {
    if (scale == nullptr) return {};
    fail(VELO_ERR_ARGUMENT, text("args.%s", field), "NULL but for a cache of int8", "a tensor");
  }
  if (scale == nullptr) fail(VELO_ERR_NULL, text("args.%s", field), "factors of int8", "NULL");
  require_shape(*scale, field, 3, cache.shape);
  return {stride_of(*scale, 0), stride_of(*scale, 1), stride_of(*scale, 2)};
}

void describe_table(const velo_cached_attention_args& a, cache_problem& p) {
  p.paged = a.block_table != nullptr;
  if (a.cache_seqlens != nullptr) require_shape(*a.cache_seqlens, "cache_seqlens", 1, &p.batch);
  if (!p.paged) {
    require_size("key", "a batch of", p.pages, p.batch);
    return;
  }
  if (a.cache_seqlens == nullptr)
    fail(VELO_ERR_NULL, "args.cache_seqlens", "lengths, beside block_table", "NULL");
  require_rank(*a.block_table, "block_table", 2, 2);
  require_size("block_table", "a batch of", a.block_table->shape[0], p.batch);
  p.table_pages = a.block_table->shape[1];
}

void infer(const velo_cached_attention_args& a, cache_problem& p, output_shapes& outputs) {
  const velo_tensor &query = *a.query, &key = *a.key, &value = *a.value;
  require_rank(query, "query", 4, 4);
  require_rank(key, "key", 4, 4);
  require_rank(value, "value", 4, 4);
  require_dense_rows(query, "query");
  require_dense_rows(key, "key");
  require_dense_rows(value, "value");
  p.type = type_of(query.dtype);
  p.narrow = key.dtype == i8;
  if (!p.narrow) require_dtype(key, "key", query.dtype);
  require_dtype(value, "value", key.dtype);
  p.batch = query.shape[0], p.sq = query.shape[1], p.heads = query.shape[2], p.d = query.shape[3];
  p.pages = key.shape[0], p.page_tokens = key.shape[1], p.kv_heads = key.shape[2];
  p.dv = value.shape[3];
  require_columns("query", p.d, widest_key);
  require_columns("value", p.dv, widest_value);
  require_size("key", "rows of", key.shape[3], p.d);
  require_size("value", "pages or a batch of", value.shape[0], p.pages);
  require_size("value", "tokens:", value.shape[1], p.page_tokens);
  require_size("value", "heads:", value.shape[2], p.kv_heads);
  if (p.kv_heads < 1 || p.heads < 1 || p.heads % p.kv_heads != 0) {
    fail(VELO_ERR_SHAPE, "args.key.shape",
         core::concat("heads that divide the ", p.heads, " of query"), core::number(p.kv_heads));
  }
  if (std::fabs(a.scale) > static_cast<double>(FLT_MAX))
    fail(VELO_ERR_ARGUMENT, "args.scale", "a number that float32 holds", text("%g", a.scale));
  p.scale = static_cast<float>(a.scale);
  if (a.pre_tokens != 2147483647) p.pre = a.pre_tokens;
  describe_table(a, p);
  p.key_scale = describe_scale(a.key_scale, "key_scale", key, p.narrow);
  p.value_scale = describe_scale(a.value_scale, "value_scale", value, p.narrow);
  p.q = strides_of_cache(query), p.k = strides_of_cache(key), p.v = strides_of_cache(value);
  const std::int64_t out[] = {p.batch, p.sq, p.heads, p.dv};
  outputs.set(a.attention_out, query.dtype, 4, out);
  if (a.attention_out == nullptr) return;
  require_dense_rows(*a.attention_out, "attention_out");
  p.out = strides_of_cache(*a.attention_out);
}

// ---- running ----

void require_lengths(const cache_problem& p, const std::int32_t* lengths) {
  for (std::int64_t b = 0; lengths != nullptr && b < p.batch; ++b) {
    if (lengths[b] >= 0 && lengths[b] <= p.capacity()) continue;
    fail(VELO_ERR_ARGUMENT, "args.cache_seqlens", core::concat("lengths of 0 to ", p.capacity()),
         core::concat(lengths[b], " in element ", b));
  }
}

// Entries behind a sequence's last page may be anything.
void require_pages(const cache_problem& p, const cache_tensors& t) {
  for (std::int64_t b = 0; t.table != nullptr && b < p.batch; ++b) {
    const std::int64_t used = core::ceil_div<std::int64_t>(t.lengths[b], p.page_tokens);
    for (std::int64_t i = b * p.table_pages; i < b * p.table_pages + used; ++i) {
      if (t.table[i] >= 0 && t.table[i] < p.pages) continue;
      fail(VELO_ERR_ARGUMENT, "args.block_table", core::concat("pages in [0, ", p.pages, ")"),
           core::concat(t.table[i], " in element ", i));
    }
  }
}

void run(const velo_cached_attention_args& a, const cache_problem& p,
         const cached_attention_kernels& kernels, core::execution& on) {
  const cache_tensors t{data<const char>(a.query),
                        data<const char>(a.key),
                        data<const char>(a.value),
                        data<const float>(a.key_scale),
                        data<const float>(a.value_scale),
                        data<const std::int32_t>(a.block_table),
                        data<const std::int32_t>(a.cache_seqlens),
                        data<char>(a.attention_out)};
  require_lengths(p, t.lengths);
  require_pages(p, t);
  if (kernels.merge == nullptr) return cached_attention_reference(p, t, on.threads);
  void* scratch = on.scratch.take(cached_attention_bytes(p, t, on.threads.threads()));
  cached_attention_pass(p, t, kernels, on.threads, scratch);
}

const char* reject(const velo_cached_attention_args&, const cache_problem& p,
                   const kernel_entry& kernel) {
  const auto& kernels = *static_cast<const cached_attention_kernels*>(kernel.kernels);
  if (kernels.pairs.scores == nullptr) return nullptr;
  if (p.type != element_type::bf16 || p.narrow) return "serves a cache of bfloat16 alone";
  return dot_product_pays() ? nullptr : "the dot product of bfloat16 is slower than widening here";
}

// Lengths are data: every sequence counts as full.
void cost_of(const velo_cached_attention_args& a, const cache_problem& p, op_cost& cost) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double heads = real(p.batch) * real(p.heads);
  const double flops = 2 * heads * real(p.d + p.dv);
  const visible_keys keys({p.pre, 0, true}, p.sq, p.capacity(), 0);
  cost.multiply(flops * real(p.sq) * real(p.capacity()), flops * keys.pairs(), a.query->dtype);
}

}  // namespace

extern const operator_def cached_attention_operator =
    with_cost<cost_of>(define<infer, run, reject>(cached_attention_kernel_list));

}  // namespace velo::ops
