// Checks of tensors against the routes, and the states of a routing.
#include "sched/moe/dispatcher.hpp"

#include <cmath>

#include "core/failure.hpp"
#include "core/handle/handle.hpp"
#include "core/tensor/dtype.hpp"
#include "velo/ops_experts.h"

namespace velo::sched {

using core::concat;
using core::fail;
using core::number;
using core::operator==;
using core::operator!=;

namespace {

// The expected shape of a matrix. columns < 0: any number.
struct matrix_form {
  std::int64_t rows, columns;
  const char* of_rows;  // what they are
};
comm::buffer matrix_of(const core::context& owner, const velo_tensor* given, const char* name,
                       const matrix_form& form) {
  const comm::buffer all = comm::buffer_of(owner, given, name);
  if (given->ndim != 2) fail(VELO_ERR_RANK, name, "a matrix", concat(given->ndim, " dimensions"));
  if (given->shape[0] != form.rows)
    fail(VELO_ERR_SHAPE, name, concat(form.rows, " rows, ", form.of_rows), number(given->shape[0]));
  if (form.columns >= 0 && given->shape[1] != form.columns)
    fail(VELO_ERR_SHAPE, name, concat(form.columns, " columns"), number(given->shape[1]));
  return all;
}

void require_dtype(const comm::buffer& of, const char* name, velo_dtype wanted, const char* why) {
  if (of.dtype != wanted) fail(VELO_ERR_DTYPE, name, why, core::dtype_name(of.dtype));
}

bool is_row_dtype(velo_dtype dtype) {
  return dtype == core::f32 || dtype == core::f16 || dtype == core::bf16;
}

void require_experts(const velo_dispatcher_desc& desc, int ranks) {
  constexpr std::int64_t most = 1 << 20;
  if (desc.experts < 1 || desc.experts > most || desc.experts % ranks != 0)
    fail(VELO_ERR_ARGUMENT, "desc.experts",
         concat("1 to 2^20 experts, divisible by ", ranks, " ranks"), number(desc.experts));
  if (desc.top_k < 1 || desc.top_k > desc.experts)
    fail(VELO_ERR_ARGUMENT, "desc.top_k", concat("1 to ", desc.experts, ", the experts"),
         number(desc.top_k));
}

core::context& owner_of(velo_group among) {
  return core::use<comm::group>(among, "group").owner();
}

void require_choice(std::int64_t value, std::int64_t last, const char* field, const char* form) {
  if (value < 0 || value > last)
    fail(VELO_ERR_ARGUMENT, concat("desc.", field), form, number(value));
}

expert_layout layout_of(velo_group among, const velo_dispatcher_desc& desc) {
  const comm::group& of = core::use<comm::group>(among, "group");
  require_experts(desc, of.size());
  require_choice(desc.kind, VELO_DISPATCH_HIERARCHICAL, "kind", "VELO_DISPATCH_*");
  return {of.size(), of.rank(), desc.experts, desc.top_k, desc.kind};
}

// A field that has a value only with others.
void require_unused(double value, const char* field, const char* form) {
  if (value != 0) fail(VELO_ERR_ARGUMENT, concat("desc.", field), form, core::text("%.17g", value));
}
void require_rows(const velo_dispatcher_desc& desc, std::int64_t least) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  if (desc.capacity < least || desc.capacity > most)
    fail(VELO_ERR_ARGUMENT, "desc.capacity", concat(least, " to 2^31 - 1 rows"),
         number(desc.capacity));
}

// The fields of a desc that say how many rows an expert takes.
void require_measure(const velo_dispatcher_desc& desc) {
  require_choice(desc.capacity_rule, VELO_CAPACITY_FACTOR, "capacity_rule", "VELO_CAPACITY_*");
  if (desc.capacity_rule == VELO_CAPACITY_NONE)
    require_unused(static_cast<double>(desc.capacity), "capacity", "0 without a capacity rule");
  else
    require_rows(desc, desc.capacity_rule == VELO_CAPACITY_ROWS ? 1 : 0);
  const double factor = desc.capacity_factor;
  if (desc.capacity_rule != VELO_CAPACITY_FACTOR)
    require_unused(factor, "capacity_factor", "0 without VELO_CAPACITY_FACTOR");
  else if (!std::isfinite(factor) || factor <= 0)
    fail(VELO_ERR_ARGUMENT, "desc.capacity_factor", "a finite number above 0",
         core::text("%.17g", factor));
}

capacity_rule capacity_of(const velo_dispatcher_desc& desc) {
  require_measure(desc);
  if (desc.capacity_rule == VELO_CAPACITY_NONE) {
    require_unused(desc.drop_policy, "drop_policy", "0 without a capacity rule");
    require_unused(desc.capacity_by_rank, "capacity_by_rank", "0 without a capacity rule");
    require_unused(desc.pad, "pad", "0 without a capacity rule");
    return {};
  }
  require_choice(desc.drop_policy, VELO_DROP_POLICY_POSITION, "drop_policy", "VELO_DROP_POLICY_*");
  require_choice(desc.capacity_by_rank, 1, "capacity_by_rank", "0 or 1");
  require_choice(desc.pad, 1, "pad", "0 or 1");
  capacity_rule all;
  all.by = desc.capacity_rule == VELO_CAPACITY_ROWS ? capacity_rule::measure::rows
                                                    : capacity_rule::measure::factor;
  all.rows = desc.capacity, all.factor = desc.capacity_factor;
  all.keeps_first = desc.drop_policy == VELO_DROP_POLICY_POSITION;
  all.alone = desc.capacity_by_rank == 1, all.pads = desc.pad == 1;
  return all;
}

velo_group batch_group_of(velo_group among, const velo_dispatcher_desc& desc) {
  if (desc.batch_group == nullptr) return among;
  if (desc.capacity_rule == VELO_CAPACITY_NONE || desc.capacity_by_rank != 0)
    fail(VELO_ERR_ARGUMENT, "desc.batch_group", "NULL without a capacity of the micro-batch",
         "a group");
  const comm::group& of = core::use<comm::group>(desc.batch_group, "desc.batch_group");
  if (&of.owner() != &owner_of(among))
    fail(VELO_ERR_ARGUMENT, "desc.batch_group", "a group of the context of group",
         "one of another context");
  return desc.batch_group;
}

}  // namespace

