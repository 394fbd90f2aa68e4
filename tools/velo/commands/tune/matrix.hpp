// A tensor with memory for measurements: numbers of which none is 0, in float32 or bfloat16; and
// the pack of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

namespace command {

class matrix {
 public:
  matrix(std::vector<std::int64_t> shape, bool wide) : shape_(std::move(shape)), wide_(wide) {
    std::size_t count = 1;
    for (const std::int64_t one : shape_) count *= static_cast<std::size_t>(one);
    if (wide)
      floats_.assign(count, 0.01F);
    else
      halves_.assign(count, velo::bfloat16(0.01F));
  }
  velo::tensor_view view() {
    const velo::sizes shape(shape_.data(), static_cast<std::int32_t>(shape_.size()));
    return wide_ ? velo::tensor_view(floats_.data(), shape)
                 : velo::tensor_view(halves_.data(), shape);
  }

 private:
  std::vector<std::int64_t> shape_;
  bool wide_;
  std::vector<float> floats_;
  std::vector<velo::bfloat16> halves_;
};

// The pack of a weight, which the job makes once a step.
inline velo::pack packed(const velo::context& context, matrix& weight, bool transposed) {
  const velo::tensor_view from = weight.view();
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = from.type();
  desc.transpose = transposed;
  desc.k = from.size(transposed ? 1 : 0);
  desc.n = from.size(transposed ? 0 : 1);
  velo::pack made = velo::pack::create(context, desc);
  made.update(context.inline_stream(), from);
  return made;
}

}  // namespace command
