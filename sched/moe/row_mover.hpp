// One movement of rows on one rank, over elements of one type: what the three paths share.
//
// Rows of experts are written by runs, and sums of tokens by tokens, in tasks of some 64 KB. The
// ways are in place (row_exchange.cpp), through shared slots (row_relay.cpp) and by collectives
// (row_blocks.cpp). Invariant: each row and each sum is computed by the same kernel in every way.
// Cost: that of its ways.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/index.hpp"
#include "ops/experts/token_slots.hpp"
#include "ops/operator/definition.hpp"
#include "sched/moe/row_exchange.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {

// A call that is being served.
struct served_call {
  comm::operation& op;
  comm::transport& link;
  core::arena& scratch;  // of the group
  core::execution& on;
};

// The ways. Each ends when the outputs are complete and the inputs may change.
void move_in_place(const row_exchange& what, const served_call& call);
void move_by_relay(const row_exchange& what, const served_call& call);
void move_by_blocks(const row_exchange& what, const served_call& call);
// Whether the slots of a group have room for pieces of such rows.
bool fits_relay(const row_exchange& what);
// Products of a gradient lie by row; they return to the ranks of their tokens.
void return_products(const row_exchange& what, const served_call& call, const float* products);

// The reference at optimization level 0, as for operators.
const ops::moe_token_kernels& token_kernels_of(const core::execution& on);

// The weights of a token's choices side by side; nullptr: each is 1.
inline const float* weights_of(const float* weights, const row_routes::token_choices& all,
                               std::int64_t top_k, float* room) {
  if (weights == nullptr || all.count == 0) return weights;
  if (all.count == top_k) return weights + all.numbers[0];
  for (std::int64_t j = 0; j < all.count; ++j) room[j] = weights[all.numbers[j]];
  return room;
}

template <class E>
E* take_some(core::arena& scratch, std::int64_t count) {
  return scratch.take<E>(core::at(std::max<std::int64_t>(count, 1)));
}

template <class T>
class row_mover {
 public:
  row_mover(const row_exchange& what, const served_call& call)
      : what_(what),
        routes_(*what.routes),
        layout_(routes_.layout()),
        link_(call.link),
        scratch_(call.scratch),
        on_(call.on),
        n_(what.width) {}

 protected:
  std::size_t row_bytes() const { return core::at(n_) * sizeof(T); }
  const T* from() const { return static_cast<const T*>(what_.from); }
  T* to() const { return static_cast<T*>(what_.to); }
  template <class E>
  E* take(std::int64_t count) const {
    return take_some<E>(scratch_, count);
  }
  // Room for a matrix of each rank.
  const T** take_matrices(core::arena& scratch) const {
    return static_cast<const T**>(scratch.take(core::at(layout_.ranks) * sizeof(void*)));
  }
  // Room for the products that are gradients of weights, by row; nullptr where none are wanted.
  float* take_products() const {
    return what_.differentiates() ? take<float>(routes_.rows()) : nullptr;
  }
  void copy_rows(const T* x, T* y, std::int64_t count) const {  // pointers of no bytes may be null
    if (n_ > 0) std::memcpy(y, x, core::at(count) * row_bytes());
  }
  void put_zeros(const expert_run& run, std::int64_t first, std::int64_t last) const {
    if (n_ > 0) std::memset(to() + (run.row + first) * n_, 0, core::at(last - first) * row_bytes());
  }
  void put_row(const ops::moe_token_kernels& kernels, std::int64_t row, const T* x, float weight,
               float* products) const;
  template <class Body>
  void each_run(core::execution& turn, const Body& body) const;
  template <class Body>
  void each_token(core::execution& turn, std::int64_t first, std::int64_t last,
                  const Body& body) const;

  // The rows of choices: of one matrix, or of a matrix of each rank, by the lists of row_routes.
  struct row_source {
    const std::int32_t* rows;  // those of the choices of `first` and later tokens
    std::int64_t first, last;  // tokens
    const T* all;
    const T* const* of_ranks;
  };
  void sum_rows(core::execution& turn, const row_source& in) const;

  const row_exchange& what_;
  const row_routes& routes_;
  const expert_layout& layout_;
  comm::transport& link_;
  core::arena& scratch_;
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

// body(token, thread): tokens from `first` to before `last`.
template <class T>
template <class Body>
void row_mover<T>::each_token(core::execution& turn, std::int64_t first, std::int64_t last,
                              const Body& body) const {
  const ops::row_slices slices =
      ops::slice_tokens(last - first, routes_.choices_before(last) - routes_.choices_before(first),
                        static_cast<std::int64_t>(row_bytes()));
  turn.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    const std::int64_t begin = first + slices.begin(task);
    for (std::int64_t t = begin; t < begin + slices.count(task); ++t) body(t, thread);
  });
}

// Sums of tokens over their choices.
template <class T>
void row_mover<T>::sum_rows(core::execution& turn, const row_source& in) const {
  const ops::moe_token_kernels& kernels = token_kernels_of(turn);
  auto* room = take_some<float>(turn.scratch, turn.threads.threads() * layout_.top_k);
  const std::int64_t begin = routes_.choices_before(in.first),
                     end = routes_.choices_before(in.last);
  each_token(turn, in.first, in.last, [&](std::int64_t t, int thread) {
    const row_routes::token_choices all = routes_.of_token(t);
    const std::int32_t* rows = in.rows + (all.before - begin);
    const float* weights =
        weights_of(what_.weights, all, layout_.top_k, room + thread * layout_.top_k);
    const std::int64_t left = end - all.before - all.count;
    const ops::token_rows lists{rows, weights, all.count, rows + all.count, left, n_};
    kernels.sum(ops::token_sum<T>{lists, in.all, to() + t * n_, false, in.of_ranks, all.ranks});
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

}  // namespace velo::sched
