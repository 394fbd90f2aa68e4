// Global norm, then one pass per group.
#include "optimizer.hpp"

namespace pretrain {

double optimizer::step(const velo::stream_ref& stream, const weights& all, std::int64_t number,
                       double learning_rate) {
  const weight_layout& layout = all.layout();
  velo::global_norm(stream, velo::global_norm_args()
                                .x(all.gradient(0, {layout.total}))
                                .sum_of_squares(velo::tensor_view(&sum_of_squares_, {}))
                                .norm(velo::tensor_view(&norm_, {}))
                                .clip(velo::tensor_view(&clip_, {}))
                                .max_norm(settings_.clip));
  if (settings_.clip == 0) clip_ = 1;
  update(stream, all, 0, layout.decayed, settings_.weight_decay, number, learning_rate);
  update(stream, all, layout.decayed, layout.total, 0, number, learning_rate);
  return static_cast<double>(norm_);
}

void optimizer::update(const velo::stream_ref& stream, const weights& all, std::int64_t begin,
                       std::int64_t end, double decay, std::int64_t number, double learning_rate) {
  const velo::sizes shape = {end - begin};
  const velo::tensor_view gradient = all.gradient(begin, shape), weight = all.weight(begin, shape);
  const velo::tensor_view first = all.first_moment(begin, shape),
                          second = all.second_moment(begin, shape);
  const velo::tensor_view master = all.master(begin, shape), clip(&clip_, {});
  auto arguments =
      velo::apply_fused_adamw_args().grad(gradient).scale(clip).param(weight).m(first).v(second);
  if (all.has_master()) arguments.master(master);
  velo::apply_fused_adamw(stream, arguments.step(number)
                                      .lr(learning_rate)
                                      .beta1(settings_.beta1)
                                      .beta2(settings_.beta2)
                                      .epsilon(settings_.epsilon)
                                      .weight_decay(decay));
}

}  // namespace pretrain
