// Entries of velo/buckets.h.
#include "velo/buckets.h"

#include <cmath>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/group_of.hpp"
#include "core/handle/guard.hpp"
#include "sched/parallel/data/buckets.hpp"

using namespace velo;
using capi::stream_of;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 24;
constexpr std::uint32_t info_size = 32;
constexpr std::uint32_t bucket_size = 56;
static_assert(sizeof(velo_buckets_desc) >= desc_size && sizeof(velo_buckets_info) >= info_size &&
              sizeof(velo_bucket) >= bucket_size);

sched::buckets& buckets_of(velo_buckets handle) {
  return core::use<sched::buckets>(handle, "buckets");
}

velo_buckets_desc read_desc(const velo_buckets_desc* given) {
  const velo_buckets_desc defaults = VELO_BUCKETS_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_buckets_desc desc = capi::read_struct(given, desc_size, "desc", defaults);
  if (desc.mode != VELO_BUCKETS_ALL_REDUCE && desc.mode != VELO_BUCKETS_REDUCE_SCATTER)
    fail(VELO_ERR_ARGUMENT, "desc.mode", "a VELO_BUCKETS", text("%d", desc.mode));
  if (!std::isfinite(desc.scale))
    fail(VELO_ERR_ARGUMENT, "desc.scale", "a finite number", text("%g", desc.scale));
  return desc;
}

}  // namespace

extern "C" {

velo_status velo_buckets_create(velo_stream stream, velo_group group, const velo_tensor* gradients,
                                const int64_t* counts, int64_t count, const velo_buckets_desc* desc,
                                velo_buckets* buckets) {
  return core::guard("velo_buckets_create", [&](const core::inside_scope& here) {
    core::context& owner = capi::group_of(here, group).owner();
    stream_of(here, stream, owner);
    const velo_buckets_desc given = read_desc(desc);
    capi::required(counts, "counts");
    if (count < 1) fail(VELO_ERR_ARGUMENT, "count", "1 or more", core::number(count));
    capi::required(buckets, "buckets");
    *buckets = core::handle_of(
        core::make_object<sched::buckets>(&owner, stream, group, gradients, counts, count, given));
  });
}

void velo_buckets_destroy(velo_buckets buckets) {
  capi::destroy<sched::buckets>("velo_buckets_destroy", buckets, "buckets");
}

velo_status velo_buckets_ready(velo_buckets buckets, velo_stream stream, int64_t slice) {
  return core::guard("velo_buckets_ready", [&](const core::inside_scope& here) {
    sched::buckets& of = buckets_of(buckets);
    of.ready(stream_of(here, stream, of.owner()), slice);
  });
}

velo_status velo_buckets_finish(velo_buckets buckets, velo_stream stream) {
  return core::guard("velo_buckets_finish", [&](const core::inside_scope& here) {
    sched::buckets& of = buckets_of(buckets);
    of.finish(stream_of(here, stream, of.owner()));
  });
}

velo_status velo_buckets_gather(velo_buckets buckets, velo_stream stream,
                                const velo_tensor* parameters) {
  return core::guard("velo_buckets_gather", [&](const core::inside_scope& here) {
    sched::buckets& of = buckets_of(buckets);
    of.gather(stream_of(here, stream, of.owner()), parameters);
  });
}

velo_status velo_buckets_wait(velo_buckets buckets, velo_stream stream, int64_t slice) {
  return core::guard("velo_buckets_wait", [&](const core::inside_scope& here) {
    sched::buckets& of = buckets_of(buckets);
    of.wait(stream_of(here, stream, of.owner()), slice);
  });
}

velo_status velo_buckets_get_info(velo_buckets buckets, velo_buckets_info* info) {
  return core::guard("velo_buckets_get_info", [&] {
    velo_buckets_info now{};
    buckets_of(buckets).fill(now);
    capi::write_struct(info, info_size, "info", now);
  });
}

velo_status velo_buckets_get_bucket(velo_buckets buckets, int64_t index, velo_bucket* bucket) {
  return core::guard("velo_buckets_get_bucket", [&] {
    velo_bucket now{};
    buckets_of(buckets).fill(index, now);
    capi::write_struct(bucket, bucket_size, "bucket", now);
  });
}
}
