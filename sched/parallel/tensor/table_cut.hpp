// A table whose rows are cut between ranks: the rows of each rank, and the rank of each index.
//
// Ranks exchange which rows they have, and a hash of the indices that they were given. Then each
// rank knows who has the row of every index. Ranks with the same indices find the same faults in
// them, and ranks with different indices all see that they differ. So either all ranks go on or
// none does, and no rank waits for one that refused its indices. Cost: 24 bytes a rank, and a pass
// over the indices.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/operator/indices.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {

// One rank's rows of a table, without padding, and its hash of the indices.
struct table_part {
  std::int64_t begin, rows;
  std::uint64_t indices;

  bool has(std::int64_t row) const { return row >= begin && row - begin < rows; }
};

// What rules out a call's indices.
struct index_faults {
  std::optional<std::int64_t> wrong;  // the first token whose index is no row of the table
  std::optional<std::int64_t> lost;   // the first whose row no rank has, or several ranks have
  std::optional<int> other;           // the first rank that was given other indices

  bool any() const { return wrong || lost || other; }
};

class table_cut {
 public:
  // own: without its hash. indices: the same on all ranks. table_rows: of all ranks.
  table_cut(const table_part& own, const velo_tensor& indices, std::int64_t table_rows)
      : own_(own), indices_(indices), table_rows_(table_rows) {}

  // The exchange that run() makes. signature: of what must be the same on all ranks.
  static comm::operation exchange(int ranks, std::uint64_t signature, const char* function);
  // link: nullptr for a rank alone.
  void run(comm::operation exchange, int rank, int ranks, comm::transport* link,
           core::arena& scratch, core::execution& on);

  // These follow run().
  const index_faults& faults() const { return faults_; }
  void refuse_faults() const;  // throws ARGUMENT if there are any
  // Without faults: the rank that has the row of a token's index, and the row's place there.
  int owner(std::int64_t token) const { return owners_[token]; }
  std::int64_t row(std::int64_t token) const {
    return ops::index_reader(indices_)[token] - parts_[owner(token)].begin;
  }

 private:
  std::uint64_t hash_of_indices() const;
  int owner_of(std::int64_t row, int ranks) const;
  void find_owners(int rank, int ranks, core::arena& scratch);

  table_part own_;
  const velo_tensor& indices_;
  const std::int64_t table_rows_;
  const table_part* parts_ = nullptr;
  const int* owners_ = nullptr;  // of all tokens
  index_faults faults_;
};

}  // namespace velo::sched
