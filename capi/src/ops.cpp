// The C entries of all operators, one line each. ops/call/call.hpp has everything that they share.
#include "ops/call/call.hpp"
#include "velo/velo.h"

extern "C" {
#include "abi/generated/op_entries.inc"
}
