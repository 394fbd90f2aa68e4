// Plans of the splits, and the heads of an exchange.
#include "examples/decoder/parallel/shared_splits.hpp"

#include <algorithm>
#include <utility>

#include "examples/decoder/parallel/model_parallel.hpp"

namespace decoder {
namespace {

held_rows moved(const held_rows& of, std::int64_t by, std::int64_t sequence) {
  std::vector<std::int64_t> runs = of.runs();
  for (std::int64_t& each : runs) each += by;
  return {sequence, std::move(runs)};
}

}  // namespace

head_cuts cut_heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t ranks) {
  const std::int64_t readers = heads / kv_heads;
  const auto before = [&](std::int64_t i) {
    return i * (heads / ranks) + std::min(i, heads % ranks);
  };
  head_cuts cuts;
  for (std::int64_t i = 0; i < ranks; ++i) {
    const std::int64_t begin = before(i), end = before(i + 1);
    for (const std::int64_t head : {begin, end}) cuts.queries.push_back(head);
    for (const std::int64_t head : {begin / readers, (end - 1) / readers + 1})
      cuts.keys.push_back(head);
  }
  return cuts;
}

std::vector<head_range> ranges_of(const head_cuts& cuts, int rank, std::int64_t heads,
                                  std::int64_t kv_heads) {
  if (cuts.are_whole()) return {{0, heads, 0, kv_heads}};
  const auto at = 2 * static_cast<std::size_t>(rank);
  const std::int64_t begin = cuts.queries[at], end = cuts.queries[at + 1],
                     readers = heads / kv_heads;
  std::vector<head_range> all;
  for (std::int64_t key = cuts.keys[at]; key < cuts.keys[at + 1]; ++key) {
    const std::int64_t first = std::max(begin, key * readers),
                       count = std::min(end, (key + 1) * readers) - first;
    if (!all.empty() && count * all.back().keys == all.back().queries) {
      all.back().queries += count;
      ++all.back().keys;
    } else {
      all.push_back({first - begin, count, key - cuts.keys[at], 1});
    }
  }
  return all;
}

std::vector<sequence_split> cut_shared_sequence(const member& rank, const settings& values,
                                                const part_widths& widths) {
  const std::int64_t sequence = values.data.sequence;
  std::vector<sequence_split> all = cut_sequence(sequence, values.parallel.sequence_splits);
  const member::part& of = rank.attention_ranks();
  if (of.ranks == 1) return all;
  const auto own = static_cast<std::size_t>(of.rank),
             y_ranks = static_cast<std::size_t>(values.parallel.tp_y());
  std::int64_t before = 0;
  for (sequence_split& each : all) {
    const std::vector<std::int64_t> one_document = {each.all_rows()};
    const velo::sequence_plan plan = make_sequence_plan(values, widths, &one_document);
    each.parts.clear();
    for (int i = 0; i < of.ranks; ++i)
      each.parts.push_back(moved(sequence_rows(plan, each.all_rows(), i), each.begin, sequence));
    each.rows = each.parts[own];
    each.before = before;
    before += each.count();
    each.runs.clear();
    if (values.parallel.cp_algorithm == "ulysses")
      for (const held_rows& part : each.parts) add_runs(part, each.runs);
    else
      add_runs(each.rows, each.runs);
    const auto first_y = each.parts.begin() + static_cast<std::ptrdiff_t>(own / y_ranks * y_ranks);
    if (y_ranks > 1) each.along_y.assign(first_y, first_y + static_cast<std::ptrdiff_t>(y_ranks));
  }
  return all;
}

}  // namespace decoder
