// The contexts entries run in: the host's when it gave one, else the adapters' own, made at the
// first call that needs it.
//
// No lock is held anywhere, so a fork cannot leave one behind: two threads that come first each
// make a context, one wins, the other's is destroyed.
#pragma once

#include <atomic>

#include "velo/context.h"
#include "velo/types.h"

namespace velo::adapters {

velo_context supplied_context();  // nullptr when the host gave none
velo_stream default_stream();     // inline stream of the host's or the own context; throws refusal
velo_stream stream_of(velo_context context);

int processors();  // that this process may use, at least 1

// The context kept in `place`; made from `desc` when there is none.
velo_context keep_one(std::atomic<velo_context>& place, const velo_context_desc* desc);

}  // namespace velo::adapters
