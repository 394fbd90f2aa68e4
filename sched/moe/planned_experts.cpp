// Checks of velo_expert_plan_desc, the numbers of a plan, its JSON and its picture.
#include "sched/moe/planned_experts.hpp"

#include <algorithm>
#include <numeric>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/svg.hpp"

namespace velo::sched {

using core::append;
using core::at;
using core::concat;
using core::fail;
using core::number;
using core::text;

namespace {

constexpr std::int64_t most_ranks = 1024, most_places = 65536, most_rows = std::int64_t{1} << 40;

void require(bool holds, const char* field, const text& expected, std::int64_t got) {
  if (!holds) fail(VELO_ERR_ARGUMENT, text("desc.%s", field), expected, number(got));
}

void require_sizes(const velo_expert_plan_desc& d) {
  require(d.ranks >= 1 && d.ranks <= most_ranks, "ranks", concat("1 to ", most_ranks), d.ranks);
  require(d.experts >= 1 && d.experts <= most_places, "experts", concat("1 to ", most_places),
          d.experts);
  const std::int64_t least = (d.experts + d.ranks - 1) / d.ranks, most = most_places / d.ranks;
  require(d.slots >= least && d.slots <= most, "slots",
          concat(least, " to ", most, ", so that ", d.experts, " experts find room on ", d.ranks,
                 " ranks"),
          d.slots);
  if (!(d.tolerance >= 0 && d.tolerance <= 1024))
    fail(VELO_ERR_ARGUMENT, "desc.tolerance", "0 to 1024", text("%g", d.tolerance));
}

std::vector<std::int64_t> read_loads(const velo_expert_plan_desc& d) {
  if (d.loads == nullptr) fail(VELO_ERR_NULL, "desc.loads", "rows of each expert", "NULL");
  for (std::int64_t e = 0; e < d.experts; ++e)
    if (d.loads[e] < 0 || d.loads[e] > most_rows)
      fail(VELO_ERR_ARGUMENT, concat("desc.loads[", e, "]"), concat("0 to ", most_rows),
           number(d.loads[e]));
  return {d.loads, d.loads + d.experts};
}

// The experts of each rank, in rising order.
std::vector<std::vector<int>> read_current(const velo_expert_plan_desc& d) {
  std::vector<std::vector<int>> all;
  if (d.current == nullptr) return all;
  constexpr std::int64_t nowhere = -1;
  std::vector<std::int64_t> lies_on(at(d.experts), nowhere);  // the last rank
  for (std::int64_t rank = 0; rank < d.ranks; ++rank) {
    auto& own = all.emplace_back();
    for (std::int64_t i = rank * d.slots; i < (rank + 1) * d.slots; ++i) {
      const std::int64_t e = d.current[i];
      if (e < -1 || e >= d.experts)
        fail(VELO_ERR_ARGUMENT, concat("desc.current[", i, "]"),
             concat("-1 to ", d.experts - 1, ", an expert or none"), number(e));
      if (e < 0) continue;
      if (lies_on[at(e)] == rank)
        fail(VELO_ERR_ARGUMENT, concat("desc.current[", i, "]"),
             concat("an expert once on rank ", rank), concat("expert ", e, " again"));
      own.push_back(static_cast<int>(e));
      lies_on[at(e)] = rank;
    }
    std::sort(own.begin(), own.end());
  }
  const auto absent = std::find(lies_on.begin(), lies_on.end(), nowhere);
  if (absent != lies_on.end())
    fail(VELO_ERR_ARGUMENT, "desc.current", "every expert on some rank",
         concat("expert ", absent - lies_on.begin(), " on none"));
  return all;
}

// Checked in this order, so that lists are read only with sizes that make sense.
std::vector<std::int64_t> checked_loads(const velo_expert_plan_desc& d) {
  require_sizes(d);
  return read_loads(d);
}

void write_lists(core::json_writer& to, const char* key, const std::vector<std::vector<int>>& of) {
  to.line(" ").key(key).array();
  for (const auto& list : of) {
    to.array();
    for (const int each : list) to.value(each);
    to.end();
  }
  to.end();
}

}  // namespace

planned_experts::planned_experts(const velo_expert_plan_desc& desc)
    : loads_(checked_loads(desc)),
      current_(read_current(desc)),
      plan_(place_experts(loads_, desc.ranks, desc.slots, desc.tolerance, current_)),
      ranks_of_(plan_.ranks_of(experts())),
      rows_(rows_by_rank(plan_, loads_)) {}

const std::vector<int>& planned_experts::experts_of(std::int64_t rank) const {
  return plan_.placed[at(rank)];
}
const std::vector<int>& planned_experts::ranks_of(std::int64_t expert) const {
  return ranks_of_[at(expert)];
}

std::int64_t planned_experts::count_moved() const {
  std::int64_t moved = 0;
  for (std::size_t rank = 0; rank < current_.size(); ++rank)
    for (const int e : plan_.placed[rank])
      moved += std::binary_search(current_[rank].begin(), current_[rank].end(), e) ? 0 : 1;
  return moved;
}

void planned_experts::describe(velo_expert_plan_info& to) const {
  to.kept = current_ == plan_.placed ? 1 : 0;
  to.ranks = plan_.ranks, to.slots = plan_.slots, to.experts = experts();
  to.copies = 0;
  for (const auto& own : plan_.placed) to.copies += static_cast<std::int64_t>(own.size());
  to.moved = count_moved();
  to.rows = std::accumulate(loads_.begin(), loads_.end(), std::int64_t{0});
  to.busiest = *std::max_element(rows_.begin(), rows_.end());
  to.idlest = *std::min_element(rows_.begin(), rows_.end());
}

std::string planned_experts::json() const {
  velo_expert_plan_info info{};
  describe(info);
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  to.object().member("ranks", info.ranks).member("slots", info.slots);
  to.member("experts", info.experts).member("copies", info.copies).member("moved", info.moved);
  to.member("kept", info.kept != 0).line(" ").key("rows").array();
  for (const std::int64_t rows : rows_) to.value(rows);
  to.end();
  write_lists(to, "placement", plan_.placed);
  write_lists(to, "ranks_of", ranks_of_);
  to.end();
  return out + "\n";
}

// A bar for each rank, its experts from below in rising order; a line at the mean.
std::string planned_experts::picture() const {
  constexpr double width = 720, height = 320, left = 60, top = 60;
  constexpr int most_parts = 20000;
  velo_expert_plan_info info{};
  describe(info);
  const double bar = width / static_cast<double>(info.ranks),
               unit = height / static_cast<double>(std::max<std::int64_t>(info.busiest, 1)),
               mean = static_cast<double>(info.rows) / static_cast<double>(info.ranks);
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"13\">\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
         "<text x=\"%.0f\" y=\"26\" font-size=\"16\">Rows by rank, colored by expert: busiest "
         "%lld, mean %.0f</text>\n",
         left + width + 40, top + height + 50, left, static_cast<long long>(info.busiest), mean);
  int parts = 0;
  for (std::int64_t rank = 0; rank < info.ranks; ++rank) {
    const double x = left + bar * static_cast<double>(rank);
    double y = top + height;
    for (const int e : experts_of(rank)) {
      const auto& its = ranks_of(e);
      const auto copy = std::find(its.begin(), its.end(), rank) - its.begin();
      const std::int64_t rows =
          rows_of_copy(loads_[at(e)], copy, static_cast<std::int64_t>(its.size()));
      if (rows == 0 || ++parts > most_parts) continue;
      const double tall = static_cast<double>(rows) * unit;
      y -= tall;
      append(out,
             "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
             "stroke=\"#fff\" stroke-width=\"0.5\"><title>rank %lld, expert %d: %lld "
             "rows</title></rect>\n",
             x, y, 0.9 * bar, tall, core::svg::fill(static_cast<std::uint64_t>(e)).c_str(),
             static_cast<long long>(rank), e, static_cast<long long>(rows));
      if (tall > 14 && bar > 24)
        append(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>\n",
               x + 0.45 * bar, y + tall / 2 + 4, e);
    }
    if (bar > 24)
      append(out, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%lld</text>\n",
             x + 0.45 * bar, top + height + 18, static_cast<long long>(rank));
  }
  append(out,
         "<path d=\"M%.0f %.2fh%.0f\" stroke=\"#333\" stroke-dasharray=\"4\"/>\n"
         "<text x=\"%.0f\" y=\"%.0f\">rank</text>\n</svg>\n",
         left, top + height - mean * unit, width, left, top + height + 38);
  return out;
}

}  // namespace velo::sched
