// Planning, drawing and naming of weights.
#include "weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "random.hpp"

namespace pretrain {
namespace {

bool ends_with(const std::string& text, const char* end) {
  const std::size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

}  // namespace

velo_dtype dtype_of(element type) {
  return type == element::f32 ? velo::dtype<float> : velo::dtype<velo::bfloat16>;
}

weights::weights(run_memory& from, const model_settings& model, bool training)
    : model_(model), layout_(model), type_(model.dtype == "bf16" ? element::bf16 : element::f32) {
  const auto element_size = static_cast<std::int64_t>(element_bytes(type_));
  weight_ = from.keep(layout_.total * element_size, VELO_PURPOSE_PARAMETER);
  if (!training) return;
  const auto floats = [&](velo_purpose purpose) { return from.keep(layout_.total * 4, purpose); };
  gradient_ = floats(VELO_PURPOSE_GRADIENT);
  first_ = floats(VELO_PURPOSE_OPTIMIZER);
  second_ = floats(VELO_PURPOSE_OPTIMIZER);
  if (type_ == element::bf16) master_ = floats(VELO_PURPOSE_OPTIMIZER);
}

void weights::initialize(const velo::stream_ref& stream, std::int64_t seed) {
  float* exact = has_master() ? master_.floats() : weight_.floats();
  const double ordinary = 0.8 / std::sqrt(static_cast<double>(model_.hidden));
  const double residual = 1 / std::sqrt(2.0 * static_cast<double>(model_.layers));
  for (std::size_t i = 0; i < layout_.slices.size(); ++i) {
    const weight_slice& slice = layout_.slices[i];
    float* first = exact + slice.offset;
    const bool norm = slice.offset >= layout_.decayed;
    const bool back =
        ends_with(slice.name, "o_proj.weight") || ends_with(slice.name, "down_proj.weight");
    const double deviation = ordinary * (back ? residual : 1);
    const random_stream random(seed, purpose::weights, i);
    for (std::int64_t k = 0; k < slice.elements(); ++k) {
      first[k] = norm
                     ? 1.0f
                     : static_cast<float>(deviation * random.normal(static_cast<std::uint64_t>(k)));
    }
  }
  if (!has_master()) return;
  velo::cast(stream, velo::cast_args()
                         .x(velo::tensor_view(master(), {layout_.total}))
                         .y(weight(0, {layout_.total}))
                         .dtype(velo::element::bfloat16));
}

velo::tensor_view weights::weight(std::int64_t offset, velo::sizes shape) const {
  return {weight_.data() + offset * static_cast<std::int64_t>(element_bytes(type_)),
          dtype_of(type_), shape};
}
velo::tensor_view weights::gradient(std::int64_t offset, velo::sizes shape) const {
  return {gradient_.floats() + offset, shape};
}

std::vector<buffer*> weights::state() {
  std::vector<buffer*> all = {&first_, &second_};
  if (has_master()) all.push_back(&master_);
  return all;
}

void weights::clear_gradients() {
  std::memset(gradient_.data(), 0, static_cast<std::size_t>(layout_.total) * sizeof(float));
}

void weights::add_files(std::vector<named_tensor>& to, const std::string& prefix, element type,
                        void* data) const {
  for (const weight_slice& slice : layout_.slices) {
    std::byte* first = static_cast<std::byte*>(data) +
                       slice.offset * static_cast<std::int64_t>(element_bytes(type));
    to.push_back({prefix + slice.name, type, slice.shape, first});
  }
}

std::vector<named_tensor> weights::files() const {
  std::vector<named_tensor> all;
  add_files(all, "", type_, weight_.data());
  return all;
}

std::vector<named_tensor> weights::master_files() const {
  std::vector<named_tensor> all;
  if (has_master()) add_files(all, "master.", element::f32, master_.data());
  return all;
}

std::vector<named_tensor> weights::training_files() const {
  std::vector<named_tensor> all = master_files();
  add_files(all, "first_moment.", element::f32, first_.data());
  add_files(all, "second_moment.", element::f32, second_.data());
  return all;
}

std::vector<named_tensor> weights::gradient_files() const {
  std::vector<named_tensor> all;
  add_files(all, "", element::f32, gradient_.data());
  return all;
}

std::int64_t weights::count() const {
  std::int64_t total = 0;
  for (const weight_slice& slice : layout_.slices) total += slice.elements();
  return total;
}

}  // namespace pretrain
