// The movements of rows, in place and by all-to-all, and their place in the group's order of calls.
#include "sched/moe/row_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/index.hpp"
#include "ops/experts/token_slots.hpp"
#include "ops/operator/definition.hpp"
#include "sched/moe/submit.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {
namespace {

using core::at;

constexpr velo_dtype float32{VELO_DTYPE_FLOAT, 32, 1};

// The reference at optimization level 0, as for operators.
const ops::moe_token_kernels& kernels_of(const core::execution& on) {
  const ops::kernel_list& all = ops::moe_token_kernel_list;
  int i = 0;
  while (i + 1 < all.count && (all.entries[i].isa > on.isa || on.optimization == 0)) ++i;
  return *static_cast<const ops::moe_token_kernels*>(all.entries[i].kernels);
}

// One call on one rank, over elements of one type.
template <class T>
class row_mover {
 public:
  row_mover(const row_exchange& what, core::execution& on)
      : what_(what), routes_(*what.routes), layout_(routes_.layout()), on_(on), n_(what.width) {}

  void in_place(comm::operation& op, comm::transport& link, core::arena& scratch);
  void by_blocks(const comm::operation& op, comm::transport& link, core::arena& scratch);

 private:
  // The call of a rank, for the ranks that read its tensors.
  struct shown {
    const row_exchange* call;
    const float* products;  // by row of its experts
  };
  // Rows of one matrix, by entry, or of the ranks' matrices.
  struct row_matrices {
    const T* all;
    const T* const* of_ranks;
  };
  struct sent_rows {
    velo_dtype dtype;
    std::int64_t width;
    const void* in;
    void* out;
  };

  std::size_t row_bytes() const { return at(n_) * sizeof(T); }
  const T* from() const { return static_cast<const T*>(what_.from); }
  T* to() const { return static_cast<T*>(what_.to); }
  void copy_rows(const T* x, T* y, std::int64_t count) const {  // pointers of no bytes may be null
    if (n_ > 0) std::memcpy(y, x, at(count) * row_bytes());
  }
  template <class Body>
  void each_run(core::execution& turn, const Body& body) const;
  template <class Body>
  void each_token(core::execution& turn, const Body& body) const;
  void put_zeros(const expert_run& run, std::int64_t first, std::int64_t last) const {
    if (n_ > 0) std::memset(to() + (run.row + first) * n_, 0, at(last - first) * row_bytes());
  }
  void put_row(const ops::moe_token_kernels& kernels, std::int64_t row, const T* x, float weight,
               float* products) const;
  void take_rows(const shown* ranks, float* products, core::execution& turn) const;
  void sum_rows(const row_matrices& in, core::execution& turn) const;
  void collect_products(const shown* ranks, core::execution& turn) const;
  void send_to_experts(const comm::operation& op, comm::transport& link, core::arena& scratch);
  void return_products(const comm::operation& op, comm::transport& link, core::arena& scratch,
                       const float* products);
  void send_to_tokens(const comm::operation& op, comm::transport& link, core::arena& scratch);
  void exchange(const comm::operation& of, comm::transport& link, bool back, const sent_rows& rows);
  template <class E>
  static E* take(core::arena& scratch, std::int64_t count) {
    return scratch.take<E>(at(std::max<std::int64_t>(count, 1)));
  }

  const row_exchange& what_;
  const row_routes& routes_;
  const expert_layout& layout_;
  core::execution& on_;
  const std::int64_t n_;
};

// body(run, first, last): rows of a run, in tasks of some 64 KB.
template <class T>
template <class Body>
void row_mover<T>::each_run(core::execution& turn, const Body& body) const {
  const ops::row_slices slices =
      ops::slice_rows(routes_.rows(), static_cast<std::int64_t>(row_bytes()));
  const auto& runs = routes_.runs();
  turn.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    std::int64_t row = slices.begin(task);
    const std::int64_t end = row + slices.count(task);
    auto run = std::upper_bound(runs.begin(), runs.end(), row,
                                [](std::int64_t r, const expert_run& of) { return r < of.row; });
    for (--run; row < end; ++run) {
      const std::int64_t last = std::min(end, run->row + run->count);
      body(*run, row - run->row, last - run->row);
      row = last;
    }
  });
}

template <class T>
template <class Body>
void row_mover<T>::each_token(core::execution& turn, const Body& body) const {
  const ops::row_slices slices =
      ops::slice_tokens(routes_.tokens(), static_cast<std::int64_t>(routes_.order().size()),
                        static_cast<std::int64_t>(row_bytes()));
  turn.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) body(t, thread);
  });
}

// A row of an expert from that of its token. products: by row, where gradients of weights are
// wanted.
template <class T>
void row_mover<T>::put_row(const ops::moe_token_kernels& kernels, std::int64_t row, const T* x,
                           float weight, float* products) const {
  T* y = to() + row * n_;
  const std::int32_t first = 0;
  const ops::token_rows one{&first, &weight, 1, &first, 0, n_};
  if (products != nullptr)
    kernels.dots(ops::token_dots<T>{one, static_cast<const T*>(what_.products_with) + row * n_, x,
                                    products + row});
  if (what_.weighted)
    kernels.scale(ops::token_scale<T>{one, x, y, false});
  else
    copy_rows(x, y, 1);
}

