// Matches goals to rows and prints reached or not. Not hot.
#include "bench/harness/goals.hpp"

#include <jansson.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <stdexcept>

namespace velo::bench {
namespace {

struct release {
  void operator()(json_t* value) const { json_decref(value); }
};
using document = std::unique_ptr<json_t, release>;

std::string text_of(const json_t* object, const char* key) {
  const char* text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

bool field_matches(const json_t* where, const char* key, const std::string& value) {
  const std::string pattern = text_of(where, key);
  if (pattern.empty()) return true;
  if (pattern[0] == '~') return std::regex_search(value, std::regex(pattern.substr(1)));
  return pattern == value;
}

bool row_matches(const json_t* goal, const result& r) {
  const json_t* where = json_object_get(goal, "row");
  return json_integer_value(json_object_get(goal, "threads")) == r.threads &&
         field_matches(where, "name", r.name) && field_matches(where, "dtype", name_of(r.type)) &&
         field_matches(where, "shape", r.shape) && field_matches(where, "residency", r.residency);
}

// The bound for this CPU kind: a number for all, or an object of kinds; 0 when there is none.
double bound_for(const json_t* clause, const std::string& kind) {
  const json_t* bound = json_object_get(clause, "bound");
  return json_number_value(json_is_object(bound) ? json_object_get(bound, kind.c_str()) : bound);
}

double worst(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

// The statistic of the worst pass, and its name for the reader; 0 when it was not measured.
double measure_statistic(const json_t* clause, const result& r, const std::vector<result>& all,
                         std::string& name) {
  const std::string statistic = text_of(clause, "statistic");
  name = statistic;
  if (statistic == "share") {
    double share = HUGE_VAL;
    for (std::size_t pass = 0; pass < std::min(r.rates.size(), r.limits.size()); ++pass)
      share = std::min(share, r.limits[pass] > 0 ? r.rates[pass] / r.limits[pass] : 0);
    return std::isinf(share) ? 0 : share;
  }
  if (statistic == "speedup") {
    for (const result& one : all)
      if (one.threads == 1 && one.name == r.name && one.type == r.type && one.shape == r.shape &&
          one.residency == r.residency)
        return r.rate() / one.rate();
    return 0;
  }
  if (statistic == "nanoseconds")
    return r.p25s.empty() ? 0 : 1e9 * *std::max_element(r.p25s.begin(), r.p25s.end());
  const std::string wanted = text_of(clause, "peer");
  const peer_result* found = wanted == "best" ? r.best_peer() : nullptr;
  for (const peer_result& peer : r.peers)
    if (peer.name == wanted) found = &peer;
  if (!found) return 0;
  name = "ratio to " + found->name;
  return worst(found->ratios);
}

std::string describe(const char* name, double value, double bound) {
  char line[96];
  std::snprintf(line, sizeof line, "%s %.2f, goal %.2f", name, value, bound);
  return line;
}

std::string row_text(const result& r) {
  return r.name + " " + name_of(r.type) + " " + r.shape + " " + std::to_string(r.threads) + "T";
}

// False when no clause has a bound here and a figure to hold against it.
bool judge_row(const json_t* goal, const std::string& kind, const result& r,
               const std::vector<result>& all, judgement& j) {
  verdict best{text_of(goal, "id"), row_text(r), "", 0};
  std::size_t index;
  json_t* clause;
  json_array_foreach(json_object_get(goal, "any"), index, clause) {
    const double bound = bound_for(clause, kind);
    std::string name;
    const double value = bound > 0 ? measure_statistic(clause, r, all, name) : 0;
    if (value <= 0) continue;
    const double fraction = name == "nanoseconds" ? bound / value : value / bound;
    if (!best.measured.empty() && fraction <= best.fraction) continue;
    best.fraction = fraction;
    best.measured = describe(name.c_str(), value, bound);
  }
  if (best.measured.empty()) return false;
  j.verdicts.push_back(best);
  return true;
}

}  // namespace

judgement judge(const std::string& file, const char* list, const std::string& cpu_kind,
                const std::vector<result>& results) {
  json_error_t problem;
  const document parsed(json_load_file(file.c_str(), 0, &problem));
  if (!parsed)
    throw std::runtime_error(file + ":" + std::to_string(problem.line) + ":" +
                             std::to_string(problem.column) + ": " + problem.text);
  judgement j;
  std::size_t index;
  json_t* goal;
  json_array_foreach(json_object_get(parsed.get(), list), index, goal) {
    bool judged = false;
    for (const result& r : results)
      if (row_matches(goal, r)) judged = judge_row(goal, cpu_kind, r, results, j) || judged;
    if (!judged) j.unjudged.push_back(text_of(goal, "id"));
  }
  return j;
}

void print_judgement(FILE* out, const judgement& j) {
  std::size_t reached = 0;
  for (const verdict& v : j.verdicts) {
    const bool good = v.fraction >= 1;
    reached += good;
    std::fprintf(out, "%-11s %-38s %-58s %s (%.0f %%)\n", good ? "reached" : "NOT REACHED",
                 v.goal.c_str(), v.row.c_str(), v.measured.c_str(), 100 * v.fraction);
  }
  std::fprintf(out, "\n%zu of %zu goals reached", reached, j.verdicts.size());
  if (!j.unjudged.empty())
    std::fprintf(out, "; %zu not judged: no row measured, or no bound for this CPU",
                 j.unjudged.size());
  std::fprintf(out, "\n");
}

}  // namespace velo::bench
