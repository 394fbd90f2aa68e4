// Layers of a forward come from the first to the last, those of a backward from the last.
#include "sched/sublayers/sublayer_order.hpp"

#include <algorithm>
#include <utility>

namespace velo::sched {
namespace {

class step_list {
 public:
  explicit step_list(const sublayer_layout& of) : of_(of) {}

  void pair(std::int32_t forward, std::int32_t backward) {
    begin_backward(backward, 0);
    one(VELO_SUBLAYER_ATTENTION_F, forward);
    one(VELO_SUBLAYER_DISPATCH_F, forward);
    one(VELO_SUBLAYER_EXPERTS_B, backward);
    one(VELO_SUBLAYER_DISPATCH_B, backward);
    one(VELO_SUBLAYER_EXPERTS_F, forward);
    one(VELO_SUBLAYER_COMBINE_F, forward);
    one(VELO_SUBLAYER_EXPERTS_W, backward);
    one(VELO_SUBLAYER_SHARED_F, forward);
    one(VELO_SUBLAYER_SHARED_B, backward);
    one(VELO_SUBLAYER_ATTENTION_B, backward);
    end_backward(backward);
  }

  void forward(std::int32_t layer) {
    const bool cuts_all = of_.slicing == VELO_SUBLAYER_BY_SEQUENCE;
    const std::int32_t n = of_.slices_of(VELO_SUBLAYER_EXPERTS_F, layer);
    one(VELO_SUBLAYER_ATTENTION_F, layer);
    one(VELO_SUBLAYER_DISPATCH_F, layer);
    if (!cuts_all) one(VELO_SUBLAYER_SHARED_F, layer);
    for (std::int32_t i = 0; i < n; ++i) {
      if (i + 1 < n && cuts_all) one(VELO_SUBLAYER_ATTENTION_F, layer, i + 1);
      if (i + 1 < n) one(VELO_SUBLAYER_DISPATCH_F, layer, i + 1);
      if (i > 0 && !cuts_all) one(VELO_SUBLAYER_COMBINE_F, layer, i - 1);
      if (cuts_all) one(VELO_SUBLAYER_SHARED_F, layer, i);
      one(VELO_SUBLAYER_EXPERTS_F, layer, i);
      if (cuts_all || i + 1 == n) one(VELO_SUBLAYER_COMBINE_F, layer, i);
    }
  }

  void backward(std::int32_t layer) {
    const bool cuts_all = of_.slicing == VELO_SUBLAYER_BY_SEQUENCE;
    const std::int32_t n = of_.slices_of(VELO_SUBLAYER_EXPERTS_B, layer);
    // Slices of a sequence go from the last to the first, as its rows do.
    const auto slice = [&](std::int32_t i) { return cuts_all ? n - 1 - i : i; };
    begin_backward(layer, slice(0));
    if (!cuts_all) one(VELO_SUBLAYER_SHARED_B, layer);
    for (std::int32_t i = 0; i < n; ++i) {
      if (i + 1 < n) one(VELO_SUBLAYER_COMBINE_B, layer, slice(i + 1));
      if (i > 0) one(VELO_SUBLAYER_DISPATCH_B, layer, slice(i - 1));
      if (cuts_all) one(VELO_SUBLAYER_SHARED_B, layer, slice(i));
      one(VELO_SUBLAYER_EXPERTS_B, layer, slice(i));
      if (cuts_all && i > 0) one(VELO_SUBLAYER_ATTENTION_B, layer, slice(i - 1));
    }
    one(VELO_SUBLAYER_DISPATCH_B, layer, slice(n - 1));
    for (std::int32_t i = 0; i < n; ++i) one(VELO_SUBLAYER_EXPERTS_W, layer, slice(i));
    one(VELO_SUBLAYER_ATTENTION_B, layer, cuts_all ? slice(n - 1) : 0);
    end_backward(layer);
  }

  std::vector<velo_sublayer_step> finish() {
    add_late();
    return std::move(steps_);
  }

 private:
  // Adds a step if the plan has it.
  void one(velo_sublayer_kind kind, std::int32_t layer, std::int32_t slice = 0) {
    if (slice < of_.slices_of(kind, layer)) steps_.push_back(make_step(kind, layer, slice));
  }
  void begin_backward(std::int32_t layer, std::int32_t slice) {
    one(VELO_SUBLAYER_COMBINE_B, layer, slice);
    add_late();
  }
  void end_backward(std::int32_t layer) {
    one(VELO_SUBLAYER_SEND_B, layer);
    for (std::int32_t i = of_.slices_of(VELO_SUBLAYER_ATTENTION_W, layer); i-- > 0;)
      late_.push_back(make_step(VELO_SUBLAYER_ATTENTION_W, layer, i));
  }
  void add_late() {
    steps_.insert(steps_.end(), late_.begin(), late_.end());
    late_.clear();
  }

  const sublayer_layout& of_;
  std::vector<velo_sublayer_step> steps_, late_;
};

}  // namespace

std::vector<velo_sublayer_step> order_sublayers(const sublayer_layout& of) {
  step_list result(of);
  const std::int32_t forward = of.layers(true), backward = of.layers(false),
                     pairs = std::min(forward, backward);
  for (std::int32_t i = 0; i < pairs; ++i) result.pair(i, backward - 1 - i);
  for (std::int32_t i = pairs; i < forward; ++i) result.forward(i);
  for (std::int32_t i = pairs; i < backward; ++i) result.backward(backward - 1 - i);
  return result.finish();
}

}  // namespace velo::sched
