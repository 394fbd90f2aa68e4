// Validation: how well the model predicts text that it was not trained on, in bits a byte.
//
// Each block of the validation text, or each document, is read through windows that overlap by
// half: every byte is predicted once, and all but its first from at least half a window of context.
// Documents shorter than a window are packed. The copies of a model take blocks or documents in
// turn. An interrupt ends it within a few windows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/data/packing.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// nats(windows, count) returns the sum of the losses of at most `at_once` windows of `length`, as
// far as this rank computes it. All ranks call this together and get the same result; nothing after
// an interrupt.
std::optional<double> validation_bits_per_byte(
    const member& rank, std::int64_t length, const corpus& text, std::int64_t at_once,
    const std::function<double(const window*, std::int64_t)>& nats);

}  // namespace decoder
