// context_parallel_attention and its gradient: a sequence plan carried out with a rank's tensors.
//
// Checks compare the tensors with the rank's share of the plan; ranks agree on the plan before rows
// move. Ranks of one process read each other's rows where they lie; others send messages. The bits
// are the same. See context/carried_pass.hpp.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/index.hpp"
#include "ops/attention/attention_layout.hpp"
#include "ops/attention/engine/attention_plan.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/dropout_part.hpp"
#include "sched/overlap/product.hpp"
#include "sched/parallel/context/carried/carried_pass.hpp"
#include "sched/parallel/context/planned_sequence.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;
using core::number;
using core::text;
using ops::operator==;
using forward_args = velo_context_parallel_attention_args;
using gradient_args = velo_context_parallel_attention_backward_args;

// The ways to carry a plan out.
struct attention_kernel {
  enum class way { in_place, messages, reference } how;
};
constexpr attention_kernel in_place{attention_kernel::way::in_place},
    messages{attention_kernel::way::messages}, reference{attention_kernel::way::reference};
constexpr ops::kernel_entry entries[] = {
    {"in_place", core::isa::scalar, &in_place, VELO_DEVICE_CPU, 2},
    {"messages", core::isa::scalar, &messages, VELO_DEVICE_CPU, 1},
    {"reference", core::isa::scalar, &reference}};
constexpr ops::kernel_list kernel_list{entries, 3};

struct problem {
  membership in;
  const planned_sequence* plan;  // or null: the ring of the group
  velo_dtype dtype;
  std::int64_t batch, rows_of_it, heads, key_heads;
  head_widths widths;
  std::int64_t elements;    // of q, k and v
  std::uint64_t signature;  // of the plan and of all attributes

  int rank() const { return in.group == nullptr ? 0 : in.group->rank(); }
  std::int64_t sequence() const { return rows_of_it * in.size(); }  // of the ring of the group
};

// ---- the plan ----

// The share of this rank in the plan of a call, or in a causal ring of the group.
class call_share {
 public:
  explicit call_share(const problem& p)
      : ring_shape_{{{p.sequence()}}, true, nullptr, {p.heads, p.key_heads}, p.in.size()},
        ring_(p.plan == nullptr ? plan_rings(ring_shape_, {1, 1}) : sequence_plan()),
        share_(p.plan == nullptr ? ring_ : p.plan->plan(),
               p.plan == nullptr ? ring_shape_ : p.plan->shape(), p.rank()) {}
  call_share(const call_share&) = delete;
  const rank_share& operator*() const { return share_; }
  const rank_share* operator->() const { return &share_; }

 private:
  const sequence_shape ring_shape_;
  const sequence_plan ring_;
  const rank_share share_;
};

void require_equal(const char* field, const char* what, std::int64_t got, std::int64_t wanted) {
  if (got != wanted)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", field), concat(wanted, " ", what), number(got));
}

void check_plan(const problem& p) {
  const sequence_shape& of = p.plan->shape();
  if (of.ranks != p.in.size())
    fail(VELO_ERR_ARGUMENT, "args.plan", concat("a plan for the ", p.in.size(), " ranks of group"),
         concat("one for ", of.ranks));
  require_equal("query", "rows, as the plan has for this rank", p.rows_of_it,
                size_of(p.plan->held(p.rank())));
  require_equal("query", "heads, as the plan has", p.heads, of.heads.queries);
  require_equal("key", "heads, as the plan has", p.key_heads, of.heads.keys);
  require_equal("query", "elements a head, as the plan has", p.widths.key, p.plan->head_dim());
}

// Without a plan rows are the same on all ranks, in two chunks.
void check_ring(const problem& p) {
  const std::int64_t ranks = p.in.size();
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (ranks > 1 && p.rows_of_it % 2 != 0)
    fail(VELO_ERR_SHAPE, "args.query.shape", concat("an even number of rows, or args.plan"),
         number(p.rows_of_it));
  if (p.rows_of_it > (most - 1) / ranks)
    fail(VELO_ERR_SHAPE, "args.query.shape", concat("fewer than 2^31 rows on all ranks"),
         number(p.rows_of_it));
}

