// Reading field by field, then finding out what the fields are a schedule of.
#include "sched/csv.hpp"

#include <algorithm>
#include <utility>

#include "core/failure.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;
using list = std::vector<action>;

[[noreturn]] void refuse(std::size_t line, std::size_t column, const char* expected,
                         std::string_view got) {
  const int length = static_cast<int>(std::min<std::size_t>(got.size(), 80));
  fail(VELO_ERR_ARGUMENT, text("text, line %zu, column %zu", line, column), expected,
       text("%.*s", length, got.data()));
}

list read_row(std::string_view row, std::size_t line) {
  list actions;
  for (std::size_t begin = 0; begin <= row.size();) {
    const std::size_t comma = std::min(row.find(',', begin), row.size());
    std::string_view field = row.substr(begin, comma - begin);
    std::size_t column = begin + 1;
    for (; !field.empty() && field.front() == ' '; ++column) field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    begin = comma + 1;
    if (field.empty()) continue;
    action read{};
    if (!parse(field, read)) refuse(line, column, "an action, as 2F0", field);
    actions.push_back(read);
  }
  return actions;
}

std::vector<list> read_rows(std::string_view left) {
  std::vector<list> rows;
  for (std::size_t line = 1; !left.empty(); ++line) {
    const std::size_t end = left.find('\n');
    std::string_view row = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    if (rows.size() == static_cast<std::size_t>(most_ranks))
      refuse(line, 1, text("at most %d rows", most_ranks), row);
    rows.push_back(read_row(row, line));
  }
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  return rows;
}

// Whether micro-batches come in from both ends, each end with stages of its own: stages are down the
// ranks and up again, and the last rank begins with the first stage on the way up.
bool has_two_chains(const shape& what, const std::vector<std::vector<std::int32_t>>& stages,
                    const std::vector<list>& rows) {
  if (what.ranks == 0 || what.stages != 2 * what.ranks || rows.back().empty()) return false;
  return rows.back()[0].stage == what.ranks && stages == place_in_v(what.ranks, 2);
}

// The schedule that rows make: its sizes, and where its stages are.
schedule assemble(std::vector<list> rows) {
  shape what;
  what.ranks = static_cast<std::int32_t>(rows.size());
  std::int64_t actions = 0;
  for (const list& row : rows) {
    actions += static_cast<std::int64_t>(row.size());
    for (const action& a : row) {
      what.stages = std::max({what.stages, a.stage + 1, a.other_stage + 1});
      what.microbatches = std::max({what.microbatches, a.microbatch + 1, a.other_microbatch + 1});
    }
  }
  if (what.cells() > std::min(most_cells, 16 * actions + 1024))
    fail(VELO_ERR_ARGUMENT, "text", "actions of most stages and micro-batches up to the highest",
         text("%lld actions, stages up to %d, micro-batches up to %d",
              static_cast<long long>(actions), what.stages - 1, what.microbatches - 1));
  std::vector<std::vector<std::int32_t>> stages(what.ranks);
  std::vector<bool> placed(what.stages);
  const auto place = [&](std::int32_t rank, std::int32_t stage) {
    if (stage < 0 || placed[stage]) return;
    placed[stage] = true;
    stages[rank].push_back(stage);
  };
  for (std::int32_t rank = 0; rank < what.ranks; ++rank) {
    for (const action& a : rows[rank]) {
      place(rank, a.stage);
      place(rank, a.other_stage);
    }
    std::sort(stages[rank].begin(), stages[rank].end());
  }
  if (has_two_chains(what, stages, rows)) {
    what.chains = 2;
    what.microbatches *= 2;
  }
  return {what, std::move(stages), {rows.begin(), rows.end()}};
}

}  // namespace

schedule read_csv(std::string_view text) {
  return assemble(read_rows(text));
}

std::string write_csv(const schedule& what) {
  std::string out;
  for (std::int32_t rank = 0; rank < what.what().ranks; ++rank) {
    const std::size_t begin = out.size();
    for (row_reader row(what, rank); !row.done(); row.pass()) {
      if (out.size() > begin) out += ',';
      append(out, row.next());
    }
    out += '\n';
  }
  return out;
}

}  // namespace velo::sched