dispatcher::dispatcher(velo_group among, const velo_dispatcher_desc& desc)
    : group_(among),
      batch_group_(batch_group_of(among, desc)),
      owner_(owner_of(among)),
      layout_(layout_of(among, desc)),
      capacity_(capacity_of(desc)) {}

comm::group& dispatcher::group() const {
  return core::use<comm::group>(group_, "dispatcher");
}
comm::group& dispatcher::batch_group() const {
  return core::use<comm::group>(batch_group_, "dispatcher");
}

void dispatcher::fill(velo_dispatcher_info& info) const noexcept {
  info.top_k = static_cast<std::int32_t>(layout_.top_k);
  info.ranks = layout_.ranks;
  info.experts = layout_.experts;
  info.first_expert = layout_.first(layout_.rank);
  info.expert_count = layout_.each();
}

// A call that is being checked.
struct dispatcher::call {
  call(const dispatcher& of, const routing& by, const char* function) : owner(of.owner()) {
    if (by.handle_of_dispatcher() != core::handle_of(of))
      fail(VELO_ERR_ARGUMENT, "routing", "a routing of this dispatcher", "one of another");
    what.function = function;
    what.routes = by.require();
    what.among = &of.group();
  }

  // The tensor that is read first, which decides dtype and width; then others like it.
  comm::buffer first(const velo_tensor* given, const char* name, bool of_tokens) {
    const comm::buffer all = matrix(given, name, of_tokens, -1);
    if (!is_row_dtype(all.dtype))
      fail(VELO_ERR_DTYPE, name, "float32, float16 or bfloat16", core::dtype_name(all.dtype));
    if (given->shape[1] >= std::int64_t{1} << 31)
      fail(VELO_ERR_SHAPE, name, "fewer than 2^31 columns", number(given->shape[1]));
    what.dtype = all.dtype;
    what.width = given->shape[1];
    return all;
  }
  comm::buffer next(const velo_tensor* given, const char* name, bool of_tokens) const {
    const comm::buffer all = matrix(given, name, of_tokens, what.width);
    require_dtype(all, name, what.dtype, "the dtype of the other rows");
    return all;
  }
  comm::buffer weights(const velo_tensor* given, const char* name) const {
    const comm::buffer all = matrix_of(
        owner, given, name, {what.routes->tokens(), what.routes->layout().top_k, "one a token"});
    require_dtype(all, name, core::f32, "float32");
    return all;
  }

  const core::context& owner;
  row_exchange what{};

