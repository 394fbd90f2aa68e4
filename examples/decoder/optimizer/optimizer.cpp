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
        update(stream, all, of, begin + moved, first, decayed, {number, learning_rate, 0});
        update(stream, all, of, begin + moved, decayed, last,
               {number, learning_rate, settings_.weight_decay});
      }
      place += each.count;
    }
  };
  if (swap == nullptr) {
    on(0, all.layout().total, {all.first_moment(), all.second_moment(), all.master()});
  } else {
    swap->update(all.state(), [&](std::uint64_t offset, std::uint64_t bytes, void* const* slices) {
      const auto begin = static_cast<std::int64_t>(offset / sizeof(float));
      const auto slice = [&](int i) { return static_cast<std::byte*>(slices[i]); };
      on(begin, begin + static_cast<std::int64_t>(bytes / sizeof(float)),
         {slice(0), slice(1), all.has_master() ? static_cast<float*>(slices[2]) : nullptr});
    });
  }
}

// Updates weights [begin, end), whose state `of` holds from `origin` on.
void optimizer::update(const velo::stream_ref& stream, const weights& all, const state& of,
                       std::int64_t origin, std::int64_t begin, std::int64_t end,
                       const number_and_rate& how) const {
  if (begin == end) return;
  if (!all.has_residuals()) {
    const range part = {begin, end - begin};
    return update_part(stream, all, of, origin, part, all.weight(begin, {part.count}), how);
  }
  for (std::int64_t at = begin; at < end; at += weights::most_merged) {
    const range part = {at, std::min(end - at, weights::most_merged)};
    const velo::tensor_view exact = all.merge(stream, at - origin, at, part.count);
    update_part(stream, all, of, origin, part, exact, how);
    all.split(stream, at - origin, at, part.count);
  }
}

void optimizer::update_part(const velo::stream_ref& stream, const weights& all, const state& of,
                            std::int64_t origin, const range& part, const velo::tensor_view& weight,
                            const number_and_rate& how) const {
  const velo::sizes shape = {part.count};
  const std::int64_t place = part.begin - origin, size = all.moment_type().bits / 8;
  const velo::tensor_view gradient = all.gradient(part.begin, shape);
  const velo::tensor_view first(of.first + place * size, all.moment_type(), shape),
      second(of.second + place * size, all.moment_type(), shape), clip(&factor_, {});
  auto arguments =
      velo::apply_fused_adamw_args().grad(gradient).scale(clip).param(weight).m(first).v(second);
  const velo::tensor_view master(of.master + (of.master ? place : 0), shape);
  if (of.master) arguments.master(master);
  velo::apply_fused_adamw(stream, arguments.step(how.number)
                                      .lr(how.learning_rate)
                                      .beta1(settings_.beta1)
                                      .beta2(settings_.beta2)
                                      .epsilon(settings_.epsilon)
                                      .weight_decay(how.decay));
}

}  // namespace decoder
