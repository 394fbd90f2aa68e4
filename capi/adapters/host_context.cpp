// One atomic pointer per context; see the header.
#include "capi/adapters/host_context.hpp"

#include <sched.h>

#include <algorithm>

#include "capi/adapters/failure.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

std::atomic<velo_context> supplied{nullptr};
std::atomic<velo_context> own{nullptr};

velo_context current() {
  const velo_context given = supplied.load();
  return given != nullptr ? given : keep_one(own, nullptr);
}

}  // namespace

velo_context keep_one(std::atomic<velo_context>& place, const velo_context_desc* desc) {
  velo_context kept = place.load();
  if (kept != nullptr) return kept;
  velo_context made = nullptr;
  require(velo_context_create(desc, &made));
  if (place.compare_exchange_strong(kept, made)) return made;
  velo_context_destroy(made);
  return kept;
}

velo_context supplied_context() {
  return supplied.load();
}

velo_stream stream_of(velo_context context) {
  velo_stream stream = nullptr;
  require(velo_context_stream(context, &stream));
  return stream;
}

velo_stream default_stream() {
  return stream_of(current());
}

int processors() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_adapters_set_context(velo_context context) {
  supplied = context;
  return VELO_OK;
}

velo_status velo_adapters_context(velo_context* context) {
  if (context == nullptr) return VELO_ERR_NULL;
  refusal failed;
  return attempt({"velo_adapters_context"}, failed, [&] { *context = current(); });
}
