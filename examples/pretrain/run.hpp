// The two things the program does, from settings to exit code.
#pragma once

#include "examples/pretrain/arguments.hpp"

namespace pretrain {

int train(arguments& with);
void sample(arguments& with);  // to standard output

// What the model of a checkpoint writes behind a prompt.
std::string sample_from(const checkpoint_reader& saved, const settings& values,
                        const std::string& prompt);

}  // namespace pretrain
