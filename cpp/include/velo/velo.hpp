// The whole C++ interface of velo: header-only, C++17, over the C interface of velo/velo.h.
//
// Owners (context, stream, event, pool, adaptor, plan, recompute, recompute_plan, swap_space,
// group, collective, topology, sharding, sequence_plan, buckets, dispatcher, routing, expert_plan,
// sublayers, schedule, timeline, tuning, mailbox, executor, pack, managed_tensor, kernel, closure,
// profiler) are move-only and one pointer wide; views (stream_ref, tensor_view) borrow. A failure
// throws velo::error, or returns velo::result<T> without exceptions. The library itself sees only
// the C functions. Start with examples/cpp/hello.cpp.
#pragma once

#include "velo/adaptor.hpp"
#include "velo/bfloat16.hpp"
#include "velo/buckets.hpp"
#include "velo/collective.hpp"
#include "velo/context.hpp"
#include "velo/dispatcher.hpp"
#include "velo/dynamic.hpp"
#include "velo/error.hpp"
#include "velo/event.hpp"
#include "velo/executor.hpp"
#include "velo/expert_plan.hpp"
#include "velo/group.hpp"
#include "velo/host.hpp"
#include "velo/introspect.hpp"
#include "velo/ops.hpp"
#include "velo/pack.hpp"
#include "velo/plan.hpp"
#include "velo/plugin.hpp"
#include "velo/pool.hpp"
#include "velo/profiler.hpp"
#include "velo/recompute.hpp"
#include "velo/recompute_plan.hpp"
#include "velo/result.hpp"
#include "velo/schedule.hpp"
#include "velo/sequence_plan.hpp"
#include "velo/sharding.hpp"
#include "velo/stream.hpp"
#include "velo/sublayers.hpp"
#include "velo/swap.hpp"
#include "velo/tensor.hpp"
#include "velo/topology.hpp"
#include "velo/tune.hpp"
