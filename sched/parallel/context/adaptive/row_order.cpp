// Candidates and their scores.
#include "sched/parallel/context/adaptive/row_order.hpp"

#include <algorithm>
#include <numeric>

#include "sched/parallel/context/adaptive/row_features.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t most_parts = 1024, most_clusters = 8;

using part_order = std::vector<std::int64_t>;

// Parts of a cluster one behind the other, clusters by their first parts.
part_order by_cluster(const std::vector<std::int64_t>& cluster) {
  std::vector<std::int64_t> first(core::at(most_clusters), -1);
  for (std::size_t i = 0; i < cluster.size(); ++i)
    if (first[core::at(cluster[i])] < 0) first[core::at(cluster[i])] = static_cast<std::int64_t>(i);
  part_order order(cluster.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return first[core::at(cluster[core::at(a)])] < first[core::at(cluster[core::at(b)])];
  });
  return order;
}

// The blocks that an order is cut into.
class block_cut {
 public:
  block_cut(std::int64_t sequence, std::int64_t parts, std::int64_t ring)
      : sequence_(sequence), parts_(parts), ring_(ring) {}

  std::vector<rows> blocks(const part_order& order) const {
    std::vector<rows> all(core::at(ring_));
    each_piece(order, [&](std::int64_t, std::int64_t block, span piece) {
      all[core::at(block)].push_back(piece);
    });
    for (rows& of : all) of = united(std::move(of));
    return all;
  }
  visibility pairs(const part_order& order, const visibility& coarse) const {
    std::vector<std::vector<std::int64_t>> blocks_of(core::at(parts_));
    each_piece(order, [&](std::int64_t part, std::int64_t block, span) {
      blocks_of[core::at(part)].push_back(block);
    });
    visibility all(ring_);
    for (std::int64_t i = 0; i < parts_; ++i)
      for (std::int64_t j = 0; j < parts_; ++j)
        for (const std::int64_t a : blocks_of[core::at(i)])
          for (const std::int64_t b : blocks_of[core::at(j)])
            if (coarse.at(i, j)) all.set(a, b);
    return all;
  }

 private:
  // body(part, block, rows) for each piece of a part that lies in one block.
  template <class Body>
  void each_piece(const part_order& order, const Body& body) const {
    std::int64_t at = 0, block = 0;
    for (const std::int64_t part : order) {
      span left = comm::uneven_share(sequence_, parts_, part);
      while (!left.empty()) {
        const std::int64_t end = comm::uneven_share(sequence_, ring_, block).end;
        const span piece{left.begin, std::min(left.end, left.begin + end - at)};
        if (!piece.empty()) body(part, block, piece);
        left.begin = piece.end, at += piece.size();
        if (at == end) ++block;
      }
    }
  }
  std::int64_t sequence_, parts_, ring_;
};

// Pairs, and a measure of how they deviate between ranks: their number by rank is that of its row
// and column.
struct order_score {
  std::int64_t pairs, deviation;

  explicit order_score(const visibility& of) : pairs(of.pairs()) {
    std::int64_t sum = 0, squares = 0;
    for (std::int64_t i = 0; i < of.parts(); ++i) {
      std::int64_t mine = of.at(i, i) ? -1 : 0;
      for (std::int64_t j = 0; j < of.parts(); ++j)
        mine += (of.at(i, j) ? 1 : 0) + (of.at(j, i) ? 1 : 0);
      sum += mine, squares += mine * mine;
    }
    deviation = of.parts() * squares - sum * sum;
  }
  bool operator<(const order_score& other) const {
    return pairs != other.pairs ? pairs < other.pairs : deviation < other.deviation;
  }
};

}  // namespace

std::vector<rows> adaptive_blocks(const sequence_shape& of, std::int64_t ring) {
  const visibility coarse = coarse_visibility(of, most_parts);
  const std::int64_t parts = coarse.parts();
  const block_cut cut(of.sequence(), parts, ring);
  part_order best(core::at(parts));
  std::iota(best.begin(), best.end(), 0);
  order_score least(cut.pairs(best, coarse));
  if (ring == 1 || least.pairs == 0) return cut.blocks(best);
  const row_features features = principal_features(coarse);
  for (std::int64_t count = 2; count <= std::min(parts, most_clusters); ++count) {
    const part_order order = by_cluster(clusters_of(features, parts, count));
    const order_score score(cut.pairs(order, coarse));
    if (score < least) least = score, best = order;
  }
  return cut.blocks(best);
}

}  // namespace velo::sched
