// A timeline as Chrome's trace events, for Perfetto and chrome://tracing. Each rank is a process
// with its actions, its communication, its copies, and counters: activations held, memory by
// category. One more process shows the critical path. Every action is one event with a begin and a
// duration, so no event lacks its end.
//
// Times are microseconds; for simulated timelines one unit of the costs counts as a microsecond.

#include "core/index.hpp"
#include "sched/render/text.hpp"
#include "sched/simulate/critical_path.hpp"
#include "sched/simulate/memory_use.hpp"

namespace velo::sched {
namespace {

constexpr int compute_lane = 0, message_lane = 1, copy_lane = 2;

class trace {
 public:
  explicit trace(const timeline& of)
      : of_(of), spans_(spans_of(of)), held_(*of.of, of.times.scale), use_(of, *spans_) {}

  std::string write() {
    to_.object().member("displayTimeUnit", "ms").line();
    to_.key("otherData").object().member("title", title_of(of_)).end().line();
    to_.key("traceEvents").array();
    for (std::int32_t rank = 0; rank < of_.of->sizes().ranks; ++rank) {
      write_rank(rank);
      write_memory(rank);
    }
    write_path();
    to_.line().end().end();
    return std::move(out_ += '\n');
  }

 private:
  void begin(const char* name, const char* phase, std::int32_t rank, int lane) {
    to_.line().object().member("name", name).member("ph", phase).member("pid", rank);
    to_.member("tid", lane);
  }
  void time(const char* name, std::int64_t ticks) {
    to_.member(name,
               of_.measured != nullptr ? static_cast<double>(ticks) / 1e3 : of_.in_units(ticks));
  }
  // The end of an event with its arguments.
  template <class Value>
  void end_with(const char* name, const Value& value) {
    to_.key("args").object().member(name, value).end().end();
  }

  void write_rank(std::int32_t rank) {
    begin("process_name", "M", rank, compute_lane);
    end_with("name", core::concat("rank ", rank));
    begin("process_sort_index", "M", rank, compute_lane);
    end_with("sort_index", rank);
    for (const auto& [lane, name] :
         {std::pair(compute_lane, "computes"), std::pair(message_lane, "communicates"),
          std::pair(copy_lane, "copies")}) {
      if (lane == copy_lane && !of_.of->has(set_of(VELO_ACTION_OFFLOAD))) continue;
      begin("thread_name", "M", rank, lane);
      end_with("name", name);
    }
    std::size_t index = 0;
    const auto changed = [&](std::int64_t when, const holdings::amounts& now) {
      write_held(rank, when, now.device);
    };
    for (row_reader row(*of_.of, rank); !row.done(); row.pass(), ++index) {
      const action& a = row.next();
      const span& when = (*spans_)[core::at(rank)][index];
      write_action(rank, a, when);
      held_.add(rank, a, when, changed);
    }
    held_.finish(rank, changed);
  }

  void write_action(std::int32_t rank, const action& a, const span& when) {
    begin(text_of(a).c_str(), "X", rank,
          computes(a.kind) ? compute_lane
          : copies(a.kind) ? copy_lane
                           : message_lane);
    to_.member("cat", a.kind == VELO_ACTION_FB ? "FB" : look_of(a.kind).name);
    time("ts", when.begin);
    time("dur", when.end - when.begin);
    to_.key("args").object().member("stage", a.stage);
    if (a.microbatch >= 0) to_.member("microbatch", unit_text(of_.of->sizes(), a.microbatch));
    to_.end().end();
  }

  void write_held(std::int32_t rank, std::int64_t when, std::int64_t held) {
    begin("activations held", "C", rank, compute_lane);
    time("ts", when);
    end_with("micro-batches", of_.in_microbatches(held));
  }

  // Writes memory if the costs state sizes, or if copies go to the host.
  void write_memory(std::int32_t rank) {
    if (!has_sizes(of_) && !of_.of->has(set_of(VELO_ACTION_OFFLOAD))) return;
    const std::vector<memory_amounts> changes = use_.changes(rank);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (i + 1 < changes.size() && changes[i + 1].time == changes[i].time) continue;
      begin("memory", "C", rank, compute_lane);
      time("ts", changes[i].time);
      to_.key("args").object();
      for (std::size_t c = 0; c < categories; ++c) to_.member(category_names[c], changes[i].of[c]);
      to_.end().end();
    }
  }

  void write_path() {
    const std::int32_t process = of_.of->sizes().ranks;
    begin("process_name", "M", process, compute_lane);
    end_with("name", "critical path");
    begin("process_sort_index", "M", process, compute_lane);
    end_with("sort_index", -1);
    for (const path_step& step : critical_path(of_, *spans_)) {
      if (step.wait > 0) {
        begin(cause_name(step.cause), "X", process, compute_lane);
        to_.member("cat", "wait");
        time("ts", step.when.begin - step.wait);
        time("dur", step.wait);
        to_.key("args").object().end().end();
      }
      begin(("rank " + std::to_string(step.rank) + ": " + text_of(step.done)).c_str(), "X", process,
            compute_lane);
      to_.member("cat", "critical path");
      time("ts", step.when.begin);
      time("dur", step.when.end - step.when.begin);
      to_.key("args").object().member("rank", step.rank);
      to_.member("cause", cause_name(step.cause)).end().end();
    }
  }

  const timeline& of_;
  const std::shared_ptr<const spans> spans_;
  holdings held_;
  memory_use use_;
  std::string out_;
  core::json_writer to_{out_, core::json_writer::spacing::wide};
};

}  // namespace

std::string write_trace(const timeline& of) {
  require_drawable(of);
  return trace(of).write();
}

}  // namespace velo::sched
