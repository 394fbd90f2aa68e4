// The global norm, then one pass for the matrices and one for the norms.
#include "examples/decoder/optimizer/optimizer.hpp"

#include <algorithm>

namespace decoder {

double optimizer::sum_of_squares(const member& rank, const weights& all,
                                 const std::vector<range>& summed) const {
  double sum = 0;
  for (const range& part : summed)
    velo::global_norm(rank.stream(), velo::global_norm_args()
                                         .x(all.gradient(part.begin, {part.count}))
                                         .sum_of_squares(velo::tensor_view(&sum, {}))
                                         .accumulate(true));
  return sum;
}

optimizer::clipping optimizer::clip(const member& rank, double sum_of_squares) const {
  clipping made = {0, 1};
  velo::global_norm(rank.stream(), velo::global_norm_args()
                                       .x(velo::tensor_view(static_cast<float*>(nullptr), {0}))
                                       .sum_of_squares(velo::tensor_view(&sum_of_squares, {}))
                                       .norm(velo::tensor_view(&made.norm, {}))
                                       .clip(velo::tensor_view(&made.factor, {}))
                                       .max_norm(settings_.clip)
                                       .accumulate(true));
  if (settings_.clip == 0) made.factor = 1;
  return made;
}

// Ranks add their sums in rank order, so a sharded optimizer has the bits of another.
double optimizer::step(const member& rank, weights& all, const std::vector<range>& summed,
                       swapper* swap, std::int64_t number, double learning_rate) {
  const clipping made = clip(rank, rank.sum(sum_of_squares(rank, all, summed)));
  update(rank, all, swap, number, learning_rate, made.factor);
  return static_cast<double>(made.norm);
}

void optimizer::update(const member& rank, weights& all, swapper* swap, std::int64_t number,
                       double learning_rate, float factor) {
  factor_ = factor;
  const velo::stream_ref stream = rank.stream();
  // Updates [begin, end) of the state, which `of` holds from there on.
  const auto on = [&](std::int64_t begin, std::int64_t end, const state& of) {
    std::int64_t place = 0;
    for (const range& each : all.own()) {
      const std::int64_t from = std::max(begin, place), to = std::min(end, place + each.count);
      if (from < to) {
        const std::int64_t moved = each.begin - place, first = from + moved, last = to + moved;
        const std::int64_t decayed = std::clamp(all.layout().decayed, first, last);
        update(stream, all, of, begin + moved, first, decayed, settings_.weight_decay, number,
               learning_rate);
        update(stream, all, of, begin + moved, decayed, last, 0, number, learning_rate);
      }
      place += each.count;
    }
  };
  if (swap == nullptr) {
    on(0, all.layout().total, {all.first_moment(), all.second_moment(), all.master()});
  } else {
    swap->update(all.state(), [&](std::uint64_t offset, std::uint64_t bytes, void* const* slices) {
      const auto begin = static_cast<std::int64_t>(offset / sizeof(float));
      const auto slice = [&](int i) { return static_cast<float*>(slices[i]); };
      on(begin, begin + static_cast<std::int64_t>(bytes / sizeof(float)),
         {slice(0), slice(1), all.has_master() ? slice(2) : nullptr});
    });
  }
}

// Updates weights [begin, end), whose state `of` holds from `origin` on.
void optimizer::update(const velo::stream_ref& stream, const weights& all, const state& of,
                       std::int64_t origin, std::int64_t begin, std::int64_t end, double decay,
                       std::int64_t number, double learning_rate) {
  if (begin == end) return;
  const velo::sizes shape = {end - begin};
  const velo::tensor_view gradient = all.gradient(begin, shape), weight = all.weight(begin, shape);
  const velo::tensor_view first(of.first + (begin - origin), shape),
      second(of.second + (begin - origin), shape), clip(&factor_, {});
  auto arguments =
      velo::apply_fused_adamw_args().grad(gradient).scale(clip).param(weight).m(first).v(second);
  const velo::tensor_view master(of.master + (of.master ? begin - origin : 0), shape);
  if (of.master) arguments.master(master);
  velo::apply_fused_adamw(stream, arguments.step(number)
                                      .lr(learning_rate)
                                      .beta1(settings_.beta1)
                                      .beta2(settings_.beta2)
                                      .epsilon(settings_.epsilon)
                                      .weight_decay(decay));
}

}  // namespace decoder
