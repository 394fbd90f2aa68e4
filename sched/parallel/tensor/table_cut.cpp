// The exchange of the ranks' rows, and the verdict on the indices.
#include "sched/parallel/tensor/table_cut.hpp"

namespace velo::sched {

using core::concat;
using core::fail;

comm::operation table_cut::exchange(int ranks, std::uint64_t signature, const char* function) {
  constexpr std::int64_t words = sizeof(table_part) / sizeof(std::int64_t);
  comm::operation what;
  what.function = function;
  what.terms.kind = comm::collective::all_gather;
  what.terms.in_code = what.terms.out_code = VELO_DTYPE_INT;
  what.terms.in_bits = what.terms.out_bits = 64;
  what.terms.count = words;
  what.terms.require_same(signature);
  what.set_count(words);
  what.out_count = words * ranks;
  return what;
}

void table_cut::run(comm::operation what, int rank, int ranks, comm::transport* link,
                    core::arena& scratch, core::execution& on) {
  own_.indices = hash_of_indices();
  auto* parts = scratch.take<table_part>(static_cast<std::size_t>(ranks));
  if (link == nullptr) {
    parts[0] = own_;
  } else {
    what.in = &own_, what.out = parts;
    link->run(what, on);
  }
  parts_ = parts;
  find_owners(rank, ranks, scratch);
}

std::uint64_t table_cut::hash_of_indices() const {
  const ops::index_reader all(indices_);
  std::uint64_t hash = 1;
  for (std::int64_t t = 0, count = ops::numel(indices_); t < count; ++t)
    hash = comm::mixed(hash + static_cast<std::uint64_t>(all[t]));
  return hash;
}

// The rank that has a row; -1: none or several have it.
int table_cut::owner_of(std::int64_t row, int ranks) const {
  int owner = -1;
  for (int r = 0; r < ranks; ++r) {
    if (!parts_[r].has(row)) continue;
    if (owner >= 0) return -1;
    owner = r;
  }
  return owner;
}

void table_cut::find_owners(int rank, int ranks, core::arena& scratch) {
  const ops::index_reader all(indices_);
  const std::int64_t count = ops::numel(indices_);
  auto* owners = scratch.take<int>(static_cast<std::size_t>(count));
  for (int r = ranks - 1; r >= 0; --r)
    if (parts_[r].indices != parts_[rank].indices) faults_.other = r;
  for (std::int64_t t = count - 1; t >= 0; --t) {
    owners[t] = owner_of(all[t], ranks);
    if (all[t] < 0 || all[t] >= table_rows_)
      faults_.wrong = t;
    else if (owners[t] < 0)
      faults_.lost = t;
  }
  owners_ = owners;
}

void table_cut::refuse_faults() const {
  const ops::index_reader all(indices_);
  if (faults_.wrong) ops::require_indices(indices_, "indices", table_rows_);
  if (faults_.other)
    fail(VELO_ERR_ARGUMENT, "args.indices", "the same indices on all ranks",
         concat("others on rank ", *faults_.other));
  if (faults_.lost)
    fail(VELO_ERR_ARGUMENT, "args.vocab_begin", concat("rows that one rank each has"),
         concat("row ", all[*faults_.lost], " of none or several"));
}

}  // namespace velo::sched
