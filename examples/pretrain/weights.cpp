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

// Calls f(place, begin, count) for what `own`, whose elements lie one behind the other, has of
// [begin, begin + count).
template <class F>
void each_own(const std::vector<range>& own, std::int64_t begin, std::int64_t count, F&& f) {
  std::int64_t place = 0;
  for (const range& each : own) {
    const std::int64_t from = std::max(begin, each.begin),
                       to = std::min(begin + count, each.begin + each.count);
    if (from < to) f(place + (from - each.begin), from, to - from);
    place += each.count;
  }
}

}  // namespace

velo_dtype dtype_of(element type) {
  return type == element::f32 ? velo::dtype<float> : velo::dtype<velo::bfloat16>;
}

weights::weights(run_memory& from, const model_settings& model, bool training, bool sharded)
    : model_(model), layout_(model), type_(model.dtype == "bf16" ? element::bf16 : element::f32) {
  const auto element_size = static_cast<std::int64_t>(element_bytes(type_));
  weight_ = from.keep(layout_.total * element_size, VELO_PURPOSE_PARAMETER);
  if (!training) return;
  gradient_ = from.keep(layout_.total * 4, VELO_PURPOSE_GRADIENT);
  own_ = {{0, layout_.total}};
  if (!sharded) keep_state(from);
}

void weights::shard(member& rank, const std::vector<range>& own) {
  shards_ = &rank;
  own_ = own;
  keep_state(rank.memory());
}

void weights::keep_state(run_memory& from) {
  std::int64_t count = 16;  // one line where a rank has nothing
  if (!own_.empty()) count = 0;
  for (const range& each : own_) count += each.count;
  for (buffer* each : state()) *each = from.keep(count * 4, VELO_PURPOSE_OPTIMIZER);
}

void weights::initialize(const velo::stream_ref& stream, std::int64_t seed) {
  std::vector<float> exact;
  const double ordinary = 0.8 / std::sqrt(static_cast<double>(model_.hidden));
  const double residual = 1 / std::sqrt(2.0 * static_cast<double>(model_.layers));
  for (std::size_t i = 0; i < layout_.slices.size(); ++i) {
    const weight_slice& slice = layout_.slices[i];
    exact.resize(static_cast<std::size_t>(slice.elements()));
    float* first = exact.data();
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
    put(stream, slice, first);
  }
}

void weights::put(const velo::stream_ref& stream, const weight_slice& slice, const float* exact) {
  const velo::sizes shape = {slice.elements()};
  if (!has_master()) {
    std::copy_n(exact, slice.elements(), weight_.floats() + slice.offset);
    return;
  }
  velo::cast(stream, velo::cast_args()
                         .x(velo::tensor_view(const_cast<float*>(exact), shape))
                         .y(weight(slice.offset, shape))
                         .dtype(velo::element::bfloat16));
  each_own(own_, slice.offset, slice.elements(),
           [&](std::int64_t place, std::int64_t begin, std::int64_t count) {
             std::copy_n(exact + (begin - slice.offset), count, master() + place);
           });
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

void weights::add_state(std::vector<named_tensor>& to, const std::string& prefix,
                        const buffer& of) const {
  if (shards_ == nullptr) return add_files(to, prefix, element::f32, of.data());
  float* state = of.floats();
  for (const weight_slice& slice : layout_.slices) {
    named_tensor one{prefix + slice.name, element::f32, slice.shape, nullptr};
    const std::int64_t at = slice.offset;
    one.give = [this, state, at](std::int64_t first, std::int64_t count, float* to_file) {
      std::fill_n(to_file, count, 0.0f);
      each_own(own_, at + first, count,
               [&](std::int64_t place, std::int64_t begin, std::int64_t n) {
                 std::copy_n(state + place, n, to_file + (begin - at - first));
               });
      shards_->collect(to_file, count);
    };
    one.take = [this, state, at](std::int64_t first, std::int64_t count, const float* from_file) {
      each_own(own_, at + first, count,
               [&](std::int64_t place, std::int64_t begin, std::int64_t n) {
                 std::copy_n(from_file + (begin - at - first), n, state + place);
               });
    };
    to.push_back(std::move(one));
  }
}

std::vector<named_tensor> weights::files() const {
  std::vector<named_tensor> all;
  add_files(all, "", type_, weight_.data());
  return all;
}

std::vector<named_tensor> weights::master_files() const {
  std::vector<named_tensor> all;
  if (has_master()) add_state(all, "master.", master_);
  return all;
}

std::vector<named_tensor> weights::training_files() const {
  std::vector<named_tensor> all = master_files();
  add_state(all, "first_moment.", first_);
  add_state(all, "second_moment.", second_);
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
