// Global norm, then one pass per group.
#include "optimizer.hpp"

#include <algorithm>

namespace pretrain {

// Ranks add what they summed in their order, so a sharded optimizer has the bits of another.
void optimizer::measure(const member& rank, const weights& all, const std::vector<range>& summed) {
  const auto add = [&](const range& part) {
    velo::global_norm(rank.stream(), velo::global_norm_args()
                                         .x(all.gradient(part.begin, {part.count}))
                                         .sum_of_squares(velo::tensor_view(&sum_of_squares_, {}))
                                         .norm(velo::tensor_view(&norm_, {}))
                                         .clip(velo::tensor_view(&clip_, {}))
                                         .max_norm(settings_.clip)
                                         .accumulate(true));
  };
  sum_of_squares_ = 0;
  for (const range& part : summed) add(part);
  if (rank.ranks() > 1) {
    sum_of_squares_ = rank.sum(sum_of_squares_);
    add({0, 0});
  }
  if (settings_.clip == 0) clip_ = 1;
}

double optimizer::step(const member& rank, weights& all, const std::vector<range>& summed,
                       swapper* away, std::int64_t number, double learning_rate) {
  measure(rank, all, summed);
  const velo::stream_ref stream = rank.stream();
  // [begin, end) of the state, which `of` has from there on.
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
  if (away == nullptr) {
    on(0, all.layout().total, {all.first_moment(), all.second_moment(), all.master()});
  } else {
    away->update(all.state(), [&](std::uint64_t offset, std::uint64_t bytes, void* const* slices) {
      const auto begin = static_cast<std::int64_t>(offset / sizeof(float));
      const auto slice = [&](int i) { return static_cast<float*>(slices[i]); };
      on(begin, begin + static_cast<std::int64_t>(bytes / sizeof(float)),
         {slice(0), slice(1), all.has_master() ? slice(2) : nullptr});
    });
  }
  return static_cast<double>(norm_);
}

// Weights [begin, end), of which `of` has the state from `origin` on.
void optimizer::update(const velo::stream_ref& stream, const weights& all, const state& of,
                       std::int64_t origin, std::int64_t begin, std::int64_t end, double decay,
                       std::int64_t number, double learning_rate) {
  if (begin == end) return;
  const velo::sizes shape = {end - begin};
  const velo::tensor_view gradient = all.gradient(begin, shape), weight = all.weight(begin, shape);
  const velo::tensor_view first(of.first + (begin - origin), shape),
      second(of.second + (begin - origin), shape), clip(&clip_, {});
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

}  // namespace pretrain