 private:
  comm::buffer matrix(const velo_tensor* given, const char* name, bool of_tokens,
                      std::int64_t columns) const {
    const row_routes& routes = *what.routes;
    if (of_tokens) return matrix_of(owner, given, name, {routes.tokens(), columns, "one a token"});
    return matrix_of(owner, given, name,
                     {routes.rows(), columns, "as velo_routing_get_rows gives"});
  }
};

void dispatcher::dispatch(core::stream& on, routing& by, const velo_tensor* tokens,
                          const velo_tensor* rows) {
  call all(*this, by, "velo_dispatcher_dispatch");
  const comm::buffer in = all.first(tokens, "tokens", true), out = all.next(rows, "rows", false);
  comm::require_apart(out, "rows", in, "tokens");
  all.what.direction = row_direction::to_experts;
  all.what.from = in.data, all.what.to = out.data;
  submit(on, all.what);
}

void dispatcher::combine(core::stream& on, routing& by, const velo_tensor* rows,
                         const velo_tensor* weights, const velo_tensor* tokens) {
  call all(*this, by, "velo_dispatcher_combine");
  const comm::buffer in = all.first(rows, "rows", false), out = all.next(tokens, "tokens", true);
  comm::require_apart(out, "tokens", in, "rows");
  if (weights != nullptr) {
    const comm::buffer given = all.weights(weights, "weights");
    comm::require_apart(out, "tokens", given, "weights");
    all.what.weighted = true;
    all.what.weights = reinterpret_cast<const float*>(given.data);
  }
  all.what.direction = row_direction::to_tokens;
  all.what.from = in.data, all.what.to = out.data;
  submit(on, all.what);
}

void dispatcher::combine_backward(core::stream& on, routing& by, const combine_gradient& of) {
  call all(*this, by, "velo_dispatcher_combine_backward");
  const comm::buffer in = all.first(of.dtokens, "dtokens", true),
                     out = all.next(of.drows, "drows", false);
  comm::require_apart(out, "drows", in, "dtokens");
  if (of.weights != nullptr) {
    const comm::buffer weights = all.weights(of.weights, "weights"),
                       rows = all.next(of.rows, "rows", false),
                       dweights = all.weights(of.dweights, "dweights");
    comm::require_apart(out, "drows", weights, "weights");
    comm::require_apart(out, "drows", rows, "rows");
    comm::require_apart(out, "drows", dweights, "dweights");
    comm::require_apart(dweights, "dweights", in, "dtokens");
    comm::require_apart(dweights, "dweights", rows, "rows");
    comm::require_apart(dweights, "dweights", weights, "weights");
    all.what.weighted = true;
    all.what.weights = reinterpret_cast<const float*>(weights.data);
    all.what.products_with = rows.data;
    all.what.dweights = reinterpret_cast<float*>(dweights.data);
  } else if (of.dweights != nullptr) {
    fail(VELO_ERR_NULL, "weights", "the weights of dweights", "NULL");
  }
  all.what.direction = row_direction::to_experts;
  all.what.from = in.data, all.what.to = out.data;
  submit(on, all.what);
}

void dispatcher::dispatch_backward(core::stream& on, routing& by, const velo_tensor* drows,
                                   const velo_tensor* dtokens) {
  call all(*this, by, "velo_dispatcher_dispatch_backward");
  const comm::buffer in = all.first(drows, "drows", false),
                     out = all.next(dtokens, "dtokens", true);
  comm::require_apart(out, "dtokens", in, "drows");
  all.what.direction = row_direction::to_tokens;
  all.what.from = in.data, all.what.to = out.data;
  submit(on, all.what);
  by.reset();
}

dispatcher& routing::of() const {
  return core::use<dispatcher>(of_, "routing");
}

