// Collectives over rows, and the plan with what it saves.
#include "examples/decoder/parallel/model_parallel.hpp"

#include <algorithm>
#include <utility>

#include "examples/decoder/weights/weights.hpp"

namespace decoder {
namespace {

// The part of `all` rows that a rank has; the first ones have one more where ranks do not divide.
std::int64_t rows_of(std::int64_t all, int rank, int ranks) {
  return all / ranks + (rank < all % ranks ? 1 : 0);
}

velo_sequence_kind kind_of(const std::string& algorithm) {
  const std::pair<const char*, velo_sequence_kind> kinds[] = {
      {"ulysses", VELO_SEQUENCE_ULYSSES},   {"ring", VELO_SEQUENCE_RING},
      {"hybrid", VELO_SEQUENCE_HYBRID},     {"all_gather", VELO_SEQUENCE_ALL_GATHER},
      {"adaptive", VELO_SEQUENCE_ADAPTIVE}, {"hybrid_adaptive", VELO_SEQUENCE_HYBRID_ADAPTIVE}};
  for (const auto& [name, kind] : kinds)
    if (algorithm == name) return kind;
  return -1;
}

velo_sequence_cache cache_of(const std::string& kept) {
  return kept == "full"   ? VELO_SEQUENCE_CACHE_FULL
         : kept == "half" ? VELO_SEQUENCE_CACHE_HALF
                          : VELO_SEQUENCE_CACHE_NONE;
}

// The sizes that the operator's outputs have for one sequence.
// given: the elements that a plan takes from the layer that owns the keys.
sequence_share::saved saved_by(const member& rank, const velo::sequence_plan& plan,
                               const velo_dtype& type, std::int64_t rows, const part_widths& widths,
                               std::int64_t given) {
  const velo::tensor_view query(nullptr, type, {rows, widths.heads, widths.head_dim});
  const velo::tensor_view key(nullptr, type, {rows, widths.kv_heads, widths.head_dim});
  const velo::tensor_view value(nullptr, type, {rows, widths.kv_heads, widths.value_dim});
  const velo::tensor_view kept(nullptr, type, {given});
  velo_shape outputs[4] = {};
  velo::op_infer(rank.context(), "context_parallel_attention",
                 {{"group", rank.attention_ranks().group},
                  {"plan", plan},
                  {"query", query},
                  {"key", key},
                  {"value", value},
                  {"given", kept}},
                 outputs, 4);
  return {outputs[1].sizes[0], outputs[1].sizes[1], outputs[3].sizes[0]};
}

}  // namespace

tensor_parallel::tensor_parallel(const member::part& of, bool cuts_rows, bool shares_saved)
    : of_(of.ranks == 1 ? nullptr : &of),
      cuts_rows_(of_ != nullptr && cuts_rows),
      shares_saved_(of_ != nullptr && shares_saved),
      counts_(static_cast<std::size_t>(of.ranks)) {}

range tensor_parallel::part(std::int64_t all) const {
  const std::int64_t before =
      of_->rank * (all / of_->ranks) + std::min<std::int64_t>(of_->rank, all % of_->ranks);
  return {before, rows_of(all, of_->rank, of_->ranks)};
}

const std::int64_t* tensor_parallel::counts(const velo::tensor_view& all) const {
  for (int i = 0; i < of_->ranks; ++i)
    counts_[static_cast<std::size_t>(i)] = rows_of(all.size(0), i, of_->ranks) * all.size(1);
  return counts_.data();
}

velo_ints tensor_parallel::row_counts(std::int64_t all) const {
  counts_.resize(static_cast<std::size_t>(ranks()));
  for (int i = 0; i < ranks(); ++i) counts_[static_cast<std::size_t>(i)] = rows_of(all, i, ranks());
  return {counts_.data(), ranks()};
}

void tensor_parallel::gather(const velo::stream_ref& stream, const velo::tensor_view& own,
                             const velo::tensor_view& all) const {
  of_->group.all_gather(stream, own, counts(all), nullptr, all);
}

void tensor_parallel::sum(const velo::stream_ref& stream, const velo::tensor_view& products,
                          const velo::tensor_view& own) const {
  if (cuts_rows_)
    of_->group.reduce_scatter(stream, products, counts(products), own);
  else
    of_->group.all_reduce(stream, products, products);
}

void tensor_parallel::sum_gradients(const velo::stream_ref& stream,
                                    const velo::tensor_view& x) const {
  if (cuts_rows_) of_->group.all_reduce(stream, x, x);
}

void tensor_parallel::sum_parts(const velo::stream_ref& stream, const velo::tensor_view& x) const {
  if (of_ != nullptr && x.numel() > 0) of_->group.all_reduce(stream, x, x);
}

velo::sequence_plan make_sequence_plan(const settings& values, const part_widths& widths,
                                       const std::vector<std::int64_t>* documents,
                                       layer_keys keys) {
  const parallel_settings& how = values.parallel;
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = kind_of(how.cp_algorithm);
  desc.cp = how.attention_ranks();
  desc.ulysses = how.cp_ulysses;
  desc.window = how.cp_window;
  desc.sequence = values.data.sequence;
  if (documents != nullptr) {
    desc.sequence = documents->back();
    desc.document_ends = documents->data();
    desc.document_count = static_cast<std::int64_t>(documents->size());
  }
  desc.heads = widths.heads;
  desc.kv_heads = widths.kv_heads;
  desc.head_dim = widths.head_dim;
  desc.element_bytes = values.model.dtype == "f32" ? 4 : 2;
  desc.keys = keys.whose;
  desc.kv_cache = keys.cached ? cache_of(how.cp_kv_cache) : VELO_SEQUENCE_CACHE_NONE;
  desc.kv_gather = how.cp_kv_gather ? 1 : 0;
  return velo::sequence_plan::create(desc);
}

held_rows sequence_rows(const velo::sequence_plan& plan, std::int64_t sequence, std::int64_t rank) {
  std::vector<std::int64_t> runs(2 * static_cast<std::size_t>(plan.rows(rank, nullptr, 0)));
  plan.rows(rank, runs.data(), static_cast<std::int64_t>(runs.size()) / 2);
  return {sequence, std::move(runs)};
}

context_parallel::context_parallel(const member& rank, const settings& values,
                                   const part_widths& widths)
    : context_parallel(values.data.sequence) {
  if (values.parallel.sequence_splits > 1) splits_ = cut_shared_sequence(rank, values, widths);
  if (rank.attention_ranks().ranks == 1) return;
  rank_ = &rank;
  of_ = &rank.attention_ranks();
  values_ = &values;
  widths_ = widths;
  if (!splits_.empty() && values.parallel.cp_algorithm == "ulysses")
    heads_ = cut_heads(widths.heads, widths.kv_heads, of_->ranks);
  if (values.data.has_documents()) return;
  window_ = has_plan() ? share(values.data.sequence, nullptr) : share_of_splits();
}

sequence_share context_parallel::share_of_splits() const {
  std::vector<std::int64_t> runs;
  for (const sequence_split& each : splits_)
    runs.insert(runs.end(), each.rows.runs().begin(), each.rows.runs().end());
  return {held_rows(values_->data.sequence, std::move(runs)), {}, {}};
}

sequence_share context_parallel::of_documents(const std::vector<std::int64_t>& ends) const {
  if (is_alone()) return {held_rows(ends.back()), {}, {}};
  return share(ends.back(), &ends);
}

layer_keys context_parallel::keys_of(std::size_t layer) const {
  if (!has_plan()) return {};
  const bool takes = values_->model.shares_keys(layer);
  const std::size_t owner = takes ? layer - 1 : layer;
  const bool is_shared = static_cast<std::int64_t>(layer) + 1 < values_->model.layers &&
                         values_->model.shares_keys(layer + 1);
  return {static_cast<std::int64_t>(owner) % (values_->parallel.cp_kv_interval + 1) == 0,
          takes       ? VELO_SEQUENCE_KEYS_GIVEN
          : is_shared ? VELO_SEQUENCE_KEYS_SHARED
                      : VELO_SEQUENCE_KEYS_OWN};
}

// Adds the plan of layers with such keys, unless it is there; an owner's before those that take
// its keys.
void context_parallel::add_plan(sequence_share& to, const std::vector<std::int64_t>* documents,
                                layer_keys keys) const {
  sequence_share::attention& made = to.of(keys);
  if (made.plan) return;
  std::int64_t given = 0;
  if (keys.whose == VELO_SEQUENCE_KEYS_GIVEN)
    given = to.of({keys.cached, VELO_SEQUENCE_KEYS_SHARED}).saves.kept;
  made.plan = make_sequence_plan(*values_, widths_, documents, keys);
  const std::int64_t rows = sequence_rows(made.plan, values_->data.sequence, of_->rank).count();
  made.saves = saved_by(*rank_, made.plan, dtype_of(type_of(values_->model)), rows, widths_, given);
}

sequence_share context_parallel::share(std::int64_t sequence,
                                       const std::vector<std::int64_t>* documents) const {
  sequence_share made{held_rows(sequence), {}, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(values_->model.layers); ++i)
    add_plan(made, documents, keys_of(i));
  const velo::sequence_plan& any = made.of(keys_of(0)).plan;
  made.rows = sequence_rows(any, sequence, of_->rank);
  const std::int64_t y_ranks = values_->parallel.tp_y();
  for (std::int64_t y = 0; y_ranks > 1 && y < y_ranks; ++y)
    made.along_y.push_back(sequence_rows(any, sequence, of_->rank / y_ranks * y_ranks + y));
  return made;
}

std::int64_t sequence_share::all_rows() const {
  std::int64_t count = along_y.empty() ? rows.count() : 0;
  for (const held_rows& each : along_y) count += each.count();
  return count;
}

model_parallel::model_parallel(const member& rank, const settings& values,
                               const part_widths& widths)
    : tensor(rank.tensor_ranks_x(), values.parallel.sequence_parallel || values.parallel.in_two(),
             values.memory.distribute_saved),
      hidden(rank.tensor_ranks_y()),
      context(rank, values, widths),
      experts(rank, values),
      key_ranks(rank.key_ranks().group ? &rank.key_ranks().group : nullptr),
      tied_ends(rank.tied_ends().group ? &rank.tied_ends().group : nullptr) {}

}  // namespace decoder
