// The one function that the synthetic release 1.1 adds.
#include "velo/velo.h"

extern "C" velo_status velo_growth_double(int64_t value, int64_t* doubled) {
  if (doubled == nullptr) return VELO_ERR_NULL;
  *doubled = 2 * value;
  return VELO_OK;
}
