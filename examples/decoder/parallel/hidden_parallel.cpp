// Collectives over rows of uneven parts, and norms of one rank or several.
#include "examples/decoder/parallel/hidden_parallel.hpp"

namespace decoder {

const std::int64_t* hidden_parallel::counts(const std::vector<held_rows>& parts,
                                            std::int64_t sequences, std::int64_t width) const {
  counts_.clear();
  for (const held_rows& each : parts) counts_.push_back(sequences * each.count() * width);
  return counts_.data();
}

velo_ints hidden_parallel::row_counts(const std::vector<held_rows>& parts,
                                      std::int64_t sequences) const {
  return {counts(parts, sequences, 1), static_cast<std::int64_t>(parts.size())};
}

void hidden_parallel::gather(const velo::stream_ref& stream, const velo::tensor_view& own,
                             const std::vector<held_rows>& parts, std::int64_t sequences,
                             const velo::tensor_view& all) const {
  of_->group.all_gather(stream, own, counts(parts, sequences, own.size(1)), nullptr, all);
}

void hidden_parallel::sum(const velo::stream_ref& stream, const velo::tensor_view& all,
                          const std::vector<held_rows>& parts, std::int64_t sequences,
                          const velo::tensor_view& own) const {
  of_->group.reduce_scatter(stream, all, counts(parts, sequences, own.size(1)), own);
}

void hidden_parallel::norm(const velo::stream_ref& stream, const norm_tensors& of,
                           const velo::tensor_view& y, double epsilon) const {
  const auto fill = [&](auto arguments) {
    return arguments.x(of.x).gamma(of.gain).y(y).rstd(of.rstd).epsilon(epsilon);
  };
  if (is_alone())
    velo::rms_norm(stream, fill(velo::rms_norm_args()));
  else
    velo::parallel_rms_norm(stream, fill(velo::parallel_rms_norm_args().group(of_->group)));
}

void hidden_parallel::norm_backward(const velo::stream_ref& stream, const norm_tensors& of,
                                    const velo::tensor_view& through,
                                    const velo::tensor_view& gain_gradient, bool accumulate) const {
  const auto fill = [&](auto arguments) {
    arguments.dy(through).x(of.x).gamma(of.gain).rstd(of.rstd).dx(through);
    return arguments.dgamma(gain_gradient).accumulate(accumulate);
  };
  if (is_alone())
    velo::rms_norm_backward(stream, fill(velo::rms_norm_backward_args()));
  else
    velo::parallel_rms_norm_backward(
        stream, fill(velo::parallel_rms_norm_backward_args().group(of_->group)));
}

}  // namespace decoder
