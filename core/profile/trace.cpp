// A profile as Chrome's trace events, which Perfetto reads: one process, a track a thread.
//
// Times are in microseconds. Waits in a queue overlap with the work of their thread, so they are
// asynchronous events, which have tracks of their own.
// Source: the Trace Event Format, github.com/google/trace-viewer.
#include <utility>

#include "core/profile/profiler.hpp"
#include "core/text/json_writer.hpp"

namespace velo::core {
namespace {

const char* category_of(profiled kind) {
  switch (kind) {
    case profiled::operator_call:
      return "operator";
    case profiled::collective:
      return "collective";
    case profiled::range:
      return "range";
    case profiled::wait:
      return "wait";
    default:
      return "failed";
  }
}

// Writes the events of a process one after another, a line each.
class event_lines {
 public:
  event_lines(const recorder& of, int rank) : of_(of), rank_(rank) {}

  void name(const char* what, std::int32_t thread, const std::string& name) {
    json_writer to(begin());
    to.object().member("ph", "M").member("pid", rank_).member("tid", thread).member("name", what);
    to.key("args").object().member("name", name).end().end();
  }

  void add(const profile_event& e) {
    if (e.kind != profiled::wait || detail_of(e)[0] == '\0') return complete(e);
    half(e, "b", e.begin);
    half(e, "e", e.end);
    ++queued_;
  }

  std::string text;

 private:
  std::string& begin() {
    if (!text.empty()) text += ",\n";
    return text;
  }
  double microseconds(std::uint64_t ticks) const {
    return static_cast<double>(of_.ns_at(ticks)) / 1e3;
  }

  void complete(const profile_event& e) {
    json_writer to(begin());
    const double from = microseconds(e.begin);
    to.object().member("ph", "X").member("pid", rank_).member("tid", e.thread);
    to.key("ts").value(from, 16).key("dur").value(microseconds(e.end) - from, 9);
    to.member("cat", category_of(e.kind)).member("name", name_of(e));
    arguments(to, e);
    to.end();
  }

  static void arguments(json_writer& to, const profile_event& e) {
    const bool is_operator = e.kind == profiled::operator_call;
    to.key("args").object();
    if (detail_of(e)[0] != '\0') to.member(is_operator ? "kernel" : "group", detail_of(e));
    if (e.flops > 0) to.member("flops", e.flops);
    if (e.bytes > 0) to.member("bytes", e.bytes);
    to.end();
  }

  // The begin or the end of an asynchronous event.
  void half(const profile_event& e, const char* which, std::uint64_t ticks) {
    json_writer to(begin());
    to.object().member("ph", which).member("pid", rank_).member("tid", e.thread);
    to.member("id", queued_).key("ts").value(microseconds(ticks), 16);
    to.member("cat", name_of(e)).member("name", detail_of(e)).end();
  }

  const recorder& of_;
  const int rank_;
  std::uint64_t queued_ = 0;
};

}  // namespace

std::string profiler::trace_events() const {
  require_stopped();
  event_lines lines(events_, rank_);
  lines.name("process_name", 0, label_);
  for (const recorder::thread_name& each : events_.threads())
    lines.name("thread_name", each.thread, each.name);
  for (std::uint64_t i = 0; i < events_.kept(); ++i)
    lines.add(events_.events()[static_cast<std::size_t>(i)]);
  return std::move(lines.text);
}

std::string profiler::trace() const {
  return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n" + trace_events() + "\n]}\n";
}

}  // namespace velo::core
