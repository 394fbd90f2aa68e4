// Entries of velo/history.h.
#include "velo/history.h"

#include "capi/src/boundary.hpp"
#include "capi/src/pool_of.hpp"
#include "core/handle/guard.hpp"
#include "core/text/sink.hpp"
#include "core/text/utf8.hpp"

using namespace velo;
using capi::pool_of;
using core::fail;
using core::text;

namespace {

constexpr std::uint32_t stats_size = 32;  // of ABI 1.0; later ones are longer
static_assert(sizeof(velo_pool_stream_stats) >= stats_size);

constexpr std::uint64_t most_events = std::uint64_t{1} << 24;

void require_format(velo_snapshot_format format) {
  if (format < VELO_SNAPSHOT_JSON || format > VELO_SNAPSHOT_TIMELINE)
    fail(VELO_ERR_ARGUMENT, "format",
         "VELO_SNAPSHOT_JSON, VELO_SNAPSHOT_PICKLE or VELO_SNAPSHOT_TIMELINE", text("%d", format));
}

void require_text(const char* given) {
  if (given == nullptr) fail(VELO_ERR_NULL, "text", "a text", "NULL");
  if (strnlen(given, memory::longest_note + 1) > memory::longest_note)
    fail(VELO_ERR_ARGUMENT, "text", text("at most %u bytes", memory::longest_note), "more");
  core::require_text(given, "text");
}

void write(const memory::snapshot& what, velo_snapshot_format format, core::sink& to) {
  switch (format) {
    case VELO_SNAPSHOT_JSON:
      return memory::write_json(what, to);
    case VELO_SNAPSHOT_PICKLE:
      return memory::write_pickle(what, to);
    default:
      return to.put(memory::draw_timeline(what));
  }
}

}  // namespace

extern "C" {

velo_status velo_pool_record(velo_pool pool, uint64_t events) {
  return core::guard("velo_pool_record", [&] {
    memory::pool& of = pool_of(pool);
    if (events > most_events)
      fail(VELO_ERR_ARGUMENT, "events", core::concat("at most ", most_events),
           core::number(events));
    of.record(events);
  });
}

velo_status velo_pool_note(velo_pool pool, const void* memory, const char* text) {
  return core::guard("velo_pool_note", [&] {
    memory::pool& of = pool_of(pool);
    require_text(text);
    of.annotate(memory, text);
  });
}

velo_status velo_pool_snapshot(velo_pool pool, velo_snapshot_format format, char* buffer,
                               uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_pool_snapshot", [&] {
    memory::pool& of = pool_of(pool);
    require_format(format);
    if (buffer == nullptr && capacity > 0)
      fail(VELO_ERR_NULL, "buffer", "a buffer of `capacity` bytes", "NULL");
    core::buffer_sink to(buffer, capacity);
    write(of.take_snapshot(), format, to);
    const std::uint64_t all = to.finish();
    if (needed != nullptr) *needed = all;
  });
}

velo_status velo_pool_save(velo_pool pool, velo_snapshot_format format, const char* path) {
  return core::guard("velo_pool_save", [&] {
    memory::pool& of = pool_of(pool);
    require_format(format);
    if (path == nullptr) fail(VELO_ERR_NULL, "path", "a path", "NULL");
    core::file_sink to(path);
    write(of.take_snapshot(), format, to);
    to.finish();
  });
}

velo_status velo_pool_get_stream_stats(velo_pool pool, velo_stream stream,
                                       velo_pool_stream_stats* stats) {
  return core::guard("velo_pool_get_stream_stats", [&] {
    memory::pool& of = pool_of(pool);
    const bool queued = memory::queued_stream(stream, "stream") != nullptr;
    velo_pool_stream_stats now{};
    of.fill(queued ? stream : nullptr, now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