// The tensors of routing::set, checked.
given_choices routing::read(const velo_tensor* choices, const velo_tensor* scores,
                            const velo_tensor* places) const {
  const dispatcher& layer = of();
  const std::int64_t top_k = layer.layout().top_k;
  const comm::buffer given = comm::buffer_of(layer.owner(), choices, "choices");
  require_dtype(given, "choices", core::i32, "int32");
  if (choices->ndim != 2) fail(VELO_ERR_RANK, "choices", "2", number(choices->ndim));
  if (choices->shape[1] != top_k)
    fail(VELO_ERR_SHAPE, "choices", concat(top_k, " choices of each token"),
         number(choices->shape[1]));
  if (given.count >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "choices", "fewer than 2^31 choices", number(given.count));
  given_choices all{reinterpret_cast<const std::int32_t*>(given.data), {}};
  const std::int64_t tokens = choices->shape[0];
  const capacity_rule& rule = layer.capacity();
  if (rule.scores()) {
    const comm::buffer list =
        matrix_of(layer.owner(), scores, "scores", {tokens, top_k, "one a token"});
    require_dtype(list, "scores", core::f32, "float32");
    all.order.scores = reinterpret_cast<const float*>(list.data);
  } else if (scores != nullptr) {
    fail(VELO_ERR_ARGUMENT, "scores", "NULL where no choice is dropped by its score", "a tensor");
  }
  if (places == nullptr) return all;
  if (!rule.limits() || rule.alone)
    fail(VELO_ERR_ARGUMENT, "places", "NULL without a capacity of the micro-batch", "a tensor");
  const comm::buffer list = comm::buffer_of(layer.owner(), places, "places");
  require_dtype(list, "places", core::i64, "int64");
  if (list.count != tokens)
    fail(VELO_ERR_SHAPE, "places", concat(tokens, " numbers, one a token"), number(list.count));
  all.order.placed = true;
  all.order.places = reinterpret_cast<const std::int64_t*>(list.data);
  return all;
}

padding padding_of(const capacity_rule& rule) {
  if (!rule.pads) return padding::none;
  return rule.alone ? padding::of_rank : padding::of_expert;
}

// Whether ranks of the experts' group may go on to wait in it after a failure of this rank in its
// batch group.
bool routing::missed_by_peers(const core::stream& on, const row_routes& routes) const {
  const comm::group& batch = of().batch_group();
  if (&batch == &of().group()) return false;
  return batch.has_ended() || (on.is_inline() && routes.is_read());
}

// All pieces of work have room in the queue before the first is queued, so that FULL leaves nothing
// behind. A later failure ends the group of the experts, unless all ranks refuse the same counts.
void routing::submit_choices(core::stream& on, const std::shared_ptr<row_routes>& routes,
                             const given_choices& given) {
  const dispatcher& layer = of();
  const capacity_rule& rule = layer.capacity();
  constexpr const char* function = "velo_routing_set";
  const bool of_batch = rule.limits() && !rule.alone;
  comm::group& group = layer.group();
  on.require_room(of_batch ? 3 : 2);  // the exchanges, and the event
  bool begun = false;
  try {
    if (of_batch)
      submit(on, choice_limitation{function, routes, &layer.batch_group(), rule, given});
    begun = of_batch;
    submit(on, choice_exchange{function, routes, &group, rule, !of_batch, given});
    begun = true;
    if (!on.is_inline()) on.record(known_);
  } catch (...) {
    const bool all_refuse =
        of_batch && on.is_inline() && routes->expert_beyond_capacity() != row_routes::no_expert;
    if (!all_refuse && (begun || (of_batch && missed_by_peers(on, *routes))))
      group.abort("a routing could not be set");
    throw;
  }
}

void routing::set(core::stream& on, const velo_tensor* choices, const velo_tensor* scores,
                  const velo_tensor* places) {
  dispatcher& layer = of();
  if (routes_ != nullptr)
    fail(VELO_ERR_STATE, "routing", "a routing without choices",
         "one that was set, and whose backward pass is still to come");
  const given_choices given = read(choices, scores, places);
  const auto routes = std::make_shared<row_routes>(
      layer.layout(), choices->shape[0], padding_of(layer.capacity()), layer.next_serial());
  submit_choices(on, routes, given);
  awaited_ = on.is_inline();
  routes_ = routes;
}

void routing::require_set() const {
  if (routes_ == nullptr) fail(VELO_ERR_STATE, "routing", "choices, by velo_routing_set", "none");
}

const row_routes& routing::wait() {
  const dispatcher& layer = of();
  require_set();
  if (!awaited_) {
    const std::shared_ptr<core::point> point = known_.last();
    if (!point->passed()) {
      layer.owner().require_can_wait("routing");
      point->wait(-1);
    }
    awaited_ = true;
  }
  return *require();
}

std::shared_ptr<const row_routes> routing::require() const {
  static_cast<void>(of());
  require_set();
  if (!awaited_)
    fail(VELO_ERR_STATE, "routing", "counts, by velo_routing_get_rows", "choices alone");
  if (!routes_->is_complete())
    fail(VELO_ERR_STATE, "routing", "choices that all ranks took",
         "a velo_routing_set that failed");
  return routes_;
}

}  // namespace velo::sched
