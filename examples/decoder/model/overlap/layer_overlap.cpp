// Plans by the layers of both stages, and the functions that start their steps.
#include "examples/decoder/model/overlap/layer_overlap.hpp"

#include "examples/decoder/model/model.hpp"

namespace decoder {

// The passes of a run, and what ended it.
struct layer_overlap::under_way {
  forward_pass forward;
  backward_pass backward;
  std::exception_ptr failure = nullptr;

  static velo_status start(void* user, velo_stream, const velo_sublayer_step* step) {
    auto& me = *static_cast<under_way*>(user);
    try {
      if (step->kind <= VELO_SUBLAYER_SHARED_F)
        me.forward.stage->start(*me.forward.parts, *step);
      else
        me.backward.stage->start(*me.backward.parts, *step);
      return VELO_OK;
    } catch (...) {
      me.failure = std::current_exception();  // it says more than the run's error
      return VELO_ERR_FOREIGN;
    }
  }
};

const velo::sublayers& layer_overlap::plan_of(const layers& forward, const layers& backward,
                                              bool has_shared) {
  const auto key = std::make_pair(forward, backward);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  velo_sublayers_desc desc = VELO_SUBLAYERS_DESC_INIT;
  desc.forward_layers = static_cast<std::int32_t>(forward.size());
  desc.backward_layers = static_cast<std::int32_t>(backward.size());
  if (has_shared) desc.flags = VELO_SUBLAYERS_SHARED;
  desc.forward_dense = forward.data();
  desc.backward_dense = backward.data();
  return plans_.emplace(key, velo::sublayers::create(desc)).first->second;
}

void layer_overlap::run(const velo::stream_ref& compute, const forward_pass& forward,
                        const backward_pass& backward) {
  const model& any = forward.stage != nullptr ? *forward.stage : *backward.stage;
  const velo::sublayers& plan =
      plan_of(forward.stage == nullptr ? layers() : forward.stage->dense_layers(),
              backward.stage == nullptr ? layers() : backward.stage->dense_layers(),
              any.has_shared_expert());
  under_way passes{forward, backward};
  velo_sublayers_run_desc desc = VELO_SUBLAYERS_RUN_DESC_INIT;
  desc.user = &passes;
  desc.compute = desc.message = &under_way::start;
  try {
    plan.run(compute.get(), messages_.get(), desc);
  } catch (...) {
    if (passes.failure) std::rethrow_exception(passes.failure);
    throw;
  }
}

}  // namespace decoder
