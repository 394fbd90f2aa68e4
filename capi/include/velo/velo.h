/* The whole public C interface of velo. Start reading at velo/types.h. */
#ifndef VELO_VELO_H
#define VELO_VELO_H

#include "velo/api.h"

#endif
