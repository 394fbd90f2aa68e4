// Runs of rows, symbols and padding.
#include "examples/decoder/data/window_writer.hpp"

#include <algorithm>

#include "examples/decoder/data/vocabulary.hpp"

namespace decoder {
namespace {

constexpr std::int32_t not_counted = -100;

}  // namespace

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
