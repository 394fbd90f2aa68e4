/* Every handle type is its own type: a _Generic over all of them compiles only when no two are the
 * same, and picks each by its type. Passing a stream where a context is wanted is then a compiler's
 * warning, not a run's surprise. */
#include "velo/context.h"
#include "velo/introspect.h"
#include "velo/pack.h"
#include "velo/plugin.h"
#include "velo/stream.h"
#include "velo/types.h"

#define KIND(handle)                                                                   \
  _Generic((handle), velo_context : 1, velo_stream : 2, velo_event : 3, velo_pack : 4, \
           velo_kernel : 5, velo_closure : 6, void* : 7)

_Static_assert(KIND((velo_context)0) == 1, "context");
_Static_assert(KIND((velo_stream)0) == 2, "stream");
_Static_assert(KIND((velo_event)0) == 3, "event");
_Static_assert(KIND((velo_pack)0) == 4, "pack");
_Static_assert(KIND((velo_kernel)0) == 5, "kernel");
_Static_assert(KIND((velo_closure)0) == 6, "closure");

/* Without a main of its own this file is compiled, never run. */
int velo_handles_are_distinct(void);
int velo_handles_are_distinct(void) {
  return KIND((velo_stream)0) == 2;
}
