// A timeline as Chrome's trace events, for Perfetto and chrome://tracing. Each rank is a process
// with its actions, its communication, its copies, and counters: activations held, memory by
// category. One more process shows the critical path. Every action is one event with a begin and a
// duration, so no event lacks its end.
//
// Times are microseconds; for simulated timelines one unit of the costs counts as a microsecond.

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
    out_ = "{\"displayTimeUnit\": \"ms\",\n\"otherData\": {\"title\": \"" + title_of(of_) +
           "\"},\n\"traceEvents\": [\n";
    for (std::int32_t rank = 0; rank < of_.of->sizes().ranks; ++rank) {
      write_rank(rank);
      write_memory(rank);
    }
    write_path();
    return std::move(out_ += "\n]}\n");
  }

 private:
  void begin(const char* name, const char* phase, std::int32_t rank, int lane) {
    out_ += first_ ? "" : ",\n";
    first_ = false;
    out_ += "{\"name\": \"";
    out_ += name;
    out_ += "\", \"ph\": \"";
    out_ += phase;
    out_ += "\", \"pid\": " + std::to_string(rank) + ", \"tid\": " + std::to_string(lane);
  }
  void time(const char* name, std::int64_t ticks) {
    out_ += ", \"";
    out_ += name;
    out_ += "\": ";
    append_number(out_,
                  of_.measured != nullptr ? static_cast<double>(ticks) / 1e3 : of_.in_units(ticks));
  }

  void write_rank(std::int32_t rank) {
    begin("process_name", "M", rank, compute_lane);
    out_ += ", \"args\": {\"name\": \"rank " + std::to_string(rank) + "\"}}";
    begin("process_sort_index", "M", rank, compute_lane);
    out_ += ", \"args\": {\"sort_index\": " + std::to_string(rank) + "}}";
    for (const auto& [lane, name] :
         {std::pair(compute_lane, "computes"), std::pair(message_lane, "communicates"),
          std::pair(copy_lane, "copies")}) {
      if (lane == copy_lane && !of_.of->has(set_of(VELO_ACTION_OFFLOAD))) continue;
      begin("thread_name", "M", rank, lane);
      out_ += std::string(", \"args\": {\"name\": \"") + name + "\"}}";
    }
    std::size_t index = 0;
    const auto changed = [&](std::int64_t when, const holdings::amounts& now) {
      write_held(rank, when, now.device);
    };
    for (row_reader row(*of_.of, rank); !row.done(); row.pass(), ++index) {
      const action& a = row.next();
      const span& when = (*spans_)[static_cast<std::size_t>(rank)][index];
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
    out_ += ", \"cat\": \"";
    out_ += a.kind == VELO_ACTION_FB ? "FB" : look_of(a.kind).name;
    out_ += '"';
    time("ts", when.begin);
    time("dur", when.end - when.begin);
    out_ += ", \"args\": {\"stage\": " + std::to_string(a.stage);
    if (a.microbatch >= 0)
      out_ += ", \"microbatch\": \"" + unit_text(of_.of->sizes(), a.microbatch) + '"';
    out_ += "}}";
  }

  void write_held(std::int32_t rank, std::int64_t when, std::int64_t held) {
    begin("activations held", "C", rank, compute_lane);
    time("ts", when);
    out_ += ", \"args\": {\"micro-batches\": ";
    append_number(out_, of_.in_microbatches(held));
    out_ += "}}";
  }

  // Writes memory if the costs state sizes, or if copies go to the host.
  void write_memory(std::int32_t rank) {
    if (!has_sizes(of_) && !of_.of->has(set_of(VELO_ACTION_OFFLOAD))) return;
    const std::vector<memory_amounts> changes = use_.changes(rank);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (i + 1 < changes.size() && changes[i + 1].time == changes[i].time) continue;
      begin("memory", "C", rank, compute_lane);
      time("ts", changes[i].time);
      out_ += ", \"args\": {";
      for (std::size_t c = 0; c < categories; ++c) {
        out_ += std::string(c > 0 ? ", \"" : "\"") + category_names[c] + "\": ";
        append_number(out_, changes[i].of[c]);
      }
      out_ += "}}";
    }
  }

  void write_path() {
    const std::int32_t process = of_.of->sizes().ranks;
    begin("process_name", "M", process, compute_lane);
    out_ += ", \"args\": {\"name\": \"critical path\"}}";
    begin("process_sort_index", "M", process, compute_lane);
    out_ += ", \"args\": {\"sort_index\": -1}}";
    for (const path_step& step : critical_path(of_, *spans_)) {
      if (step.wait > 0) {
        begin(cause_name(step.cause), "X", process, compute_lane);
        out_ += ", \"cat\": \"wait\"";
        time("ts", step.when.begin - step.wait);
        time("dur", step.wait);
        out_ += ", \"args\": {}}";
      }
      begin(("rank " + std::to_string(step.rank) + ": " + text_of(step.done)).c_str(), "X", process,
            compute_lane);
      out_ += ", \"cat\": \"critical path\"";
      time("ts", step.when.begin);
      time("dur", step.when.end - step.when.begin);
      out_ += ", \"args\": {\"rank\": " + std::to_string(step.rank) + ", \"cause\": \"" +
              cause_name(step.cause) + "\"}}";
    }
  }

  const timeline& of_;
  const std::shared_ptr<const spans> spans_;
  holdings held_;
  memory_use use_;
  bool first_ = true;
  std::string out_;
};

}  // namespace

std::string write_trace(const timeline& of) {
  require_drawable(of);
  return trace(of).write();
}

}  // namespace velo::sched
