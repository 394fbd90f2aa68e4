// How well the model predicts text it was not trained on, in bits a byte.
//
// Each block of the validation text is read through windows that overlap by half: every byte is
// predicted once, and all but a block's first from at least half a window of its past. The ranks of a
// run take blocks in turn. An interrupt ends it within a block.
#pragma once

#include <optional>
#include <string_view>

#include "member.hpp"
#include "model.hpp"

namespace pretrain {

// Of as many windows at a time as `batch` has room for, the same on all ranks, which call it
// together. Nothing when one of them was interrupted.
std::optional<double> validation_bits_per_byte(const member& rank, model& model, activations& batch,
                                               std::string_view text);

}  // namespace pretrain
