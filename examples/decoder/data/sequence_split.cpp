// Even parts of a sequence, and the documents in one.
#include "examples/decoder/data/sequence_split.hpp"

#include <algorithm>
#include <utility>

namespace decoder {

std::vector<sequence_split> cut_sequence(std::int64_t rows, std::int64_t splits) {
  std::vector<sequence_split> all;
  const auto before = [&](std::int64_t i) {
    return i * (rows / splits) + std::min(i, rows % splits);
  };
  for (std::int64_t i = 0; i < splits; ++i) {
    const std::int64_t begin = before(i), end = before(i + 1);
    const held_rows own(rows, {begin, end});
    all.push_back({i, begin, end, begin, own, {own}, {{begin, end, 0}}});
  }
  return all;
}

void add_runs(const held_rows& of, std::vector<row_run>& to) {
  const std::vector<std::int64_t>& runs = of.runs();
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    const std::int64_t first = to.empty() ? 0 : to.back().first + to.back().count();
    if (runs[i] < runs[i + 1]) to.push_back({runs[i], runs[i + 1], first});
  }
}

held_rows rows_in_windows(const held_rows& of, std::int64_t windows) {
  std::vector<std::int64_t> runs;
  for (std::size_t run = 0; run < of.runs().size(); run += 2)
    for (std::int64_t i = 0; i < windows; ++i)
      for (const std::int64_t row : {of.runs()[run], of.runs()[run + 1]})
        runs.push_back(i * of.sequence() + row);
  return {windows * of.sequence(), std::move(runs)};
}

document_runs document_runs_of(const row_run& of, std::int64_t sequence,
                               const std::vector<std::int64_t>& ends) {
  document_runs all;
  std::int64_t begin = 0, queries = 0;
  const auto add = [&](std::int64_t count, std::int64_t end) {
    queries += count;
    all.queries.push_back(queries);
    all.keys.push_back(end);
  };
  for (const std::int64_t end : ends) {
    const std::int64_t window = begin / sequence * sequence;
    const std::int64_t first = std::max(begin, window + of.begin),
                       last = std::min(end, window + of.end);
    if (first < last) add(last - first, last);
    if (first >= last || last < end) add(0, end);
    begin = end;
  }
  return all;
}

}  // namespace decoder
