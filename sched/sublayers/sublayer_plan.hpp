// The object behind velo_sublayers: steps in their order, and their times.
//
// The constructor checks the description, makes the order or takes the caller's, proves that each
// step is there once and behind all that it needs, and prices it: a step begins when the one before
// it on its stream has ended, and all that it needs. Invariant: nothing changes afterwards, so
// calls may overlap. Cost: a few words a step; what a step needs is worked out again each time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "sched/sublayers/sublayer_layout.hpp"

namespace velo::sched {

class sublayer_plan {
 public:
  // Throws ARGUMENT or NULL with the field's name.
  explicit sublayer_plan(const velo_sublayers_desc& desc);
  sublayer_plan(const sublayer_plan&) = delete;

  const std::vector<velo_sublayer_step>& steps() const { return steps_; }
  bool has_messages() const { return info_.messages > 0; }
  // The indices of the steps that a step needs, in rising order.
  std::vector<std::int64_t> needs_of(std::int64_t step) const;

  const velo_sublayers_info& info() const { return info_; }
  // Texts of the plan, with the times of a run where `spans` are given.
  std::string json(const velo_sublayer_span* spans) const;
  std::string picture(const velo_sublayer_span* spans) const;

  static constexpr std::int64_t most_drawn = 65536;  // steps

 private:
  struct time_span {
    double begin, end;
  };
  void set_slices(const velo_sublayers_desc& desc);
  void read_order(const velo_sublayers_desc& desc);
  void require_step(const velo_sublayer_step& step, std::int64_t place) const;
  void clear_index();
  void index_steps();
  void price();
  double time_of(const velo_sublayer_step& step) const;
  std::size_t key_of(const velo_sublayer_step& step) const;
  std::int64_t index_of(const velo_sublayer_step& step) const;
  std::vector<time_span> times_of(const velo_sublayer_span* spans) const;
  static velo_sublayers_info sum_up(const std::vector<velo_sublayer_step>& steps,
                                    const std::vector<time_span>& times);
  std::vector<time_span> priced() const;

  sublayer_layout layout_;
  std::vector<double> times_;  // by kind
  double latency_;
  std::vector<velo_sublayer_step> steps_;
  std::vector<std::int64_t> index_;  // by key; -1: no step
  velo_sublayers_info info_{};
};

// The name of a kind in texts, such as "attention_f".
const char* sublayer_name(velo_sublayer_kind kind);

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::sublayer_plan> {
  using handle = velo_sublayers;
  static constexpr handle_kind& kind = kinds::sublayers;
};
