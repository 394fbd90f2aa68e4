// Entries of velo/plan.h.
#include "velo/plan.h"

#include <cmath>
#include <limits>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/guard.hpp"
#include "memory/plan_object.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 16;
constexpr std::uint32_t options_size = 24;
constexpr std::uint32_t buffer_size = 40;
constexpr std::uint32_t stats_size = 40;
static_assert(sizeof(velo_plan_desc) >= desc_size && sizeof(velo_plan_options) >= options_size &&
              sizeof(velo_plan_buffer) >= buffer_size && sizeof(velo_plan_stats) >= stats_size);

constexpr std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();

memory::plan& plan_of(velo_plan handle) {
  return core::resolve<memory::plan>(handle, "plan");
}

std::int64_t capacity_of(const velo_plan_desc* given) {
  const velo_plan_desc defaults = VELO_PLAN_DESC_INIT;
  if (given == nullptr) return 0;
  const std::uint64_t capacity = capi::read_struct(given, desc_size, "desc", defaults).capacity;
  if (capacity > most_bytes)
    fail(VELO_ERR_ARGUMENT, "desc.capacity", "less than 2^63",
         text("%llu", static_cast<unsigned long long>(capacity)));
  return static_cast<std::int64_t>(capacity);
}

velo_plan_options read_options(const velo_plan_options* given) {
  const velo_plan_options defaults = VELO_PLAN_OPTIONS_INIT;
  if (given == nullptr) return defaults;
  const velo_plan_options options = capi::read_struct(given, options_size, "options", defaults);
  if (!(options.seconds >= 0))
    fail(VELO_ERR_ARGUMENT, "options.seconds", "0 or more", text("%g", options.seconds));
  return options;
}

void require_format(velo_plan_format format, velo_plan_format other, const char* expected) {
  if (format != VELO_PLAN_CSV && format != other)
    fail(VELO_ERR_ARGUMENT, "format", expected, text("%d", format));
}

}  // namespace

extern "C" {

velo_status velo_plan_create(const velo_plan_desc* desc, velo_plan* plan) {
  return core::guard("velo_plan_create", [&] {
    capi::required(plan, "plan");
    *plan = core::handle_of(core::make_object<memory::plan>(nullptr, capacity_of(desc)));
  });
}

void velo_plan_destroy(velo_plan plan) {
  capi::destroy<memory::plan>("velo_plan_destroy", plan, "plan");
}

velo_status velo_plan_add(velo_plan plan, int64_t lower, int64_t upper, uint64_t bytes,
                          int64_t* index) {
  return core::guard("velo_plan_add", [&] {
    memory::plan& to = plan_of(plan);
    if (upper <= lower)
      fail(VELO_ERR_ARGUMENT, "upper", text("above lower, %lld", static_cast<long long>(lower)),
           text("%lld", static_cast<long long>(upper)));
    const auto most = static_cast<std::uint64_t>(to.most());
    if (bytes == 0 || bytes > most)
      fail(VELO_ERR_ARGUMENT, "bytes", text("1 to %llu", static_cast<unsigned long long>(most)),
           text("%llu", static_cast<unsigned long long>(bytes)));
    if (bytes > most_bytes - static_cast<std::uint64_t>(to.bytes()))
      fail(VELO_ERR_ARGUMENT, "bytes", "sizes whose sum is less than 2^63",
           text("%llu", static_cast<unsigned long long>(bytes)));
    const std::int64_t added = to.add(lower, upper, static_cast<std::int64_t>(bytes));
    if (index != nullptr) *index = added;
  });
}

velo_status velo_plan_read(velo_plan plan, velo_plan_format format, const char* text,
                           uint64_t length) {
  return core::guard("velo_plan_read", [&] {
    memory::plan& to = plan_of(plan);
    require_format(format, VELO_PLAN_RMM_LOG, "VELO_PLAN_CSV or VELO_PLAN_RMM_LOG");
    if (text == nullptr) fail(VELO_ERR_NULL, "text", "a text", "NULL");
    to.read(format, {text, length});
  });
}

velo_status velo_plan_solve(velo_plan plan, const velo_plan_options* options) {
  return core::guard("velo_plan_solve", [&] {
    memory::plan& given = plan_of(plan);
    const velo_plan_options how = read_options(options);
    given.solve(how.seconds, how.seed);
  });
}

velo_status velo_plan_get_buffer(velo_plan plan, int64_t index, velo_plan_buffer* buffer) {
  return core::guard("velo_plan_get_buffer", [&] {
    velo_plan_buffer found{};
    plan_of(plan).fill(index, found);
    capi::write_struct(buffer, buffer_size, "buffer", found);
  });
}

velo_status velo_plan_get_stats(velo_plan plan, velo_plan_stats* stats) {
  return core::guard("velo_plan_get_stats", [&] {
    velo_plan_stats now{};
    plan_of(plan).fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}

velo_status velo_plan_write(velo_plan plan, velo_plan_format format, char* buffer,
                            uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_plan_write", [&] {
    const memory::plan& from = plan_of(plan);
    require_format(format, VELO_PLAN_SVG, "VELO_PLAN_CSV or VELO_PLAN_SVG");
    capi::write_text(from.write(format).c_str(), buffer, capacity, needed);
  });
}
}