// ---- ranks that see each other's tensors ----

template <class T>
void row_mover<T>::take_rows(const shown* ranks, float* products, core::execution& turn) const {
  const ops::moe_token_kernels& kernels = kernels_of(turn);
  each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
    if (run.is_padding()) return put_zeros(run, first, last);
    const row_exchange& theirs = *ranks[run.from].call;
    const std::int32_t* numbers = theirs.routes->order().data() + run.first;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t token = numbers[i] / layout_.top_k;
      put_row(kernels, run.row + i, static_cast<const T*>(theirs.from) + token * n_,
              !theirs.weighted ? 1 : theirs.weights[numbers[i]], products);
    }
  });
}

// The weights of a token's choices side by side; nullptr: each is 1.
const float* weights_of(const float* weights, const row_routes::token_choices& all,
                        std::int64_t top_k, float* room) {
  if (weights == nullptr || all.count == 0) return weights;
  if (all.count == top_k) return weights + all.numbers[0];
  for (std::int64_t j = 0; j < all.count; ++j) room[j] = weights[all.numbers[j]];
  return room;
}

template <class T>
void row_mover<T>::sum_rows(const row_matrices& in, core::execution& turn) const {
  const ops::moe_token_kernels& kernels = kernels_of(turn);
  auto* room = take<float>(turn.scratch, turn.threads.threads() * layout_.top_k);
  const auto entries = static_cast<std::int64_t>(routes_.order().size());
  each_token(turn, [&](std::int64_t t, int thread) {
    const row_routes::token_choices all = routes_.of_token(t);
    const std::int32_t* rows = in.of_ranks == nullptr ? all.entries : all.rows;
    const float* weights =
        weights_of(what_.weights, all, layout_.top_k, room + thread * layout_.top_k);
    const std::int64_t left = entries - all.before - all.count;
    const ops::token_rows lists{rows, weights, all.count, rows + all.count, left, n_};
    kernels.sum(ops::token_sum<T>{lists, in.all, to() + t * n_, false, in.of_ranks, all.ranks});
  });
}

template <class T>
void row_mover<T>::collect_products(const shown* ranks, core::execution& turn) const {
  std::fill_n(what_.dweights, routes_.tokens() * layout_.top_k, 0.0f);
  each_token(turn, [&](std::int64_t t, int) {
    const row_routes::token_choices all = routes_.of_token(t);
    for (std::int64_t j = 0; j < all.count; ++j)
      what_.dweights[all.numbers[j]] = ranks[all.ranks[j]].products[all.rows[j]];
  });
}

template <class T>
void row_mover<T>::in_place(comm::operation& op, comm::transport& link, core::arena& scratch) {
  float* products = !what_.differentiates() ? nullptr : take<float>(scratch, routes_.rows());
  op.in = new (take<shown>(scratch, 1)) shown{&what_, products};  // outlives a failure here
  op.set_count(1);
  const auto relay = link.begin_relay(op, on_);
  auto* ranks = take<shown>(scratch, layout_.ranks);
  auto** matrices = static_cast<const T**>(scratch.take(at(layout_.ranks) * sizeof(void*)));
  // Everything that a rank shows is complete when it posts a piece.
  const auto with_all = [&](auto&& body) {
    relay->wait_slot();
    relay->post();
    relay->wait_piece();
    in_turn(on_, [&](core::execution& turn) {
      const comm::relay::tensor_access access(*relay);
      for (int r = 0; r < layout_.ranks; ++r) {
        ranks[r] = *static_cast<const shown*>(relay->peer_tensor(r));
        matrices[r] = static_cast<const T*>(ranks[r].call->from);
      }
      body(turn);
    });
    relay->release();
  };
  if (what_.direction == row_direction::to_tokens) {
    with_all([&](core::execution& turn) { sum_rows({nullptr, matrices}, turn); });
  } else {
    with_all([&](core::execution& turn) { take_rows(ranks, products, turn); });
    if (products != nullptr)
      with_all([&](core::execution& turn) { collect_products(ranks, turn); });
  }
  relay->wait_readers();
  relay->finish();
}

// ---- ranks that send ----

// An all-to-all of `width` elements a row: from the order of choices to received rows, or back.
template <class T>
void row_mover<T>::exchange(const comm::operation& of, comm::transport& link, bool back,
                            const sent_rows& rows) {
  comm::operation op;
  op.function = of.function;
  op.terms = of.terms;
  op.terms.in_code = op.terms.out_code = rows.dtype.code;
  op.terms.in_bits = op.terms.out_bits = rows.dtype.bits;
  op.in = rows.in, op.out = rows.out;
  const comm::blocks& in = back ? routes_.received() : routes_.given();
  const comm::blocks& out = back ? routes_.given() : routes_.received();
  for (int r = 0; r < layout_.ranks; ++r) {
    op.in_blocks.push_back({in[at(r)].begin * rows.width, in[at(r)].count * rows.width});
    op.out_blocks.push_back({out[at(r)].begin * rows.width, out[at(r)].count * rows.width});
    op.out_count += out[at(r)].count * rows.width;
  }
  op.set_count(op.in_block(layout_.rank).count);
  link.run(op, on_);
}

