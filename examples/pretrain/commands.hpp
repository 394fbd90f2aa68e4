// The two things the program does: it trains, or it samples from a checkpoint.
#pragma once

#include "examples/pretrain/arguments.hpp"

namespace pretrain {

// Trains by the given arguments and returns the exit code.
int train(arguments& with);

// Writes the text that follows the prompt to standard output.
void sample(arguments& with);

// The text with which a model of these settings and weights continues a prompt.
std::string sample_from(const stored_weights& saved, const settings& values,
                        const std::string& prompt);

}  // namespace pretrain
