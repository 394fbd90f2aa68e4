// The C entries of all operators, one line each: everything they share is ops/call/call.hpp.
#include "ops/call/call.hpp"
#include "velo/velo.h"

extern "C" {
#include "abi/generated/op_entries.inc"
}
