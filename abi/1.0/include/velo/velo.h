/* The whole public C interface of velo. Start reading at velo/types.h. */
#ifndef VELO_VELO_H
#define VELO_VELO_H

#include "velo/api.h"
#include "velo/context.h"
#include "velo/introspect.h"
#include "velo/pack.h"
#include "velo/plugin.h"
#include "velo/status.h"
#include "velo/stream.h"
#include "velo/tensor.h"
#include "velo/types.h"

#endif
