// The two things the program does, from settings to exit code.
#pragma once

#include "arguments.hpp"

namespace pretrain {

int train(arguments& with);
void sample(arguments& with);  // to standard output

}  // namespace pretrain
