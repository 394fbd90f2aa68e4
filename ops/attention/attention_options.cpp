// Windows, masks, position terms and dropout of attention.
#include "ops/attention/attention_options.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/dropout_part.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// ---- the keys that a row sees ----

// The window of pre_tokens and next_tokens; 2147483647 leaves its side open.
attention_window band_of(const attention_options& o, bool bottom_right) {
  constexpr std::int64_t open = 2147483647;
  return {o.pre_tokens == open ? unlimited : o.pre_tokens,
          o.next_tokens == open ? unlimited : o.next_tokens, bottom_right};
}

// The window of every sequence but the banded one.
attention_window window_of(const attention_options& o) {
  switch (o.sparse_mode) {
    case VELO_ATTENTION_SPARSE_MODE_FULL:
      return band_of(o, false);
    case VELO_ATTENTION_SPARSE_MODE_BAND:
      return band_of(o, true);
    case VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL:
    case VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL:
      return {unlimited, 0, false};
    case VELO_ATTENTION_SPARSE_MODE_ALL_MASK:
      return {};
    default:
      return {unlimited, 0, true};
  }
}

// Whether one sequence has a window of its own.
bool is_banded(std::int64_t sparse_mode) {
  return sparse_mode == VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND ||
         sparse_mode == VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL;
}

void require_mode(std::int64_t sparse_mode, bool lists) {
  if (lists && sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX) {
    fail(VELO_ERR_ARGUMENT, "args.sparse_mode", "prefix_compressed for layout tnd", "prefix");
  }
  if (is_banded(sparse_mode) && !lists) {
    fail(VELO_ERR_ARGUMENT, "args.sparse_mode", "a mode below 7 for layouts other than tnd",
         core::number(sparse_mode));
  }
}

bool has_prefix(std::int64_t sparse_mode) {
  return sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX ||
         sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED;
}

// The sequence whose window is the band: the last of mode 7 or the first of mode 8 with queries.
std::int64_t banded_sequence(const velo_ints& ends, bool last) {
  std::int64_t found = -1, before = 0;
  for (std::int64_t i = 0; i < ends.count && (last || found < 0); ++i) {
    if (ends.data[i] > before) found = i;
    before = ends.data[i];
  }
  return found;
}

void require_prefix(const attention_options& o, const attention_problem& p) {
  const velo_ints* prefix = o.prefix;
  if (prefix == nullptr) {
    fail(VELO_ERR_NULL, "args.prefix", "a length of prefix for each sequence", "NULL");
  }
  if (prefix->count != p.batch) {
    fail(VELO_ERR_ARGUMENT, "args.prefix", core::concat(p.batch, " values, one a sequence"),
         core::number(prefix->count));
  }
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const std::int64_t sq = o.lists() ? length_of(o.q_ends(), i) : p.sq;
    const std::int64_t skv = o.lists() ? length_of(o.kv_ends(), i) : p.skv;
    const std::int64_t least = std::max<std::int64_t>(skv - sq, 0), got = prefix->data[i];
    if (got >= least && got <= skv) continue;
    fail(VELO_ERR_ARGUMENT, "args.prefix",
         core::concat("values of ", least, " to ", skv, " for sequence ", i), core::number(got));
  }
}

// ---- the mask ----

// Modes whose mask tensor hides what it says; for the others it is a constant.
bool reads_mask(std::int64_t sparse_mode) {
  return sparse_mode == VELO_ATTENTION_SPARSE_MODE_FULL ||
         sparse_mode == VELO_ATTENTION_SPARSE_MODE_ALL_MASK ||
         sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX;
}

void refuse_shape(const char* field, const velo_tensor& t, const char* expected) {
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field), expected, shape_name(t.ndim, t.shape));
}

// Whether the last dimensions of a tensor are these.
bool ends_in(const velo_tensor& t, std::int64_t rows, std::int64_t keys) {
  return t.shape[t.ndim - 2] == rows && t.shape[t.ndim - 1] == keys;
}

// Whether a tensor of 4 dimensions has 1 or all of the batches and heads.
bool is_broadcast(const velo_tensor& t, const attention_problem& p) {
  return (t.shape[0] == 1 || t.shape[0] == p.batch) && (t.shape[1] == 1 || t.shape[1] == p.heads);
}

