// Allocation, initialization and names of weights.
#include "examples/decoder/model/weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "examples/decoder/random.hpp"

namespace decoder {
namespace {

bool ends_with(const std::string& text, const char* end) {
  const std::size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

// Calls f(place, begin, count) for each piece of [begin, begin + count) in `own`, whose elements
// lie one after the other.
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

element type_of(const model_settings& model) {
  return model.dtype == "bf16" ? element::bf16 : element::f32;
}

velo_dtype dtype_of(element type) {
  return type == element::f32 ? velo::dtype<float> : velo::dtype<velo::bfloat16>;
}

weights::weights(run_memory& from, const model_settings& model, bool training, bool sharded)
    : model_(model), layout_(model), type_(type_of(model)) {
  keep(from, training, sharded);
}

weights::weights(member& rank, const model_settings& model, const holding& held, bool sharded)
    : model_(model), layout_(model, held), type_(type_of(model)), rank_(&rank), part_(true) {
  keep(rank.memory(), true, sharded);
}

void weights::keep(run_memory& from, bool training, bool sharded) {
  const auto element_size = static_cast<std::int64_t>(element_bytes(type_));
  weight_ = from.keep(layout_.total * element_size, VELO_PURPOSE_PARAMETER);
  if (!training) return;
  gradient_ = from.keep(layout_.total * 4, VELO_PURPOSE_GRADIENT);
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
  for (buffer* each : state()) *each = from.keep(count * 4, VELO_PURPOSE_OPTIMIZER);
}

void weights::initialize(const velo::stream_ref& stream, std::int64_t seed) {
  std::vector<float> exact;
  const double ordinary = 0.8 / std::sqrt(static_cast<double>(model_.hidden));
  const double residual = 1 / std::sqrt(2.0 * static_cast<double>(model_.layers));
  for (const weight_slice& slice : layout_.slices) {
    exact.resize(static_cast<std::size_t>(slice.elements()));
    float* first = exact.data();
    const bool norm = slice.offset >= layout_.decayed;
    const bool back =
        ends_with(slice.name, "o_proj.weight") || ends_with(slice.name, "down_proj.weight");
    const double deviation = ordinary * (back ? residual : 1);
    const random_stream random(seed, purpose::weights, slice.number);
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

std::vector<buffer*> weights::updated() {
  std::vector<buffer*> all = state();
  all.push_back(&weight_);
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

// `data` holds the elements `own`. Words of a file have 4 bytes: slices of 16-bit elements have an
// even number of elements, as heads have even widths.
void weights::add_pieces(std::vector<named_tensor>& to, const std::string& prefix, element type,
                         std::byte* data, const std::vector<range>& own, bool gives) const {
  const auto size = static_cast<std::int64_t>(element_bytes(type)), per_word = 4 / size;
  std::map<std::size_t, std::int64_t> here;
  for (const weight_slice& slice : layout_.slices) here[slice.number] = slice.offset;
  for (const weight_slice& slice : weight_layout(model_).slices) {
    named_tensor one{prefix + slice.name, type, slice.shape, nullptr};
    const auto found = here.find(slice.number);
    const bool held = found != here.end();
    const std::int64_t at = held ? found->second : 0;
    const auto each = [=](std::int64_t first, std::int64_t count, auto&& move) {
      if (!held) return;
      const std::int64_t from = at + first * per_word;
      each_own(
          own, from, count * per_word, [&](std::int64_t place, std::int64_t begin, std::int64_t n) {
            move((begin - from) * size, data + place * size, static_cast<std::size_t>(n * size));
          });
    };
    one.give = [=, rank = rank_](std::int64_t first, std::int64_t count, float* words) {
      std::memset(words, 0, static_cast<std::size_t>(count) * sizeof(float));
      const auto file = reinterpret_cast<std::byte*>(words);
      const auto out = [=](std::int64_t place, const std::byte* mine, std::size_t bytes) {
        std::memcpy(file + place, mine, bytes);
      };
      if (gives) each(first, count, out);
      rank->collect(words, count);
    };
    one.take = [=](std::int64_t first, std::int64_t count, const float* words) {
      const auto file = reinterpret_cast<const std::byte*>(words);
      each(first, count, [=](std::int64_t place, std::byte* mine, std::size_t bytes) {
        std::memcpy(mine, file + place, bytes);
      });
    };
    to.push_back(std::move(one));
  }
}

void weights::add_state(std::vector<named_tensor>& to, const std::string& prefix,
                        const buffer& of) const {
  if (rank_ == nullptr) return add_files(to, prefix, element::f32, of.data());
  add_pieces(to, prefix, element::f32, of.data(), own_, sharded_ || rank_->leads_data_parallel());
}

std::vector<named_tensor> weights::files() const {
  std::vector<named_tensor> all;
  if (part_)
    add_pieces(all, "", type_, weight_.data(), {{0, layout_.total}}, rank_->leads_data_parallel());
  else
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
  for (const weight_slice& slice : weight_layout(model_).slices) total += slice.elements();
  return total;
}

}  // namespace decoder
