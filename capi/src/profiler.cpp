// Entries of velo/profiler.h.
#include "velo/profiler.h"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/profile/profiler.hpp"
#include "core/text/sink.hpp"
#include "core/text/utf8.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// Of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 32, stats_size = 40, event_size = 64;
static_assert(sizeof(velo_profiler_desc) >= desc_size);
static_assert(sizeof(velo_profiler_stats) >= stats_size);
static_assert(sizeof(velo_profiler_event) >= event_size);

constexpr std::uint64_t most_events = std::uint64_t{1} << 24;
constexpr std::uint32_t longest_text = 63;  // bytes

core::profiler& profiler_of(velo_profiler profiler) {
  return core::use<core::profiler>(profiler, "profiler");
}

void require_text(const char* given, const char* argument) {
  if (strnlen(given, longest_text + 1) > longest_text)
    fail(VELO_ERR_ARGUMENT, argument, text("at most %u bytes", longest_text), "more");
  core::require_text(given, argument);
}

velo_profiler_desc read(const velo_profiler_desc* given) {
  const velo_profiler_desc desc =
      capi::read_struct(given, desc_size, "desc", velo_profiler_desc VELO_PROFILER_DESC_INIT);
  if (desc.level < VELO_PROFILER_TIMES || desc.level > VELO_PROFILER_WAITS)
    fail(VELO_ERR_ARGUMENT, "desc.level",
         "VELO_PROFILER_TIMES, VELO_PROFILER_WORK or VELO_PROFILER_WAITS", text("%d", desc.level));
  if (desc.rank < 0) fail(VELO_ERR_ARGUMENT, "desc.rank", "0 or more", text("%d", desc.rank));
  if (desc.events < 1 || desc.events > most_events)
    fail(VELO_ERR_ARGUMENT, "desc.events", core::concat("1 to ", most_events),
         core::number(desc.events));
  if (desc.label != nullptr) require_text(desc.label, "desc.label");
  return desc;
}

}  // namespace

extern "C" {

velo_status velo_profiler_create(velo_context context, const velo_profiler_desc* desc,
                                 velo_profiler* profiler) {
  return core::guard("velo_profiler_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    const velo_profiler_desc given = read(desc);
    capi::required(profiler, "profiler");
    *profiler = core::handle_of(core::make_object<core::profiler>(&owner, owner, given));
  });
}

void velo_profiler_destroy(velo_profiler profiler) {
  capi::destroy<core::profiler>("velo_profiler_destroy", profiler, "profiler");
}

velo_status velo_profiler_begin(velo_profiler profiler, const char* text) {
  return core::guard("velo_profiler_begin", [&] {
    core::profiler& of = profiler_of(profiler);
    if (text == nullptr) fail(VELO_ERR_NULL, "text", "a text", "NULL");
    require_text(text, "text");
    of.begin(text);
  });
}

velo_status velo_profiler_end(velo_profiler profiler) {
  return core::guard("velo_profiler_end", [&] { profiler_of(profiler).end(); });
}

velo_status velo_profiler_stop(velo_profiler profiler) {
  return core::guard("velo_profiler_stop", [&] { profiler_of(profiler).stop(); });
}

velo_status velo_profiler_get_stats(velo_profiler profiler, velo_profiler_stats* stats) {
  return core::guard("velo_profiler_get_stats", [&] {
    velo_profiler_stats now{};
    profiler_of(profiler).fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}

velo_status velo_profiler_get_event(velo_profiler profiler, int64_t index,
                                    velo_profiler_event* event) {
  return core::guard("velo_profiler_get_event", [&] {
    const core::profiler& of = profiler_of(profiler);
    capi::struct_size(event, event_size, "event");
    velo_profiler_event found{};
    of.fill(index, found);
    capi::write_struct(event, event_size, "event", found);
  });
}

velo_status velo_profiler_write(velo_profiler profiler, velo_profiler_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_profiler_write", [&] {
    const core::profiler& of = profiler_of(profiler);
    if (format != VELO_PROFILER_TRACE && format != VELO_PROFILER_EVENTS)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_PROFILER_TRACE or VELO_PROFILER_EVENTS",
           text("%d", format));
    const std::string all = format == VELO_PROFILER_TRACE ? of.trace() : of.trace_events();
    capi::write_text(all.c_str(), buffer, capacity, needed);
  });
}

velo_status velo_profiler_save(velo_profiler profiler, const char* path) {
  return core::guard("velo_profiler_save", [&] {
    const core::profiler& of = profiler_of(profiler);
    if (path == nullptr) fail(VELO_ERR_NULL, "path", "a path", "NULL");
    const std::string all = of.trace();
    core::file_sink to(path);
    to.put(all);
    to.finish();
  });
}
}
