// Calls derived from the operators' examples with other sizes, and their comparison with the
// reference.
#pragma once

#include <array>

#include "tests/ops/example_call.hpp"

namespace velo::testing {

// A tensor of another shape with the elements of `of` in random order: no two rows are alike, and
// indices stay in their range.
inline hosts::array resized(const hosts::array& of, const std::vector<std::int64_t>& shape) {
  hosts::array out = hosts::filled(of.dtype, shape, 0);
  const std::size_t size = of.dtype.bits / 8, count = of.bytes.size() / size;
  thread_random random(1);
  for (std::size_t i = 0; i * size < out.bytes.size(); ++i)
    std::memcpy(&out.bytes[i * size], &of.bytes[random.below(count) * size], size);
  return out;
}

// The example with every size of its tensors mapped, outputs as the operator infers them; false
// when it does not take such sizes.
template <class Map>
inline bool with_sizes(const hosts::sample& example, const session& s, const Map& map,
                       hosts::sample& out) {
  out = example;
  out.outputs.clear(), out.known.clear();
  for (hosts::named_array& in : out.inputs) {
    std::vector<std::int64_t> shape = in.data.shape;
    for (std::int64_t& size : shape) size = map(size);
    if (shape != in.data.shape) in.data = resized(in.data, shape);
  }
  const example_call inputs(out);
  const auto values = inputs.values(false);
  std::array<velo_shape, ops::max_fields> shapes{};
  shapes[0].struct_size = sizeof(velo_shape);
  std::int64_t count = 0;
  if (velo_op_infer(s.context(), out.op.c_str(), values.data(),
                    static_cast<std::int64_t>(values.size()), shapes.data(), ops::max_fields,
                    &count) != VELO_OK)
    return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const velo_shape& shape = shapes[static_cast<std::size_t>(i)];
    out.outputs.push_back(
        {shape.name, hosts::filled(shape.dtype, {shape.sizes, shape.sizes + shape.ndim}, 0xcd)});
  }
  return example_call(out).run(s.stream()) == VELO_OK;
}

inline std::int64_t largest_count(const hosts::sample& sample) {
  std::int64_t most = 0;
  for (const hosts::named_array& in : sample.inputs) most = std::max(most, in.data.count());
  for (const hosts::named_array& out : sample.outputs) most = std::max(most, out.data.count());
  return most;
}

// All sizes but 1, which may stand for broadcasting, times a factor that leaves no tensor with more
// elements than `limit`.
inline hosts::sample grown(const hosts::sample& example, const session& s, std::int64_t limit) {
  hosts::sample best = example;
  for (std::int64_t factor = 2;; factor *= 2) {
    hosts::sample next;
    const auto times = [&](std::int64_t size) { return size == 1 ? size : size * factor; };
    if (!with_sizes(example, s, times, next) || largest_count(next) > limit ||
        largest_count(next) == largest_count(best))
      return best;
    best = std::move(next);
  }
}

inline std::string text_of(const hosts::sample& sample) {
  std::string out = sample.op;
  for (const hosts::named_array& in : sample.inputs) {
    out += " " + in.field + "=" + ops::dtype_name(in.data.dtype).buffer + "[";
    for (const std::int64_t size : in.data.shape) out += std::to_string(size) + ",";
    if (!in.data.shape.empty()) out.pop_back();
    out += "]";
  }
  return out + " " + sample.attributes_json();
}

inline std::vector<hosts::sample> examples_of(const std::string& op) {
  std::vector<hosts::sample> out;
  for (const hosts::sample& example : hosts::samples(true))
    if (example.op == op) out.push_back(example);
  return out;
}

// Outputs of two kernels, each within the operator's bound of the exact value.
inline void require_agreement(const hosts::array& got, const hosts::array& reference,
                              const ops::error_bound& bound) {
  const auto count = static_cast<std::size_t>(got.count());
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    largest = std::max(largest, std::abs(element(reference, i)));
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = element(reference, i), value = element(got, i);
    const double limit = 2 * ops::allowed_error(bound, exact, largest);
    if (value == exact || (std::isnan(value) && std::isnan(exact)) ||
        std::abs(value - exact) <= limit)
      continue;
    INFO("element " << i << " of " << count << " of " << ops::dtype_name(got.dtype).buffer
                    << ": got " << value << ", reference " << exact << ", allowed " << limit);
    FAIL("outside the bound");
  }
}

}  // namespace velo::testing