// ---- tensors ----

// Rows, heads and elements of a head in a tensor [.., rows, heads, elements].
struct sizes {
  std::int64_t batch, rows_of_it, heads, width;
};

sizes sizes_of(const velo_tensor& x, const char* field) {
  ops::require_rank(x, field, 3, 4);
  ops::require_dense_rows(x, field);
  const std::int64_t* s = x.shape + x.ndim - 3;
  return {x.ndim == 4 ? x.shape[0] : 1, s[0], s[1], s[2]};
}

std::int64_t layout_of(const velo_tensor& x) {
  return x.ndim == 4 ? VELO_ATTENTION_LAYOUT_BSND : VELO_ATTENTION_LAYOUT_TND;
}

void require_like_query(const velo_tensor& x, const char* field, const sizes& of,
                        const velo_tensor& query, const sizes& q) {
  if (x.ndim != query.ndim)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", field), concat(query.ndim, " dimensions, as query"),
         number(x.ndim));
  ops::require_dtype(x, field, query.dtype);
  require_equal(field, "sequences, as query", of.batch, q.batch);
  require_equal(field, "rows, as query", of.rows_of_it, q.rows_of_it);
}

// The place of the call's sequences and heads in the whole whose indices decide dropout.
template <class Args>
ops::dropout_place place_of(const Args& a, const problem& p, std::int64_t sequence) {
  ops::dropout_place place{{}, {p.batch, p.heads, sequence, sequence}};
  if (a.dropout_origin != nullptr) {
    std::copy_n(a.dropout_origin->data, 2, place.origin);
    std::copy_n(a.dropout_extents->data, 2, place.extents);
  }
  return place;
}

// A hash of all that must be the same on all ranks: the pass, the plan, sizes and attributes.
template <class Args>
std::uint64_t signature_of(const Args& a, const problem& p) {
  std::uint64_t hash = std::is_same_v<Args, gradient_args> ? 1 : 2;
  const auto add = [&](std::uint64_t x) { hash = comm::mixed(hash + x + 1); };
  const auto add_number = [&](double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    add(bits);
  };
  add(p.plan != nullptr ? p.plan->signature() : 0);
  const ops::dropout_place place = place_of(a, p, 0);
  for (const std::int64_t one :
       {p.batch, p.heads, p.key_heads, p.widths.key, p.widths.value, a.seed, a.offset,
        place.origin[0], place.origin[1], place.extents[0], place.extents[1],
        std::int64_t{a.alibi_root}, std::int64_t{a.alibi_slopes != nullptr}})
    add(static_cast<std::uint64_t>(one));
  add_number(a.scale), add_number(a.keep_prob);
  return hash;
}

// Throws UNSUPPORTED where ranks can neither see each other's tensors nor send messages.
void require_messages(const membership& in) {
  if (in.size() == 1 || in.group->shows_tensors()) return;
  comm::message_batch any;
  any.messages.resize(1);
  any.messages[0].peer = (in.group->rank() + 1) % in.group->size();
  in.group->admit(any);
}

