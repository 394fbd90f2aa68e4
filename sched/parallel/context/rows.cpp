// Lists of rows.
#include "sched/parallel/context/rows.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace velo::sched {

std::int64_t size_of(const rows& of) {
  std::int64_t size = 0;
  for (const span& s : of) size += s.size();
  return size;
}

void append(rows& to, span one) {
  if (one.empty()) return;
  if (!to.empty() && to.back().end == one.begin)
    to.back().end = one.end;
  else
    to.push_back(one);
}

rows united(rows all) {
  std::sort(all.begin(), all.end(), [](const span& a, const span& b) { return a.begin < b.begin; });
  rows made;
  std::int64_t end = 0;
  for (const span& s : all) {
    append(made, {std::max(s.begin, end), s.end});
    end = std::max(end, s.end);
  }
  return made;
}

bool is_ascending(const rows& of) {
  std::int64_t end = 0;
  for (const span& s : of) {
    if (s.begin < end || s.end < s.begin) return false;
    end = s.end;
  }
  return true;
}

rows part_of(const rows& list, span part) {
  rows made;
  std::int64_t at = 0;
  for (const span& s : list) {
    append(made, {s.begin + std::clamp<std::int64_t>(part.begin - at, 0, s.size()),
                  s.begin + std::clamp<std::int64_t>(part.end - at, 0, s.size())});
    at += s.size();
  }
  return made;
}

rows within(const rows& list, span of) {
  rows made;
  for (const span& s : list) append(made, {std::max(s.begin, of.begin), std::min(s.end, of.end)});
  return made;
}

span documents::at(std::int64_t index) const {
  return {index == 0 ? 0 : ends[core::at(index - 1)], ends[core::at(index)]};
}

zigzag_chunks zigzag(span document, std::int64_t ring, std::int64_t rank) {
  const auto chunk = [&](std::int64_t index) {
    const span share = comm::uneven_share(document.size(), 2 * ring, index);
    return span{document.begin + share.begin, document.begin + share.end};
  };
  return {chunk(rank), chunk(2 * ring - 1 - rank)};
}

rows zigzag_rows(const documents& of, std::int64_t ring, std::int64_t rank) {
  rows list;
  for (std::int64_t d = 0; d < of.count(); ++d) {
    const zigzag_chunks chunks = zigzag(of.at(d), ring, rank);
    append(list, chunks.first);
    append(list, chunks.second);
  }
  return list;
}

rows contiguous_rows(std::int64_t sequence, std::int64_t ranks, std::int64_t rank) {
  rows list;
  append(list, comm::uneven_share(sequence, ranks, rank));
  return list;
}

}  // namespace velo::sched
