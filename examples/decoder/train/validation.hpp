// How well the model predicts text it was not trained on, in bits a byte.
//
// Each block of the validation text is read through windows that overlap by half: every byte is
// predicted once, and all but a block's first from at least half a window of its past. The copies
// of a model take blocks in turn. An interrupt ends it within a few windows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// Text of which the bytes from `first_counted` on are predicted.
struct window {
  std::string_view bytes;
  std::size_t first_counted;
};

// As symbols, from the start of the batch.
void write_windows(const window* all, std::int64_t count, activations& into);

// nats(windows, count): what at most `at_once` windows of `length` take, as far as this rank
// computes it. The result is the same on all ranks, which call it together. Nothing when one was
// interrupted.
std::optional<double> validation_bits_per_byte(
    const member& rank, std::int64_t length, std::string_view text, std::int64_t at_once,
    const std::function<double(const window*, std::int64_t)>& nats);

}  // namespace decoder