template <class Args>
problem problem_of(const Args& a) {
  const velo_tensor &query = *a.query, &key = *a.key, &value = *a.value;
  const sizes q = sizes_of(query, "query"), k = sizes_of(key, "key"), v = sizes_of(value, "value");
  require_like_query(key, "key", k, query, q);
  require_like_query(value, "value", v, query, q);
  ops::require_head("query", q.width);
  ops::require_head("value", v.width);
  require_equal("key", "elements a head, as query", k.width, q.width);
  require_equal("value", "heads, as key", v.heads, k.heads);
  if (k.heads < 1 || q.heads < 1 || q.heads % k.heads != 0)
    fail(VELO_ERR_SHAPE, "args.key.shape", concat("heads that divide the ", q.heads, " of query"),
         number(k.heads));
  if (std::fabs(a.scale) > static_cast<double>(FLT_MAX))
    fail(VELO_ERR_ARGUMENT, "args.scale", "a number that float32 holds", text("%g", a.scale));
  problem p{};
  p.in = membership_in(a.group, "args.group");
  p.dtype = query.dtype;
  p.batch = q.batch, p.rows_of_it = q.rows_of_it, p.heads = q.heads, p.key_heads = k.heads;
  p.widths = {q.width, v.width};
  p.elements = ops::numel(query) + ops::numel(key) + ops::numel(value);
  if (a.plan != nullptr) {
    p.plan = &core::resolve<planned_sequence>(a.plan, "args.plan");
    check_plan(p);
  } else {
    check_ring(p);
  }
  require_messages(p.in);
  if (a.alibi_slopes != nullptr) {
    ops::require_shape(*a.alibi_slopes, "alibi_slopes", 1, &p.heads);
    ops::require_dtype(*a.alibi_slopes, "alibi_slopes", core::f32);
  }
  const std::int64_t own[] = {p.batch, p.heads};
  ops::check_dropout_part(a.dropout_origin, a.dropout_extents, 2, own, "B, N");
  p.signature = signature_of(a, p);
  return p;
}

// softmax_max and softmax_sum, and the elements that this call keeps and takes from another.
struct saved_shape {
  int rank;
  std::int64_t sizes[3], kept, given;  // sizes: [batch, heads, rows]

  saved_shape(const velo_tensor& query, const problem& p) : rank(query.ndim - 1) {
    const call_share share(p);
    sizes[0] = p.batch;
    sizes[1] = share->heads().size();
    sizes[2] = share->queries().size();
    kept = p.batch * share->kept_elements(p.widths);
    given = p.batch * share->given_elements(p.widths);
  }
  const std::int64_t* statistics() const { return sizes + 3 - rank; }
};

void set_out_shape(const velo_tensor& query, const problem& p, std::int64_t* shape) {
  std::copy(query.shape, query.shape + query.ndim, shape);
  shape[query.ndim - 1] = p.widths.value;
}

// A tensor that this operator's calls have kept.
void require_kept(const velo_tensor* x, const char* field, const char* from, std::int64_t elements,
                  const problem& p) {
  if (x == nullptr && elements > 0)
    fail(VELO_ERR_NULL, text("args.%s", field), concat(elements, " elements from ", from), "NULL");
  if (x == nullptr) return;
  ops::require_shape(*x, field, 1, &elements);
  ops::require_dtype(*x, field, p.dtype);
}

template <class Args>
void require_given(const Args& a, const saved_shape& saved, const problem& p) {
  require_kept(a.given, "given", "the call of the layer that owns the keys", saved.given, p);
}

void infer(const forward_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a);
  const saved_shape saved(*a.query, p);
  require_given(a, saved, p);
  std::int64_t out[ops::max_rank];
  set_out_shape(*a.query, p, out);
  outputs.set(a.attention_out, p.dtype, a.query->ndim, out);
  outputs.set(a.softmax_max, core::f32, saved.rank, saved.statistics());
  outputs.set(a.softmax_sum, core::f32, saved.rank, saved.statistics());
  outputs.set(a.kept, p.dtype, 1, &saved.kept);
  if (a.attention_out != nullptr) ops::require_dense_rows(*a.attention_out, "attention_out");
}

void infer_gradient(const gradient_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a);
  const saved_shape saved(*a.query, p);
  std::int64_t out[ops::max_rank];
  set_out_shape(*a.query, p, out);
  const auto require_out = [&](const velo_tensor& x, const char* field) {
    ops::require_shape(x, field, a.query->ndim, out);
    ops::require_dtype(x, field, p.dtype);
    ops::require_dense_rows(x, field);
  };
  require_out(*a.dy, "dy");
  require_out(*a.attention_out, "attention_out");
  ops::require_shape(*a.softmax_max, "softmax_max", saved.rank, saved.statistics());
  ops::require_shape(*a.softmax_sum, "softmax_sum", saved.rank, saved.statistics());
  require_kept(a.kept, "kept", "the forward", saved.kept, p);
  require_given(a, saved, p);
  outputs.like(a.dquery, *a.query);
  outputs.like(a.dkey, *a.key);
  outputs.like(a.dvalue, *a.value);
  if (a.dquery != nullptr) ops::require_dense_rows(*a.dquery, "dquery");
  if (a.dkey != nullptr) ops::require_dense_rows(*a.dkey, "dkey");
  if (a.dvalue != nullptr) ops::require_dense_rows(*a.dvalue, "dvalue");
}

