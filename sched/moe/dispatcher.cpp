// Checks of tensors against the routes, and the states of a routing.
#include "sched/moe/dispatcher.hpp"

#include "core/failure.hpp"
#include "core/handle/handle.hpp"

namespace velo::sched {

using core::concat;
using core::fail;
using core::number;

namespace {

constexpr velo_dtype float32{VELO_DTYPE_FLOAT, 32, 1}, int32{VELO_DTYPE_INT, 32, 1};

bool same(velo_dtype a, velo_dtype b) {
  return a.code == b.code && a.bits == b.bits;
}

// A matrix of so many rows, columns and elements. columns < 0: any number.
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
  if (!same(of.dtype, wanted)) fail(VELO_ERR_DTYPE, name, why, core::dtype_name(of.dtype));
}

bool is_row_dtype(velo_dtype dtype) {
  return same(dtype, float32) || (dtype.code == VELO_DTYPE_FLOAT && dtype.bits == 16) ||
         (dtype.code == VELO_DTYPE_BFLOAT && dtype.bits == 16);
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

expert_layout layout_of(velo_group among, const velo_dispatcher_desc& desc) {
  const comm::group& of = core::use<comm::group>(among, "group");
  require_experts(desc, of.size());
  return {of.size(), of.rank(), desc.experts, desc.top_k};
}

}  // namespace

dispatcher::dispatcher(velo_group among, const velo_dispatcher_desc& desc)
    : group_(among), owner_(owner_of(among)), layout_(layout_of(among, desc)) {}

comm::group& dispatcher::group() const {
  return core::use<comm::group>(group_, "dispatcher");
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
    require_dtype(all, name, float32, "float32");
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

void routing::set(core::stream& on, const velo_tensor* choices) {
  const dispatcher& layer = of();
  if (routes_ != nullptr)
    fail(VELO_ERR_STATE, "routing", "a routing without choices",
         "one that was set, and whose backward pass is still to come");
  const comm::buffer given = comm::buffer_of(layer.owner(), choices, "choices");
  require_dtype(given, "choices", int32, "int32");
  if (choices->ndim != 2) fail(VELO_ERR_RANK, "choices", "2", number(choices->ndim));
  if (choices->shape[1] != layer.layout().top_k)
    fail(VELO_ERR_SHAPE, "choices", concat(layer.layout().top_k, " choices of each token"),
         number(choices->shape[1]));
  if (given.count >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "choices", "fewer than 2^31 choices", number(given.count));
  const auto routes = std::make_shared<row_routes>(layer.layout(), choices->shape[0]);
  submit(on, choice_exchange{"velo_routing_set", routes, &layer.group(),
                             reinterpret_cast<const std::int32_t*>(given.data)});
  if (!on.is_inline()) {
    try {
      on.record(known_);
    } catch (...) {  // the exchange is queued, but this rank could not wait for it
      layer.group().abort("a routing could not be set");
      throw;
    }
  }
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
