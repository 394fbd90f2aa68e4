// Entries of velo/plan.h.
#include "velo/plan.h"

#include <limits>

#include "capi/src/allocator.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/pool_request.hpp"
#include "core/handle/guard.hpp"
#include "memory/plan/plan.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 24;
constexpr std::uint32_t options_size = 24;
constexpr std::uint32_t buffer_size = 40;
constexpr std::uint32_t stats_size = 48;
constexpr std::uint32_t use_size = 24;
constexpr std::uint32_t step_size = 112;
constexpr std::uint32_t swap_options_size = 56;
constexpr std::uint32_t swap_size = 56;
constexpr std::uint32_t swap_stats_size = 112;
constexpr std::uint32_t stay_size = 48;
static_assert(sizeof(velo_plan_desc) >= desc_size && sizeof(velo_plan_options) >= options_size &&
              sizeof(velo_plan_buffer) >= buffer_size && sizeof(velo_plan_stats) >= stats_size &&
              sizeof(velo_plan_use_info) >= use_size && sizeof(velo_plan_step) >= step_size &&
              sizeof(velo_swap_options) >= swap_options_size &&
              sizeof(velo_plan_swap) >= swap_size &&
              sizeof(velo_plan_swap_stats) >= swap_stats_size &&
              sizeof(velo_plan_stay) >= stay_size);

constexpr int most_stages = 1 << 20;
constexpr int most_threads = 64;
constexpr std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();

memory::plan& plan_of(velo_plan handle) {
  return core::resolve<memory::plan>(handle, "plan");
}

velo_plan_desc read_desc(const velo_plan_desc* given) {
  const velo_plan_desc defaults = VELO_PLAN_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_plan_desc desc = capi::read_struct(given, desc_size, "desc", defaults);
  if (desc.capacity > most_bytes)
    fail(VELO_ERR_ARGUMENT, "desc.capacity", "less than 2^63", core::number(desc.capacity));
  if (desc.pool != nullptr && core::use<memory::pool>(desc.pool, "desc.pool").is_closed())
    fail(VELO_ERR_HANDLE, "desc.pool", "a pool", "a destroyed pool");
  return desc;
}

velo_plan_options read_options(const velo_plan_options* given) {
  const velo_plan_options defaults = VELO_PLAN_OPTIONS_INIT;
  if (given == nullptr) return defaults;
  const velo_plan_options options = capi::read_struct(given, options_size, "options", defaults);
  if (!(options.seconds >= 0))
    fail(VELO_ERR_ARGUMENT, "options.seconds", "0 or more", text("%g", options.seconds));
  if (options.threads < 1 || options.threads > most_threads)
    fail(VELO_ERR_ARGUMENT, "options.threads", text("1 to %d", most_threads),
         text("%d", options.threads));
  return options;
}

memory::plan_limits limits_of(const velo_plan_options& options) {
  memory::plan_limits limits;
  limits.seconds = options.seconds;
  limits.seed = options.seed;
  limits.threads = options.threads;
  return limits;
}

void require_access(velo_access access) {
  if (access != VELO_ACCESS_READ && access != VELO_ACCESS_WRITE)
    fail(VELO_ERR_ARGUMENT, "access", "VELO_ACCESS_READ or VELO_ACCESS_WRITE", text("%d", access));
}

void require_seconds(double seconds, const char* argument = "seconds") {
  if (!(seconds >= 0 && seconds <= std::numeric_limits<double>::max()))
    fail(VELO_ERR_ARGUMENT, argument, "0 or more, and finite", text("%g", seconds));
}

void require_rate(double rate, const char* argument) {
  if (!(rate > 0 && rate <= std::numeric_limits<double>::max()))
    fail(VELO_ERR_ARGUMENT, argument, "above 0, and finite", text("%g", rate));
}

velo_swap_options read_swap_options(const velo_swap_options* given) {
  const velo_swap_options defaults = VELO_SWAP_OPTIONS_INIT;
  const velo_swap_options o = capi::read_struct(given, swap_options_size, "options", defaults);
  capi::require_range(o.policy, VELO_SWAP_JOINT, "options.policy");
  if (o.budget == 0 || o.budget > most_bytes)
    fail(VELO_ERR_ARGUMENT, "options.budget", "1 to 2^63 - 1", core::number(o.budget));
  if (o.least_bytes > most_bytes)
    fail(VELO_ERR_ARGUMENT, "options.least_bytes", "less than 2^63", core::number(o.least_bytes));
  require_rate(o.out_bytes_per_second, "options.out_bytes_per_second");
  require_rate(o.in_bytes_per_second, "options.in_bytes_per_second");
  require_seconds(o.seconds, "options.seconds");
  capi::require_range(o.release_stages, most_stages, "options.release_stages");
  capi::require_range(o.prefetch_stages, most_stages, "options.prefetch_stages");
  return o;
}

// The deallocate function of velo_plan_allocator. user: the handle.
void deallocate_for_context(void* user, void* memory, uint64_t bytes, const velo_device*,
                            void* stream) {
  velo_plan_free(static_cast<velo_plan>(user), memory, bytes, static_cast<velo_stream>(stream));
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
    const velo_plan_desc given = read_desc(desc);
    *plan = core::handle_of(core::make_object<memory::plan>(
        nullptr, static_cast<std::int64_t>(given.capacity), given.pool));
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
      fail(VELO_ERR_ARGUMENT, "upper", core::concat("above lower, ", lower), core::number(upper));
    const auto most = static_cast<std::uint64_t>(to.most());
    if (bytes == 0 || bytes > most)
      fail(VELO_ERR_ARGUMENT, "bytes", core::concat("1 to ", most), core::number(bytes));
    if (bytes > most_bytes - static_cast<std::uint64_t>(to.bytes()))
      fail(VELO_ERR_ARGUMENT, "bytes", "sizes whose sum is less than 2^63", core::number(bytes));
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
    given.solve(limits_of(read_options(options)));
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
    if (format != VELO_PLAN_SWAPS)
      require_format(format, VELO_PLAN_SVG, "VELO_PLAN_CSV, VELO_PLAN_SVG or VELO_PLAN_SWAPS");
    capi::write_text(from.write(format).c_str(), buffer, capacity, needed);
  });
}

