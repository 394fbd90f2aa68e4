// The two things the program does, from settings to exit code.
#pragma once

#include "arguments.hpp"

namespace pretrain {

int train(arguments& with);
int sample(arguments& with);

}  // namespace pretrain
