// The object behind velo_sequence_plan: a plan, and the sequence and heads that it is made for.
//
// The constructor checks the description, copies documents and mask, makes the plan and an index of
// its messages by rank. Invariant: nothing changes afterwards, so calls may overlap. Cost: the
// plan, and sixteen bytes a message; a query visits the messages of its rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "sched/parallel/context/plan.hpp"
#include "velo/sequence_plan.h"

namespace velo::sched {

class planned_sequence {
 public:
  // Throws ARGUMENT or NULL with the field's name.
  explicit planned_sequence(const velo_sequence_desc& desc);
  planned_sequence(const planned_sequence&) = delete;

  std::int64_t ranks() const { return shape_.ranks; }
  std::int64_t sequence() const { return shape_.sequence(); }
  std::int64_t head_dim() const { return head_dim_; }
  const sequence_shape& shape() const { return shape_; }
  const sequence_plan& plan() const { return plan_; }
  // A hash of the description: plans with the same one are the same.
  std::uint64_t signature() const { return signature_; }
  const attention_pass& pass(velo_sequence_pass which) const {
    return which == VELO_SEQUENCE_GRADIENT ? plan_.gradient : plan_.forward;
  }
  const rows& held(std::int64_t rank) const;
  // The layers of the model that keep keys for the gradient: each (interval + 1)-th.
  struct layer_cache {
    velo_sequence_cache kept;
    std::int64_t interval, layers;

    bool keeps() const { return kept != VELO_SEQUENCE_CACHE_NONE; }
    std::int64_t count() const { return keeps() ? (layers - 1) / (interval + 1) + 1 : 0; }
  };
  const layer_cache& cache() const { return cache_; }
  velo_sequence_keys keys() const { return keys_; }

  std::vector<const attention_task*> tasks(velo_sequence_pass which, std::int64_t rank,
                                           std::int64_t step) const;
  std::vector<const block_message*> sent(velo_sequence_pass which, std::int64_t rank,
                                         std::int64_t step) const;
  std::vector<const block_message*> received(velo_sequence_pass which, std::int64_t rank,
                                             std::int64_t step) const;
  std::int64_t bytes_of(const block_message& m) const;
  void price(velo_sequence_pass which, std::int64_t rank, std::int64_t step,
             velo_sequence_step& to) const;

  void prove() const { sched::prove(plan_, shape_); }
  std::string json() const;
  std::string picture() const;

 private:
  struct ways {  // indices of messages by rank
    std::vector<std::vector<std::size_t>> sent, received;
  };
  ways index(const attention_pass& of) const;

  std::int64_t head_dim_, element_bytes_;
  layer_cache cache_;
  velo_sequence_keys keys_;
  std::vector<std::uint8_t> mask_;
  sequence_shape shape_;
  std::uint64_t signature_;
  sequence_plan plan_;
  ways forward_, gradient_;
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::planned_sequence> {
  using handle = velo_sequence_plan;
  static constexpr handle_kind& kind = kinds::sequence_plan;
};