template <class T>
void row_mover<T>::send_to_experts(const comm::operation& op, comm::transport& link,
                                   core::arena& scratch) {
  const auto entries = static_cast<std::int64_t>(routes_.order().size()), rows = routes_.rows();
  T* packed = take<T>(scratch, entries * n_);
  T* got = take<T>(scratch, rows * n_);
  float* packed_weights = what_.weighted ? take<float>(scratch, entries) : nullptr;
  float* weights = what_.weighted ? take<float>(scratch, rows) : nullptr;
  float* products = !what_.differentiates() ? nullptr : take<float>(scratch, rows);
  in_turn(on_, [&](core::execution& turn) {
    each_token(turn, [&](std::int64_t t, int) {
      const row_routes::token_choices all = routes_.of_token(t);
      for (std::int64_t j = 0; j < all.count; ++j) {
        copy_rows(from() + t * n_, packed + all.entries[j] * n_, 1);
        if (what_.weighted) packed_weights[all.entries[j]] = what_.weights[all.numbers[j]];
      }
    });
  });
  exchange(op, link, false, {what_.dtype, n_, packed, got});
  if (what_.weighted) exchange(op, link, false, {float32, 1, packed_weights, weights});
  in_turn(on_, [&](core::execution& turn) {
    const ops::moe_token_kernels& kernels = kernels_of(turn);
    each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
      if (run.is_padding()) return put_zeros(run, first, last);
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at_rank = run.received + i;
        put_row(kernels, run.row + i, got + at_rank * n_, weights == nullptr ? 1 : weights[at_rank],
                products);
      }
    });
  });
  if (products != nullptr) return_products(op, link, scratch, products);
}

// Products lie by row; they return by the order of choices.
template <class T>
void row_mover<T>::return_products(const comm::operation& op, comm::transport& link,
                                   core::arena& scratch, const float* products) {
  const auto entries = static_cast<std::int64_t>(routes_.order().size());
  float* packed = take<float>(scratch, routes_.rows());
  float* got = take<float>(scratch, entries);
  for (const expert_run& run : routes_.runs())
    if (!run.is_padding()) std::copy_n(products + run.row, run.count, packed + run.received);
  exchange(op, link, true, {float32, 1, packed, got});
  std::fill_n(what_.dweights, routes_.tokens() * layout_.top_k, 0.0f);
  for (std::int64_t i = 0; i < entries; ++i) what_.dweights[routes_.order()[at(i)]] = got[i];
}

template <class T>
void row_mover<T>::send_to_tokens(const comm::operation& op, comm::transport& link,
                                  core::arena& scratch) {
  T* packed = take<T>(scratch, routes_.rows() * n_);
  T* got = take<T>(scratch, static_cast<std::int64_t>(routes_.order().size()) * n_);
  in_turn(on_, [&](core::execution& turn) {
    each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
      if (run.is_padding()) return;
      copy_rows(from() + (run.row + first) * n_, packed + (run.received + first) * n_,
                last - first);
    });
  });
  exchange(op, link, true, {what_.dtype, n_, packed, got});
  in_turn(on_, [&](core::execution& turn) { sum_rows({got, nullptr}, turn); });
}

template <class T>
void row_mover<T>::by_blocks(const comm::operation& op, comm::transport& link,
                             core::arena& scratch) {
  if (what_.direction == row_direction::to_experts)
    send_to_experts(op, link, scratch);
  else
    send_to_tokens(op, link, scratch);
}

}  // namespace

// ---- calls in the order of the group ----

comm::operation row_exchange::request() const {
  comm::operation all;
  all.function = function;
  all.terms.kind = comm::collective::all_to_all;
  all.terms.in_code = all.terms.out_code = dtype.code;
  all.terms.in_bits = all.terms.out_bits = dtype.bits;
  all.terms.count = width;
  const std::uint64_t form =
      (direction == row_direction::to_experts ? 1u : 2u) + (weighted ? 4u : 0u);
  all.terms.require_same(comm::mixed(routes->hash() + form));
  all.bytes = routes->rows() * width * (dtype.bits / 8);
  return all;
}

void row_exchange::carry_out(const comm::group::ticket& place, core::execution& on) const {
  comm::operation op = request();
  among->serve(place, op, [&](comm::transport& link, core::arena& scratch) {
    ops::with_element_type(dtype, [&](auto element) {
      row_mover<decltype(element)> mover(*this, on);
      if (among->shows_tensors() && link.size() > 1)
        mover.in_place(op, link, scratch);
      else
        mover.by_blocks(op, link, scratch);
    });
  });
}

void submit(core::stream& on, const row_exchange& what) {
  submit_in_order(on, what);
}

}  // namespace velo::sched
