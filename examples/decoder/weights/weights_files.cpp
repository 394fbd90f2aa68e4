// The names and contents of weights in files: what a rank holds of the whole model, in f32 or in
// the weights' type, however narrow the state is in memory.
#include <cmath>
#include <cstring>
#include <map>

#include "examples/decoder/weights/weights.hpp"

namespace decoder {

void weights::add_files(std::vector<named_tensor>& to, const std::string& prefix, element type,
                        void* data) const {
  for (const weight_slice& slice : layout_.slices) {
    std::byte* first = static_cast<std::byte*>(data) +
                       slice.offset * static_cast<std::int64_t>(element_bytes(type));
    to.push_back({prefix + slice.name, type, slice.shape, first});
  }
}

// Whether this is the first of the ranks that have the same elements.
bool weights::leads(const weight_slice& of) const {
  if (rank_ == nullptr) return true;
  return of.of_expert ? rank_->expert_copies().rank == 0 : rank_->leads_data_parallel();
}

// Words of a file have 4 bytes; a word of two 16-bit elements may lie on two ranks, each of which
// gives zero for the other's.
void weights::add_pieces(std::vector<named_tensor>& to, const std::string& prefix,
                         const contents& of, const std::vector<range>& own, bool all_give) const {
  const auto size = static_cast<std::int64_t>(element_bytes(of.type)), per_word = 4 / size;
  std::map<std::size_t, const weight_slice*> here;
  for (const weight_slice& slice : layout_.slices) here[slice.number] = &slice;
  for (const weight_slice& slice : weight_layout(model_).slices) {
    named_tensor one{prefix + slice.name, of.type, slice.shape, nullptr};
    one.piece_words = piece_words_;
    const auto found = here.find(slice.number);
    const weight_slice* held = found == here.end() ? nullptr : found->second;
    const auto each = [=](std::int64_t first, std::int64_t count, auto* file, const auto& move) {
      if (held == nullptr) return;
      const std::int64_t begin = first * per_word;
      held->each_run(
          begin, count * per_word, [&](std::int64_t at, std::int64_t from, std::int64_t n) {
            const std::int64_t moved = held->offset + at - (from - begin);  // from the file's place
            each_own(own, held->offset + at, n,
                     [&](std::int64_t place, std::int64_t in_layout, std::int64_t some) {
                       move(place, in_layout, some, file + (in_layout - moved) * size);
                     });
          });
    };
    const bool gives = held != nullptr && !held->repeated && (all_give || leads(*held));
    one.give = [=, rank = rank_](std::int64_t first, std::int64_t count, float* words) {
      std::memset(words, 0, static_cast<std::size_t>(count) * sizeof(float));
      if (gives) each(first, count, reinterpret_cast<std::byte*>(words), of.read);
      if (rank != nullptr) rank->collect(words, count);
    };
    one.take = [=](std::int64_t first, std::int64_t count, const float* words) {
      each(first, count, reinterpret_cast<const std::byte*>(words), of.write);
    };
    to.push_back(std::move(one));
  }
}

void weights::add_state(std::vector<named_tensor>& to, const std::string& prefix,
                        const contents& of) const {
  if (rank_ == nullptr && of.memory != nullptr) return add_files(to, prefix, of.type, of.memory);
  add_pieces(to, prefix, of, own_, sharded_);
}

// The elements as they lie in memory.
weights::contents weights::plain(element type, std::byte* data) {
  const auto size = static_cast<std::int64_t>(element_bytes(type));
  const auto bytes = [=](std::int64_t n) { return static_cast<std::size_t>(n * size); };
  return {type,
          [=](std::int64_t place, std::int64_t, std::int64_t n, std::byte* file) {
            std::memcpy(file, data + place * size, bytes(n));
          },
          [=](std::int64_t place, std::int64_t, std::int64_t n, const std::byte* file) {
            std::memcpy(data + place * size, file, bytes(n));
          },
          data};
}

// Second moments without the signs that belong to residuals, which stay as they are in memory.
weights::contents weights::moments_in_files(const buffer& of) const {
  const bool keeps_sign = has_residuals() && &of == &second_;
  const auto convert = [=](auto* memory) -> contents {
    return {element::f32,
            [=](std::int64_t place, std::int64_t, std::int64_t n, std::byte* file) {
              auto* out = reinterpret_cast<float*>(file);
              for (std::int64_t i = 0; i < n; ++i) {
                const auto value = static_cast<float>(memory[place + i]);
                out[i] = keeps_sign ? std::fabs(value) : value;
              }
            },
            [=](std::int64_t place, std::int64_t, std::int64_t n, const std::byte* file) {
              const auto* in = reinterpret_cast<const float*>(file);
              for (std::int64_t i = 0; i < n; ++i) {
                auto& to = memory[place + i];
                const float sign = static_cast<float>(to);
                to = std::decay_t<decltype(to)>(keeps_sign ? std::copysign(in[i], sign) : in[i]);
              }
            }};
  };
  if (moments() == element::f32)
    return keeps_sign ? convert(of.floats()) : plain(element::f32, of.data());
  return convert(reinterpret_cast<velo::bfloat16*>(of.data()));
}

weights::contents weights::masters_in_files(const velo::stream_ref& stream) const {
  if (has_master()) return plain(element::f32, master_.data());
  return {element::f32,
          [=](std::int64_t place, std::int64_t begin, std::int64_t n, std::byte* file) {
            for (std::int64_t done = 0; done < n; done += most_merged) {
              const std::int64_t now = std::min(n - done, most_merged);
              merge(stream, place + done, begin + done, now);
              std::memcpy(file + 4 * done, merged_.data(), static_cast<std::size_t>(4 * now));
              split(stream, place + done, begin + done, now);
            }
          },
          [=](std::int64_t place, std::int64_t begin, std::int64_t n, const std::byte* file) {
            put_masters(stream, place, begin, n, reinterpret_cast<const float*>(file));
          }};
}

// Each rank has all biases, so that the writer needs no other rank, and each reads them.
void weights::add_biases(std::vector<named_tensor>& to) const {
  for (const score_bias& each : layout_.biases) {
    float* const own = score_bias_of(each.layer).data<float>();
    named_tensor one{each.name, element::f32, {model_.experts}, nullptr};
    one.give = [own](std::int64_t first, std::int64_t count, float* words) {
      std::copy_n(own + first, count, words);
    };
    one.take = [own](std::int64_t first, std::int64_t count, const float* words) {
      std::copy_n(words, count, own + first);
    };
    to.push_back(std::move(one));
  }
}

std::vector<named_tensor> weights::files() const {
  std::vector<named_tensor> all;
  if (part_)
    add_pieces(all, "", plain(type_, weight_.data()), {{0, layout_.total}}, false);
  else
    add_files(all, "", type_, weight_.data());
  add_biases(all);
  return all;
}

std::vector<named_tensor> weights::master_files(const velo::stream_ref& stream) const {
  std::vector<named_tensor> all;
  if (type_ == element::bf16) add_state(all, "master.", masters_in_files(stream));
  return all;
}

std::vector<named_tensor> weights::training_files(const velo::stream_ref& stream) const {
  std::vector<named_tensor> all = master_files(stream);
  add_state(all, "first_moment.", moments_in_files(first_));
  add_state(all, "second_moment.", moments_in_files(second_));
  return all;
}

// Gradients lie in the order of the layout, whatever ranges a rank has.
weights::contents weights::gradients_in_files() const {
  return {element::f32,
          [=](std::int64_t, std::int64_t begin, std::int64_t n, std::byte* file) {
            std::memcpy(file, gradient_.floats() + begin, static_cast<std::size_t>(n * 4));
          },
          {}};
}

std::vector<named_tensor> weights::gradient_files() const {
  std::vector<named_tensor> all;
  if (rank_ == nullptr) {
    add_files(all, "", element::f32, gradient_.data());
    return all;
  }
  add_pieces(all, "", gradients_in_files(), own_, sharded_);
  return all;
}

}  // namespace decoder
