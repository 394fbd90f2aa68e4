// A model for tests of executors that computes nothing but labels.
//
// A forward checks that its input is the previous stage's output for that micro-batch, in values,
// sizes and number of tensors; a backward checks gradients in the same way. Sizes differ from one
// micro-batch to the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

// One rank, whose outputs lie in buffers until they are released.
struct rank_model {
  std::int32_t stages = 0;
  std::int32_t chain = 0;  // stages in a row
  std::int64_t scale = 1;  // of sizes
  std::atomic<int>* wrong = nullptr;
  int calls[16] = {};
  int held = 0, released = 0;
  std::int64_t shape[2] = {};
  std::deque<std::vector<float>> values;  // must stay until they are released
  std::function<velo_status(const velo_executor_call&)> before = nullptr;

  // Tensors of a micro-batch: none, one or two, longer ones later on; what is in them.
  static std::int64_t count_of(std::int32_t unit) { return unit % 3; }
  std::int64_t length_of(std::int32_t unit) const { return scale * (1 + unit / 4); }
  static float value_of(bool forward, std::int32_t stage, std::int32_t unit) {
    return static_cast<float>((forward ? 1 : -1) * (100 * stage + unit + 1));
  }

  void make(bool forward, std::int32_t stage, std::int32_t unit, velo_tensor* outputs,
            std::int64_t& count) {
    count = count_of(unit);
    shape[0] = length_of(unit);
    shape[1] = 2;
    values.emplace_back(static_cast<std::size_t>(2 * length_of(unit)),
                        value_of(forward, stage, unit));
    for (std::int64_t i = 0; i < count; ++i) outputs[i] = view_of(values.back().data(), f32, shape);
    const bool leaves = forward ? (stage + 1) % chain != 0 : stage % chain != 0;
    if (leaves && count > 0) ++held;
  }
  void expect(bool forward, std::int32_t stage, std::int32_t unit, const velo_tensors& given) {
    const bool comes = forward ? stage % chain != 0 : (stage + 1) % chain != 0;
    const std::int32_t maker = forward ? stage - 1 : stage + 1;
    bool right = given.count == (comes ? count_of(unit) : 0);
    for (std::int64_t i = 0; right && i < given.count; ++i) {
      const velo_tensor& one = given.data[i];
      right = one.ndim == 2 && one.shape[0] == length_of(unit) && one.shape[1] == 2;
      for (std::int64_t k = 0; right && k < 2 * one.shape[0]; ++k)
        right = static_cast<const float*>(one.data)[k] == value_of(forward, maker, unit);
    }
    if (!right) ++*wrong;
  }
};

inline velo_status act(void* user, velo_executor_call* call) {
  auto& me = *static_cast<rank_model*>(user);
  const velo_action& a = call->action;
  if (me.before)
    if (const velo_status status = me.before(*call); status != VELO_OK) return status;
  ++me.calls[a.kind];
  switch (a.kind) {
    case VELO_ACTION_F:
      me.expect(true, a.stage, a.microbatch, call->inputs);
      me.make(true, a.stage, a.microbatch, call->outputs, call->output_count);
      break;
    case VELO_ACTION_I:
    case VELO_ACTION_B:
      me.expect(false, a.stage, a.microbatch, call->inputs);
      me.make(false, a.stage, a.microbatch, call->outputs, call->output_count);
      break;
    default:
      break;
  }
  return VELO_OK;
}

inline void count_released(void* user, const velo_action*) {
  ++static_cast<rank_model*>(user)->released;
}

// The part of a group's rank, on the calling thread.
class rank_part {
 public:
  // scale: of sizes.
  rank_part(velo_schedule of, velo_context context, velo_group group, std::int64_t scale) {
    velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
    velo_schedule_get_info(of, &info);
    velo_group_info me = VELO_GROUP_INFO_INIT;
    velo_group_get_info(group, &me);
    model.stages = info.stages;
    model.chain = info.kind == VELO_SCHEDULE_DUALPIPE ? info.stages / 2 : info.stages;
    model.scale = scale;
    model.wrong = &wrong;
    velo_link link = VELO_LINK_INIT;
    velo_group_get_link(group, &link);
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.rank = me.rank;
    desc.link = &link;
    desc.user = &model;
    desc.forward = desc.input = desc.weight = desc.backward = desc.other = &act;
    desc.released = &count_released;
    velo_executor_create(context, of, &desc, &executor);  // NULL where it fails: run says so
  }
  ~rank_part() { velo_executor_destroy(executor); }
  rank_part(const rank_part&) = delete;
  rank_part& operator=(const rank_part&) = delete;

  bool went_well() const { return wrong == 0 && model.held == model.released; }

  rank_model model;
  std::atomic<int> wrong{0};
  velo_executor executor = nullptr;
};

}  // namespace velo::testing
