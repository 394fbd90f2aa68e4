// The one function that the synthetic next release adds.
#include "velo/velo.h"

extern "C" velo_status velo_growth_double(int64_t value, int64_t* doubled) {
  if (doubled == nullptr) return VELO_ERR_NULL;
  *doubled = 2 * value;
  return VELO_OK;
}