velo_status velo_plan_add_use(velo_plan plan, int64_t index, int64_t time, velo_access access) {
  return core::guard("velo_plan_add_use", [&] {
    memory::plan& to = plan_of(plan);
    require_access(access);
    to.add_use(index, time, access);
  });
}

velo_status velo_plan_add_work(velo_plan plan, int64_t time, double seconds) {
  return core::guard("velo_plan_add_work", [&] {
    memory::plan& to = plan_of(plan);
    require_seconds(seconds);
    to.add_work(time, seconds);
  });
}

velo_status velo_plan_get_use(velo_plan plan, int64_t index, velo_plan_use_info* use) {
  return core::guard("velo_plan_get_use", [&] {
    velo_plan_use_info found{};
    plan_of(plan).fill(index, found);
    capi::write_struct(use, use_size, "use", found);
  });
}

velo_status velo_plan_begin(velo_plan plan, velo_plan_mode mode) {
  return core::guard("velo_plan_begin", [&] {
    memory::plan& of = plan_of(plan);
    if (mode != VELO_PLAN_RECORD && mode != VELO_PLAN_REPLAY)
      fail(VELO_ERR_ARGUMENT, "mode", "VELO_PLAN_RECORD or VELO_PLAN_REPLAY", text("%d", mode));
    of.begin(mode);
  });
}

velo_status velo_plan_end(velo_plan plan) {
  return core::guard("velo_plan_end", [&] { plan_of(plan).end(); });
}

velo_status velo_plan_allocate(velo_plan plan, const velo_pool_request* request, void** memory) {
  return core::guard(
      "velo_plan_allocate",
      [&] {
        memory::plan_steps& from = plan_of(plan).steps();
        const core::inside_scope mine(plan, core::part::given);
        const memory::pool_request what = capi::read_request(request);
        capi::required(memory, "memory");
        *memory = from.allocate(what);
      },
      core::of_operator{});
}

velo_status velo_plan_free(velo_plan plan, void* memory, uint64_t bytes, velo_stream stream) {
  return core::guard(
      "velo_plan_free",
      [&] {
        memory::plan_steps& from = plan_of(plan).steps();
        const core::inside_scope mine(plan, core::part::given);
        if (memory != nullptr) from.free(memory, bytes, stream);
      },
      core::of_operator{});
}

velo_status velo_plan_use(velo_plan plan, const void* memory, velo_access access) {
  return core::guard("velo_plan_use", [&] {
    memory::plan_steps& of = plan_of(plan).steps();
    if (memory == nullptr) fail(VELO_ERR_NULL, "memory", "a pointer", "NULL");
    require_access(access);
    of.use(memory, access);
  });
}

velo_status velo_plan_work(velo_plan plan, double seconds) {
  return core::guard("velo_plan_work", [&] {
    memory::plan_steps& of = plan_of(plan).steps();
    require_seconds(seconds);
    of.work(seconds);
  });
}

velo_status velo_plan_allocator(velo_plan plan, velo_allocator* allocator) {
  return core::guard("velo_plan_allocator", [&] {
    plan_of(plan).steps();
    velo_allocator made = VELO_ALLOCATOR_INIT;
    made.user = plan;
    made.allocate = &capi::allocate_for_context<velo_plan, velo_plan_allocate>;
    made.deallocate = &deallocate_for_context;
    capi::write_struct(allocator, capi::allocator_size, "allocator", made);
  });
}

velo_status velo_plan_get_step(velo_plan plan, velo_plan_step* step) {
  return core::guard("velo_plan_get_step", [&] {
    velo_plan_step now{};
    plan_of(plan).steps().fill(now);
    capi::write_struct(step, step_size, "step", now);
  });
}

velo_status velo_plan_solve_swaps(velo_plan plan, const velo_swap_options* options) {
  return core::guard("velo_plan_solve_swaps", [&] {
    memory::plan& of = plan_of(plan);
    of.solve_swaps(read_swap_options(options));
  });
}

velo_status velo_plan_get_swap_stats(velo_plan plan, velo_plan_swap_stats* stats) {
  return core::guard("velo_plan_get_swap_stats", [&] {
    velo_plan_swap_stats now{};
    plan_of(plan).fill(now);
    capi::write_struct(stats, swap_stats_size, "stats", now);
  });
}

velo_status velo_plan_get_swap(velo_plan plan, int64_t index, velo_plan_swap* swap) {
  return core::guard("velo_plan_get_swap", [&] {
    velo_plan_swap found{};
    plan_of(plan).fill(index, found);
    capi::write_struct(swap, swap_size, "swap", found);
  });
}

velo_status velo_plan_place_swaps(velo_plan plan, const velo_plan_options* options) {
  return core::guard("velo_plan_place_swaps", [&] {
    memory::plan& of = plan_of(plan);
    of.place_swaps(limits_of(read_options(options)));
  });
}

velo_status velo_plan_get_stay(velo_plan plan, int64_t index, velo_plan_stay* stay) {
  return core::guard("velo_plan_get_stay", [&] {
    velo_plan_stay found{};
    plan_of(plan).fill(index, found);
    capi::write_struct(stay, stay_size, "stay", found);
  });
}
}