void check_mask(const attention_options& o, const attention_problem& p) {
  if (o.atten_mask == nullptr) return;
  const velo_tensor& mask = *o.atten_mask;
  require_rank(mask, "atten_mask", 2, 4);
  require_dense_rows(mask, "atten_mask");
  if (!reads_mask(o.sparse_mode)) {
    const bool tall = o.sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED;
    if (mask.ndim == 2 && ends_in(mask, tall ? 3072 : 2048, 2048)) return;
    refuse_shape(
        "atten_mask", mask,
        tall ? "[3072, 2048] in mode prefix_compressed" : "[2048, 2048] in modes 2, 3, 4, 7 and 8");
  }
  if (mask.ndim == 2 && ends_in(mask, p.sq, p.skv)) return;
  if (!o.lists() && mask.ndim == 4 && ends_in(mask, p.sq, p.skv) && is_broadcast(mask, p)) return;
  refuse_shape("atten_mask", mask,
               o.lists() ? "[longest Sq, longest Skv]" : "[Sq, Skv] or [B or 1, N or 1, Sq, Skv]");
}

// ---- position terms ----

constexpr std::int64_t compressed_rows = 1024;

bool has_slopes(const attention_options& o) {
  return o.pse_type == VELO_ATTENTION_PSE_TYPE_ALIBI ||
         o.pse_type == VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT;
}

// Whether pse has only the last rows of all: it is longer than they, or they are not one length.
bool is_compressed(const attention_options& o, const attention_problem& p) {
  return o.pse->shape[2] == compressed_rows && (o.lists() || p.sq > compressed_rows);
}

void check_slopes(const attention_options& o, const attention_problem& p) {
  const velo_tensor& pse = *o.pse;
  require_dtype(pse, "pse", f32);
  require_rank(pse, "pse", 1, 2);
  const bool fits =
      pse.shape[pse.ndim - 1] == p.heads && (pse.ndim == 1 || pse.shape[0] == p.batch);
  if (!fits) refuse_shape("pse", pse, "slopes [N] or [B, N]");
}

void require_equal_lengths(const attention_options& o, const attention_problem& p) {
  const std::int64_t sequences = o.lists() ? p.batch : std::min<std::int64_t>(p.batch, 1);
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int64_t sq = o.lists() ? length_of(o.q_ends(), i) : p.sq;
    const std::int64_t skv = o.lists() ? length_of(o.kv_ends(), i) : p.skv;
    if (sq == skv) continue;
    fail(VELO_ERR_SHAPE, "args.pse.shape",
         core::concat("a compressed pse only where Sq = Skv, in sequence ", i),
         core::concat("Sq ", sq, ", Skv ", skv));
  }
}

void check_pse_shape(const attention_options& o, const attention_problem& p) {
  const velo_tensor& pse = *o.pse;
  require_dtype(pse, "pse", dtype_of(p.type));
  require_rank(pse, "pse", 4, 4);
  require_dense_rows(pse, "pse");
  const std::int64_t rows = pse.shape[2], keys = pse.shape[3];
  if (!is_compressed(o, p)) {
    if (!o.lists() && is_broadcast(pse, p) && (rows == 1 || rows == p.sq) && keys == p.skv) return;
    refuse_shape(
        "pse", pse,
        o.lists() ? "[B or 1, N, 1024, Skv] for layout tnd" : "[B or 1, N or 1, Sq or 1, Skv]");
  }
  if (!is_broadcast(pse, p) || keys < p.skv || (!o.lists() && keys != p.skv))
    refuse_shape("pse", pse, "[B or 1, N or 1, 1024, Skv]");
  const bool triangular = o.sparse_mode == VELO_ATTENTION_SPARSE_MODE_FULL ||
                          o.sparse_mode == VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL ||
                          o.sparse_mode == VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
  if (!triangular) {
    fail(VELO_ERR_ARGUMENT, "args.sparse_mode", "0, 2 or 3 with a compressed pse",
         core::number(o.sparse_mode));
  }
  require_equal_lengths(o, p);
}

void refuse_empty_sequences(const attention_options& o, const attention_problem& p) {
  for (std::int64_t i = 0; o.lists() && i < p.batch; ++i) {
    if (length_of(o.q_ends(), i) > 0 && length_of(o.kv_ends(), i) > 0) continue;
    fail(VELO_ERR_ARGUMENT, "args.pse", "NULL where a sequence is empty",
         core::concat("sequence ", i, " without queries or keys"));
  }
}

