// The plan that both passes share: sizes of blocks, sequences of the batch, the layout of scratch.
//
// Everything here is a function of the problem and the instruction set, except how many slices the
// work is cut into. The layout is computed twice: from a null base for its size, then in the
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/round_up.hpp"
#include "core/simd/types.hpp"
#include "ops/attention/engine/attention.hpp"
#include "ops/attention/engine/attention_kernels.hpp"
#include "ops/gemm/panel_product.hpp"

namespace velo::ops {

// One sequence of the batch: its first elements, and the keys that its rows see.
struct attention_sequence {
  std::int64_t q_first, kv_first;  // elements to add for the batch, in units of `token` with lists
  std::int64_t sq, skv;
  visible_keys keys;

  // The keys that `rows` rows from `row` on see lie from first_key to last_key.
  std::int64_t first_key(std::int64_t row) const { return keys.first(row); }
  std::int64_t last_key(std::int64_t row, std::int64_t rows) const {
    return keys.last(row + rows - 1);
  }
};

attention_sequence sequence_of(const attention_problem& problem, std::int64_t batch);

// First element of a head of a sequence in a tensor with these strides.
inline std::int64_t offset_of(const attention_problem& problem, const attention_strides& strides,
                              std::int64_t batch, std::int64_t first, std::int64_t head) {
  const bool lists = problem.q_ends != nullptr;
  return (lists ? first * strides.token : batch * strides.batch) + head * strides.head;
}

// body(T()) with T the elements of the problem's tensors.
template <class Body>
void with_elements(const attention_problem& p, Body&& body) {
  if (p.type == element_type::f32) return body(float());
  if (p.type == element_type::f16) return body(simd::f16());
  body(simd::bf16());
}

// The statistics of a row of a head, and of those after it: their first element and the step.
struct statistics_place {
  std::int64_t first, step;
};
inline statistics_place statistics_of(const attention_problem& problem, const attention_sequence& s,
                                      std::int64_t batch, std::int64_t head, std::int64_t row) {
  if (problem.copies > 1 && problem.q_ends != nullptr) {
    const std::int64_t before = s.q_first * problem.heads + head * s.sq;
    return {(before + row) * problem.copies, problem.copies};
  }
  const std::int64_t step = problem.stats.token;
  return {offset_of(problem, problem.stats, batch, s.q_first, head) + row * step, step};
}

// The kernels of an ISA, or of the highest below it that has some.
const attention_kernels& attention_kernels_of(core::isa isa);

struct attention_shape {
  attention_shape(const attention_problem& problem, core::isa isa);

  product_form form;
  const attention_steps& steps;
  const attention_steps& results;      // the steps that write results
  std::int64_t element;                // bytes of one of the inputs'
  std::int64_t result;                 // bytes of one of the results'
  const attention_steps& key_results;  // the same of dK and dV
  std::int64_t key_result;
  std::int64_t d, dv;  // padded for products
  std::int64_t group;  // query heads of a key head
  std::int64_t pairs;  // (sequence, key head)

  // Words that so many elements take.
  std::int64_t words(std::int64_t elements) const { return elements / form.per_word(); }
  // A right side of `columns` and so many elements of the depth.
  right_side side(std::uint32_t* at, std::int64_t columns, std::int64_t depth) const {
    return {at, form.panel * words(depth), static_cast<int>(columns)};
  }
};

class attention_arena {
 public:
  explicit attention_arena(void* base) : base_(static_cast<char*>(base)) {}

  template <class T>
  T* take(std::int64_t count) {
    T* start = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += static_cast<std::size_t>(round_up(count * static_cast<std::int64_t>(sizeof(T)), 64));
    return start;
  }
  std::size_t used() const { return used_; }

 private:
  char* base_;
  std::size_t used_ = 0;
};

// Cuts work of known cost into slices of nearly equal cost, each a contiguous run of units: a unit
// belongs to the slice in which the middle of its cost lies. Every slice counts the same units in
// the same order; costs are integers, so that all slices agree on the owner of a unit.
class attention_slice {
 public:
  attention_slice(std::int64_t total, std::int64_t index, std::int64_t count)
      : total_(total), index_(index), count_(count) {}

  // Whether the next unit is this slice's.
  bool next(std::int64_t cost) {
    const std::int64_t owner = (2 * before_ + cost) * count_ / (2 * total_);
    before_ += cost;
    return owner == index_;
  }
  // Goes past the next units, of this joint cost, if none of them can be this slice's.
  bool skip(std::int64_t cost) {
    const bool past = before_ * count_ > (index_ + 1) * total_;
    const bool early = (before_ + cost) * count_ < index_ * total_;
    if (past || early) before_ += cost;
    return past || early;
  }

 private:
  std::int64_t total_, before_ = 0, index_, count_;
};

}  // namespace velo::ops