// ---- running ----

comm::operation operation_of(const problem& p, const char* function) {
  comm::operation what;
  what.function = function;
  what.terms.kind = comm::collective::all_to_all;
  what.terms.in_code = what.terms.out_code = p.dtype.code;
  what.terms.in_bits = what.terms.out_bits = p.dtype.bits;
  what.terms.count = p.plan != nullptr ? p.plan->sequence() : p.sequence();
  what.terms.require_same(p.signature);
  what.bytes = p.elements * (p.dtype.bits / 8);
  return what;
}

row_store store_of(const velo_tensor* x, const row_places& held, std::int64_t heads) {
  if (x == nullptr) return {};
  const std::int64_t width = x->shape[x->ndim - 1];
  return {static_cast<char*>(ops::data<char>(x)),    &held, {0, heads},
          ops::strides_of(*x, layout_of(*x), width), width, ops::type_of(x->dtype)};
}

// The tensors that both passes have. The gradient reads what the forward writes.
template <class Args>
pass_tensors common_tensors_of(const Args& a, const problem& p, const row_places& held) {
  const auto numbers = [](const velo_tensor* x) {
    return const_cast<float*>(ops::data<const float>(x));
  };
  pass_tensors t;
  t.q = store_of(a.query, held, p.heads);
  t.k = store_of(a.key, held, p.key_heads);
  t.v = store_of(a.value, held, p.key_heads);
  t.out = store_of(a.attention_out, held, p.heads);
  t.max = numbers(a.softmax_max), t.sum = numbers(a.softmax_sum);
  t.kept = const_cast<char*>(ops::data<const char>(a.kept));
  t.given = const_cast<char*>(ops::data<const char>(a.given));
  return t;
}

pass_tensors tensors_of(const forward_args& a, const problem& p, const row_places& held) {
  return common_tensors_of(a, p, held);
}

pass_tensors tensors_of(const gradient_args& a, const problem& p, const row_places& held) {
  pass_tensors t = common_tensors_of(a, p, held);
  t.dout = store_of(a.dy, held, p.heads);
  t.dq = store_of(a.dquery, held, p.heads);
  t.dk = store_of(a.dkey, held, p.key_heads);
  t.dv = store_of(a.dvalue, held, p.key_heads);
  return t;
}

template <class Args>
attention_call call_of(const Args& a, const problem& p, const rank_share& share, bool plain) {
  attention_call call{};
  call.batch = p.batch;
  call.heads_each = p.heads / p.key_heads;
  call.scale = static_cast<float>(a.scale);
  call.plain = plain;
  if (a.alibi_slopes != nullptr) {
    call.terms.slopes = ops::data<const float>(a.alibi_slopes);
    call.terms.slopes_head = 1;
    call.terms.root = a.alibi_root != 0;
  }
  call.terms.drops = a.keep_prob < 1;
  if (!call.terms.drops) return call;
  call.terms.dropout = simd::dropout_of(1 - a.keep_prob, static_cast<std::uint64_t>(a.seed),
                                        static_cast<std::uint64_t>(a.offset));
  call.terms.place = place_of(a, p, share.shape().sequence());
  return call;
}

// A running call. Peers may read its memory until the group has settled, so it outlives its turn in
// the group.
template <class Args>
class running_call {
 public:
  running_call(const Args& a, const problem& p, core::arena& scratch, core::execution& on,
               bool plain)
      : share_(p),
        memory_(scratch),
        messages_{is_gradient ? share_->plan().gradient : share_->plan().forward,
                  p.rank(),
                  p.in.size(),
                  p.batch,
                  p.widths,
                  ops::type_of(p.dtype)},
        pass_(*share_, p.widths, call_of(a, p, *share_, plain), tensors_of(a, p, share_->held()),
              memory_, on) {}

