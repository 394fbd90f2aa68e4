// Runs of rows, symbols and padding.
#include "examples/decoder/data/window_writer.hpp"

#include <algorithm>
#include <numeric>

#include "examples/decoder/data/vocabulary.hpp"

namespace decoder {
namespace {

constexpr std::int32_t not_counted = -100;

// Copies the rows of each sequence in `from`; returns the end of the copies.
std::int32_t* copy_held(const held_rows& held, const std::vector<std::int32_t>& from,
                        std::int32_t* to) {
  const auto length = static_cast<std::size_t>(held.sequence());
  for (std::size_t at = 0; at < from.size(); at += length) to = held.copy(&from[at], to);
  return to;
}

}  // namespace

held_rows::held_rows(std::int64_t sequence, std::vector<std::int64_t> runs)
    : sequence_(sequence), runs_(std::move(runs)) {
  for (std::size_t i = 0; i < runs_.size(); i += 2) count_ += runs_[i + 1] - runs_[i];
}

std::vector<std::int64_t> held_rows::positions() const {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < runs_.size(); i += 2)
    for (std::int64_t row = runs_[i]; row < runs_[i + 1]; ++row) all.push_back(row);
  return all;
}

std::int32_t* held_rows::copy(const std::int32_t* sequence, std::int32_t* rows) const {
  for (std::size_t i = 0; i < runs_.size(); i += 2)
    rows = std::copy(sequence + runs_[i], sequence + runs_[i + 1], rows);
  return rows;
}

void write_piece(const piece& from, std::int32_t* inputs, std::int32_t* targets) {
  std::int32_t before = bos;
  for (const char c : from.bytes) {
    *inputs++ = before;
    before = static_cast<unsigned char>(c);
    *targets++ = before;
  }
  if (!from.ends) return;
  *inputs = before;
  *targets = eos;
}

void window_writer::begin() {
  for (auto* each : {&inputs_, &targets_, &positions_}) each->clear();
  ends_.clear();
}

void window_writer::add(const piece& from, std::int64_t at) {
  const auto place = static_cast<std::size_t>(at);
  write_piece(from, &inputs_[place], &targets_[place]);
  std::fill_n(&targets_[place], from.first_counted, not_counted);
}

void window_writer::add(const window& from) {
  const std::int64_t first = windows() * rows_, end = first + rows_;
  const auto rows = static_cast<std::size_t>(end);
  inputs_.resize(rows, pad);
  targets_.resize(rows, not_counted);
  positions_.resize(rows);
  std::int64_t at = first;
  for (std::size_t i = 0; i < from.count; ++i) {
    const piece& each = from.pieces[i];
    add(each, at);
    const std::int64_t last = i + 1 == from.count ? end : at + each.rows();
    std::iota(positions_.begin() + at, positions_.begin() + last, 0);
    ends_.push_back(at = last);
  }
}

void window_writer::copy_symbols(const held_rows& held, std::int32_t* inputs,
                                 std::int32_t* targets) const {
  copy_inputs(held, inputs);
  copy_targets(held, targets);
}

std::int32_t* window_writer::copy_inputs(const held_rows& held, std::int32_t* inputs) const {
  return copy_held(held, inputs_, inputs);
}

void window_writer::copy_targets(const held_rows& held, std::int32_t* targets) const {
  copy_held(held, targets_, targets);
}

void window_writer::copy_positions(const held_rows& held, std::int32_t* positions) const {
  copy_held(held, positions_, positions);
}

}  // namespace decoder
