// Reading field by field.
#include "sched/schedule/csv.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/text/utf8.hpp"
#include "sched/schedule/assemble.hpp"

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

// PyTorch writes waits for a rank's own sends and reductions, as 1WAIT_SEND_F3. The sends imply
// them.
bool is_wait(std::string_view field) {
  constexpr std::string_view digits = "0123456789";
  const std::size_t begin = std::min(field.find_first_not_of(digits), field.size());
  const std::string_view behind = field.substr(begin);
  const std::string_view name = behind.substr(0, behind.find_last_not_of(digits) + 1);
  return begin > 0 &&
         (name == "WAIT_SEND_F" || name == "WAIT_SEND_B" || name == "WAIT_REDUCE_GRAD");
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
    if (field.empty() || is_wait(field)) continue;
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

}  // namespace

schedule read_csv(std::string_view text) {
  core::require_lines(text, "text");
  return assemble(read_rows(text));
}

std::string write_csv(const schedule& pipeline) {
  std::string out;
  for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank) {
    const std::size_t begin = out.size();
    for (row_reader row(pipeline, rank); !row.done(); row.pass()) {
      if (out.size() > begin) out += ',';
      append(out, row.next());
    }
    out += '\n';
  }
  return out;
}

}  // namespace velo::sched