  const carried_messages& messages() const { return messages_; }
  step_memory& memory() { return memory_; }
  void carry_out(std::unique_ptr<block_carrier> by) {
    carrier_ = std::move(by);
    is_gradient ? pass_.gradient(*carrier_) : pass_.forward(*carrier_);
    carrier_.reset();
  }

 private:
  static constexpr bool is_gradient = std::is_same_v<Args, gradient_args>;

  const call_share share_;
  step_memory memory_;
  const carried_messages messages_;
  std::unique_ptr<block_carrier> carrier_;
  carried_pass pass_;
};

template <class Args>
constexpr const char* function_of() {
  return std::is_same_v<Args, gradient_args> ? "velo_context_parallel_attention_backward"
                                             : "velo_context_parallel_attention";
}

template <class Args>
void run(const Args& a, const problem& p, const attention_kernel& kernel, core::execution& on) {
  using way = attention_kernel::way;
  const bool plain = kernel.how == way::reference || ops::attention_kernels_of(on.isa).plain();
  if (p.in.group == nullptr)
    return in_turn(on, [&](core::execution& turn) {
      running_call<Args>(a, p, turn.scratch, turn, plain).carry_out(make_no_carrier());
    });
  comm::operation what = operation_of(p, function_of<Args>());
  std::optional<running_call<Args>> call;
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    if (kernel.how == way::in_place) what.terms.counts ^= 1;  // another way than messages
    call.emplace(a, p, scratch, on, plain);
    call->carry_out(p.in.size() == 1 ? make_no_carrier()
                    : kernel.how == way::in_place
                        ? make_shared_carrier(call->messages(), what, link, on)
                        : make_message_carrier(call->messages(), what, link, call->memory(), on));
  });
}

template <class Args>
const char* reject(const Args&, const problem& p, const ops::kernel_entry& kernel) {
  if (static_cast<const attention_kernel*>(kernel.kernels)->how != attention_kernel::way::in_place)
    return nullptr;
  if (p.in.size() == 1) return "the group has one rank";
  return p.in.group->shows_tensors() ? nullptr : "ranks do not see each other's tensors";
}

template <class Args>
void enter(const Args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", operation_of(p, function_of<Args>()), on, put);
}

template <class Args>
void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, operation_of(p, function_of<Args>()));
}

// The products of the cells that this rank computes.
template <class Args>
void add_cells(const Args& a, const problem& p, ops::op_cost& cost) {
  const double products = std::is_same_v<Args, gradient_args> ? 4 : 2;
  const call_share share(p);
  double all = 0, visible = 0;
  for (const attention_task& task : share->plan().forward.tasks[core::at(p.rank())]) {
    const auto heads = static_cast<double>(task.heads.size());
    visible += heads * static_cast<double>(cells_of(task, share->shape()));
    all += heads * static_cast<double>(size_of(task.queries)) *
           static_cast<double>(size_of(task.keys));
  }
  const double flops =
      products * static_cast<double>(p.batch) * static_cast<double>(p.widths.key + p.widths.value);
  cost.multiply(all * flops, visible * flops, a.query->dtype);
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def context_parallel_attention_operator =
    with_cost<sched::add_cells<sched::forward_args>>(
        define_waiting<sched::infer, sched::run<sched::forward_args>,
                       sched::reject<sched::forward_args>, sched::enter<sched::forward_args>,
                       sched::drop<sched::forward_args>>(sched::kernel_list));
extern const operator_def context_parallel_attention_backward_operator =
    with_cost<sched::add_cells<sched::gradient_args>>(
        define_waiting<sched::infer_gradient, sched::run<sched::gradient_args>,
                       sched::reject<sched::gradient_args>, sched::enter<sched::gradient_args>,
                       sched::drop<sched::gradient_args>>(sched::kernel_list));

}  // namespace velo::ops