void check_pse(const attention_options& o, const attention_problem& p) {
  if (o.pse == nullptr) return;
  if (is_banded(o.sparse_mode)) {
    fail(VELO_ERR_ARGUMENT, "args.pse", "NULL in sparse modes 7 and 8", "a tensor");
  }
  refuse_empty_sequences(o, p);
  has_slopes(o) ? check_slopes(o, p) : check_pse_shape(o, p);
}

score_tensor score_tensor_of(const velo_tensor& t) {
  score_tensor s{data<const char>(&t), 0, 0, 0};
  const auto stride = [&](int i) { return t.shape[i] == 1 ? 0 : stride_of(t, i); };
  s.row = stride(t.ndim - 2);
  if (t.ndim == 4) s.batch = stride(0), s.head = stride(1);
  return s;
}

void place_pse(const attention_options& o, const attention_problem& p, attention_terms& t) {
  if (has_slopes(o)) {
    t.slopes = data<const float>(o.pse);
    t.slopes_head = stride_of(*o.pse, o.pse->ndim - 1);
    t.slopes_batch = o.pse->ndim == 2 ? stride_of(*o.pse, 0) : 0;
    t.root = o.pse_type == VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT;
    t.ahead = o.q_start_idx - o.kv_start_idx;
    return;
  }
  t.pse = score_tensor_of(*o.pse);
  t.pse_keys = o.pse->shape[3];
  t.compressed = is_compressed(o, p) ? compressed_rows : 0;
  t.factor = o.pse_type == VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE ? p.scale : 1.0f;
}

// ---- dropout ----

// The call's own [B, N, Sq, Skv]. Packed sequences are one batch of all queries and the longest
// sequence's keys.
struct own_extents {
  std::int64_t of[4];
  own_extents(const attention_options& o, const attention_problem& p)
      : of{p.batch, p.heads, p.sq, p.skv} {
    if (!o.lists()) return;
    of[0] = 1;
    of[2] = p.batch == 0 ? 0 : o.q_ends()[p.batch - 1];
  }
};

void place_dropout(const attention_options& o, const attention_problem& p, attention_terms& t) {
  t.drops = o.keep_prob < 1;
  if (!t.drops) return;
  t.dropout = simd::dropout_of(1 - o.keep_prob, static_cast<std::uint64_t>(o.seed),
                               static_cast<std::uint64_t>(o.offset));
  const own_extents own(o, p);
  for (int i = 0; i < 4; ++i) {
    t.place.origin[i] = o.dropout_origin == nullptr ? 0 : o.dropout_origin->data[i];
    t.place.extents[i] = o.dropout_extents == nullptr ? own.of[i] : o.dropout_extents->data[i];
  }
}

}  // namespace

void check_options(const attention_options& o, attention_problem& p) {
  require_mode(o.sparse_mode, o.lists());
  p.window = window_of(o);
  p.band = band_of(o, true);
  if (is_banded(o.sparse_mode)) {
    const bool last = o.sparse_mode == VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND;
    p.banded = banded_sequence(*o.actual_seq_qlen, last);
  }
  if (has_prefix(o.sparse_mode)) require_prefix(o, p);
  check_mask(o, p);
  check_pse(o, p);
  check_dropout_part(o.dropout_origin, o.dropout_extents, 4, own_extents(o, p).of, "B, N, Sq, Skv");
}

bool has_bias_gradient(const attention_options& o, const attention_problem& p) {
  return o.pse != nullptr && !has_slopes(o) && !is_compressed(o, p);
}

score_tensor check_bias_gradient(const attention_options& o, const attention_problem& p,
                                 const velo_tensor& dpse) {
  if (!has_bias_gradient(o, p)) {
    fail(VELO_ERR_ARGUMENT, "args.dpse", "NULL but for a pse of pse_type 0 or 1 with all its rows",
         o.pse == nullptr ? "no pse"
         : has_slopes(o)  ? "slopes of alibi"
                          : "a compressed pse");
  }
  require_rank(dpse, "dpse", 4, 4);
  require_dense_rows(dpse, "dpse");
  return score_tensor_of(dpse);
}

void place_options(const attention_options& o, attention_problem& p, attention_terms& terms) {
  p.q_ends = o.q_ends();
  p.kv_ends = o.kv_ends();
  if (has_prefix(o.sparse_mode)) p.prefixes = o.prefix->data;
  if (o.atten_mask != nullptr && reads_mask(o.sparse_mode))
    terms.mask = score_tensor_of(*o.atten_mask);
  if (o.pse != nullptr) place_pse(o, p, terms);
  place_dropout(o, p, terms);
  p.terms = &terms;
}

}  // namespace velo::ops
