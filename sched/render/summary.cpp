// Numbers of a timeline, as few digits as say them exactly.
#include "sched/render/text.hpp"

namespace velo::sched {
namespace {

void append_peaks(std::string& to, const timeline& of, const char* separator) {
  for (std::size_t rank = 0; rank < of.times.ranks.size(); ++rank) {
    if (rank > 0) to += separator;
    append_number(to, of.in_microbatches(of.times.ranks[rank].peak));
  }
}

}  // namespace

std::string write_summary_json(const timeline& of) {
  const simulation& times = of.times;
  std::string out = "{\"makespan\": ";
  append_number(out, of.in_units(times.makespan()));
  out += ", \"work\": ";
  append_number(out, of.in_units(times.work()));
  out += ", \"beta\": ";
  append_number(out, of.in_units(times.makespan() - times.work()));
  out += ", \"sigma\": ";
  append_number(out, of.in_units(times.sigma()));
  out += ", \"peak_activations\": [";
  append_peaks(out, of, ", ");
  return out += "]}\n";
}

std::string write_summary(const timeline& of) {
  const simulation& times = of.times;
  const shape& what = of.of->what();
  std::string out = std::to_string(what.ranks) + " ranks, " + std::to_string(what.stages) +
                    " stages, " + std::to_string(what.microbatches) + " micro-batches, " +
                    std::to_string(of.of->actions()) + " actions\n";
  const auto line = [&](const char* name, std::int64_t value, const char* meaning) {
    out += name;
    append_number(out, of.in_units(value));
    out += meaning;
  };
  line("makespan  ", times.makespan(), "\n");
  line("work      ", times.work(), "  of the rank that works least\n");
  line("beta      ", times.makespan() - times.work(), "  makespan - work: the most a rank idles\n");
  line("sigma     ", times.sigma(), "  the same between its own first and last action\n");
  out += "peak activations by rank, in micro-batches of a whole rank:\n ";
  append_peaks(out, of, " ");
  return out += '\n';
}

}  // namespace velo::sched
