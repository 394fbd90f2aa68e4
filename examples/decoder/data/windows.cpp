// The order of an epoch is a Feistel permutation over the next power of four, applied until the
// index falls inside the epoch: a bijection without a table.
#include "examples/decoder/data/windows.hpp"

#include <algorithm>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/random.hpp"

namespace decoder {
namespace {

constexpr std::int32_t not_counted = -100;

std::uint64_t permuted(std::uint64_t index, std::uint64_t count, const random_stream& keys) {
  unsigned half = 1;
  while ((std::uint64_t{1} << (2 * half)) < count) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mixed(right ^ keys.bits(round)) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);  // fewer than four turns on average
  return index;
}

}  // namespace

windows::windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed)
    : window_(window_bytes), seed_(seed) {
  // The phase takes the place of one window, where there are several.
  const std::int64_t whole = text_bytes / window_bytes;
  per_epoch_ = whole > 1 ? whole - 1 : 1;
  slack_ = text_bytes - per_epoch_ * window_bytes;
}

std::int64_t windows::begin(std::int64_t number) const {
  const auto epoch = static_cast<std::uint64_t>(number / per_epoch_);
  const auto index = static_cast<std::uint64_t>(number % per_epoch_);
  const auto count = static_cast<std::uint64_t>(per_epoch_);
  const std::uint64_t phase =
      random_stream(seed_, purpose::phase).below(static_cast<std::uint64_t>(slack_) + 1, epoch);
  const std::uint64_t place = permuted(index, count, random_stream(seed_, purpose::windows, epoch));
  return static_cast<std::int64_t>(phase + place * static_cast<std::uint64_t>(window_));
}

held_rows::held_rows(std::int64_t window, std::vector<std::int64_t> runs)
    : window_(window), runs_(std::move(runs)) {
  for (std::size_t i = 0; i < runs_.size(); i += 2) count_ += runs_[i + 1] - runs_[i];
}

std::vector<std::int64_t> held_rows::positions() const {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < runs_.size(); i += 2)
    for (std::int64_t row = runs_[i]; row < runs_[i + 1]; ++row) all.push_back(row);
  return all;
}

void held_rows::copy(const std::int32_t* window, std::int32_t* rows) const {
  for (std::size_t i = 0; i < runs_.size(); i += 2)
    rows = std::copy(window + runs_[i], window + runs_[i + 1], rows);
}

window_writer::window_writer(const held_rows& rows)
    : rows_(rows),
      inputs_(static_cast<std::size_t>(rows.window())),
      targets_(static_cast<std::size_t>(rows.window())) {}

void window_writer::write(const window& from, std::int64_t number, std::int32_t* inputs,
                          std::int32_t* targets) {
  write_sequence(from.bytes, inputs_.data(), targets_.data());
  const auto end = static_cast<std::ptrdiff_t>(from.bytes.size());
  std::fill(inputs_.begin() + end, inputs_.end(), pad);
  std::fill(targets_.begin() + end, targets_.end(), not_counted);
  std::fill_n(targets_.begin(), from.first_counted, not_counted);
  rows_.copy(inputs_.data(), inputs + number * rows_.count());
  rows_.copy(targets_.data(), targets + number * rows_.count());
}

void write_sequence(std::string_view bytes, std::int32_t* inputs, std::int32_t* targets) {
  std::int32_t before = bos;
  for (const char c : bytes) {
    *inputs++ = before;
    before = static_cast<unsigned char>(c);
    *targets++ = before;
  }
}

}  // namespace decoder
