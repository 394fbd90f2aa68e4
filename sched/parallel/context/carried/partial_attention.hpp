// Attention of some rows over some keys, on stores: the tasks of a plan as calls of the engine.
//
// A task becomes parts: queries and keys that lie side by side in their stores and whose visible
// cells are a formula or a piece of the mask; where positions count they are neighbors in the
// sequence, too. The forward of a part begins with the float32 outputs of the parts before; the
// gradient of a part writes or adds float32 gradients. Invariant: bits depend on the order of
// parts, never on threads or on where a store lies. Cost: that of attention over the same cells,
// and one pass over the outputs for each part behind a row's first.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/parallel/context/carried/row_store.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

// What all parts of a call share.
struct attention_call {
  std::int64_t batch, heads_each;  // heads_each: query heads of a key head
  float scale;
  bool plain;                  // the reference instead of kernels
  ops::attention_terms terms;  // of the whole sequence and all heads, without the mask

  bool has_positions() const { return terms.slopes != nullptr || terms.drops; }
};

// Statistics [batch, heads, rows] of the queries of a store, and whether a row has any yet.
struct softmax_sums {
  float *max, *sum;
  std::int64_t rows_of_it;
  span heads;

  std::int64_t place(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return (batch * heads.size() + head - heads.begin) * rows_of_it + row;
  }
};

struct attention_part {
  row_run queries, keys;
  ops::attention_window window;
  const std::uint8_t* mask;  // of the first query and key, or null
  std::int64_t mask_row;
};
std::vector<attention_part> parts_of(const attention_task& task, const attention_call& call,
                                     const row_places& queries, const row_places& keys,
                                     const sequence_shape& of);

struct forward_stores {
  row_store q, k, v;
  row_store before;  // float32 outputs of earlier parts; empty: there are none
  row_store out;     // float32, which may be `before`, or for a row's last part the result
  softmax_sums sums;
};
void attend(const attention_part& part, span heads, const attention_call& call,
            const forward_stores& in, core::execution& turn);

struct gradient_stores {
  row_store q, k, v, dout, out;
  row_store dq, dk, dv;  // float32
  softmax_sums sums;
  bool adds_queries, adds_keys;  // to dq; to dk and dv
  const float* dots = nullptr;   // of dout and out, in the places of sums; null: out is read
};
void add_gradients(const attention_part& part, span heads, const attention_call& call,
                   const gradient_stores& in, core::execution& turn);

}  // namespace velo::sched
