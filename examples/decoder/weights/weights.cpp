// Allocation and initialization of weights, and their masters.
#include "examples/decoder/weights/weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "examples/decoder/random.hpp"

namespace decoder {
namespace {

bool ends_with(const std::string& text, const char* end) {
  const std::size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

}  // namespace

element type_of(const model_settings& model) {
  return model.dtype == "bf16" ? element::bf16 : element::f32;
}

velo_dtype dtype_of(element type) {
  return type == element::f32 ? velo::dtype<float> : velo::dtype<velo::bfloat16>;
}

weights::weights(run_memory& from, const model_settings& model, bool training, bool sharded,
                 const narrow_settings& narrow)
    : model_(model), layout_(model), type_(type_of(model)), narrow_(narrow) {
  keep(from, training, sharded);
}

weights::weights(member& rank, const model_settings& model, const holding& held, bool sharded,
                 const narrow_settings& narrow)
    : model_(model),
      layout_(model, held),
      type_(type_of(model)),
      narrow_(narrow),
      rank_(&rank),
      part_(true) {
  keep(rank.memory(), true, sharded);
}

void weights::keep(run_memory& from, bool training, bool sharded) {
  const auto element_size = static_cast<std::int64_t>(element_bytes(type_));
  weight_ = from.keep(layout_.total * element_size, VELO_PURPOSE_PARAMETER);
  if (!layout_.biases.empty())
    biases_ = from.keep(static_cast<std::int64_t>(layout_.biases.size()) * model_.experts * 4,
                        VELO_PURPOSE_PARAMETER);
  if (!training) return;
  gradient_ = from.keep(layout_.total * static_cast<std::int64_t>(element_bytes(gradients())),
                        VELO_PURPOSE_GRADIENT);
  own_ = {{0, layout_.total}};
  if (!sharded) keep_state(from);
}

void weights::shard(member& rank, const std::vector<range>& own) {
  rank_ = &rank;
  sharded_ = true;
  own_ = own;
  keep_state(rank.memory());
}

void weights::keep_state(run_memory& from) {
  std::int64_t count = 16;  // a cache line where a rank has no elements
  if (!own_.empty()) count = 0;
  for (const range& each : own_) count += each.count;
  const auto keep = [&](std::int64_t size) {
    return from.keep(count * size, VELO_PURPOSE_OPTIMIZER);
  };
  const auto moment_size = static_cast<std::int64_t>(element_bytes(moments()));
  first_ = keep(moment_size);
  second_ = keep(moment_size);
  if (type_ == element::bf16) master_ = keep(has_residuals() ? 2 : 4);
  if (has_residuals())
    merged_ = from.keep(std::min(count, most_merged) * 4, VELO_PURPOSE_WORKSPACE);
}

void weights::initialize(const velo::stream_ref& stream, std::int64_t seed) {
  const double ordinary = 0.8 / std::sqrt(static_cast<double>(model_.hidden));
  const double residual = 1 / std::sqrt(2.0 * static_cast<double>(model_.layers));
  fill(stream, [&](const weight_slice& of, std::int64_t first, std::int64_t count, float* to) {
    if (of.offset < layout_.decayed) {  // a norm
      std::fill_n(to, count, 1.0f);
      return;
    }
    const bool back = ends_with(of.name, "o_proj.weight") ||
                      ends_with(of.name, "down_proj.weight") || ends_with(of.name, "w2.weight");
    const double deviation = ordinary * (back ? residual : 1);
    const random_stream random(seed, purpose::weights, of.number);
    for (std::int64_t k = 0; k < count; ++k)
      to[k] = static_cast<float>(deviation * random.normal(static_cast<std::uint64_t>(first + k)));
  });
}

void weights::fill(const velo::stream_ref& stream, const exact_source& give) {
  std::vector<float> exact;
  for (const weight_slice& slice : layout_.slices) {
    exact.resize(static_cast<std::size_t>(slice.elements()));
    slice.each_run([&](std::int64_t place, std::int64_t from, std::int64_t count) {
      give(slice, from, count, exact.data() + place);
    });
    put(stream, slice, exact.data());
  }
}

void weights::put(const velo::stream_ref& stream, const weight_slice& slice, const float* exact) {
  const velo::sizes shape = {slice.elements()};
  if (type_ == element::f32) {
    std::copy_n(exact, slice.elements(), weight_.floats() + slice.offset);
    return;
  }
  velo::cast(stream, velo::cast_args()
                         .x(velo::tensor_view(const_cast<float*>(exact), shape))
                         .y(weight(slice.offset, shape))
                         .dtype(velo::element::bfloat16));
  each_own(own_, slice.offset, slice.elements(),
           [&](std::int64_t place, std::int64_t begin, std::int64_t count) {
             put_masters(stream, place, begin, count, exact + (begin - slice.offset));
           });
}

void weights::put_masters(const velo::stream_ref& stream, std::int64_t place, std::int64_t begin,
                          std::int64_t count, const float* exact) const {
  if (has_master()) {
    std::copy_n(exact, count, master() + place);
    return;
  }
  for (std::int64_t done = 0; done < count; done += most_merged) {
    const std::int64_t now = std::min(count - done, most_merged);
    std::copy_n(exact + done, now, merged_.floats());
    split(stream, place + done, begin + done, now);
  }
}

// Ties are rounded to even, as the optimizer rounds a weight with a master of its own.
velo::tensor_view weights::merge(const velo::stream_ref& stream, std::int64_t place,
                                 std::int64_t begin, std::int64_t count) const {
  const velo::tensor_view exact(merged_.floats(), {count});
  velo::bf16_param_merge(stream, velo::bf16_param_merge_args()
                                     .param(weight(begin, {count}))
                                     .residual(residual(place, count))
                                     .v(second(place, count))
                                     .master(exact)
                                     .rounding(velo::bf16_rounding::half_even));
  return exact;
}

void weights::split(const velo::stream_ref& stream, std::int64_t place, std::int64_t begin,
                    std::int64_t count) const {
  velo::bf16_param_split(stream, velo::bf16_param_split_args()
                                     .master(velo::tensor_view(merged_.floats(), {count}))
                                     .v(second(place, count))
                                     .param(weight(begin, {count}))
                                     .residual(residual(place, count))
                                     .rounding(velo::bf16_rounding::half_even));
}

velo::tensor_view weights::residual(std::int64_t place, std::int64_t count) const {
  return {reinterpret_cast<std::uint8_t*>(master_.data()) + 2 * place, {count, 2}};
}
velo::tensor_view weights::second(std::int64_t place, std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(element_bytes(moments()));
  return {second_.data() + size * place, dtype_of(moments()), {count}};
}

velo::tensor_view weights::weight(std::int64_t offset, velo::sizes shape) const {
  return {weight_.data() + offset * static_cast<std::int64_t>(element_bytes(type_)),
          dtype_of(type_), shape};
}
velo::tensor_view weights::gradient(std::int64_t offset, velo::sizes shape) const {
  return {gradient_.data() + offset * static_cast<std::int64_t>(element_bytes(gradients())),
          dtype_of(gradients()), shape};
}

velo::tensor_view weights::score_bias_of(std::size_t layer) const {
  const std::int64_t place = static_cast<std::int64_t>(layer) - model_.dense_layers;
  return {biases_.floats() + place * model_.experts, {model_.experts}};
}

void weights::fill_biases(const std::function<void(const score_bias& of, float* to)>& give) {
  for (const score_bias& each : layout_.biases) give(each, score_bias_of(each.layer).data<float>());
}

std::vector<buffer*> weights::state() {
  std::vector<buffer*> all = {&first_, &second_};
  if (type_ == element::bf16) all.push_back(&master_);
  return all;
}

std::vector<buffer*> weights::updated() {
  std::vector<buffer*> all = state();
  all.push_back(&weight_);
  return all;
}

void weights::clear_gradients() {
  std::memset(gradient_.data(), 0, static_cast<std::size_t>(gradient_.bytes()));
}

std::vector<range> weights::counted(const std::vector<range>& own) const {
  std::vector<range> all = own;
  for (const weight_slice& slice : layout_.slices) {
    if (!slice.repeated) continue;
    const std::int64_t begin = slice.offset, end = begin + slice.elements();
    std::vector<range> rest;
    for (const range& each : all) {
      const std::int64_t last = each.begin + each.count;
      if (each.begin < begin) rest.push_back({each.begin, std::min(last, begin) - each.begin});
      if (last > end) rest.push_back({std::max(each.begin, end), last - std::max(each.begin, end)});
    }
    all = rest;
  }
  return all;
}

velo::tensor_view weights::embedding_gradient() const {
  return gradient(layout_.embedding, {layout_.widths.vocab, layout_.widths.hidden});
}

velo::tensor_view weights::norm_gradients() const {
  return gradient(0, {layout_.low_end});
}

velo::tensor_view weights::router_gradients() const {
  return gradient(layout_.low_end, {layout_.routers_end - layout_.low_end});
}

std::int64_t weights::count() const {
  std::int64_t total = 0;
  for (const weight_slice& slice : weight_layout(model_).slices) total += slice.elements();
  return total;
}

}  // namespace decoder
