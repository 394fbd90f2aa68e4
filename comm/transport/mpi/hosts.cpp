// One operation by way of hosts: inside, between, and inside again.
#include "comm/transport/mpi/hosts.hpp"

#include <algorithm>
#include <utility>

#include "comm/transport/shared_area.hpp"
#include "comm/transport/shm.hpp"

namespace velo::comm {
namespace {

// Times the link's deadline, which so is over first: it knows who is late.
constexpr std::int64_t patience = 2;

bool is_narrow(const operation& what) {
  return what.terms.in_bits == 16 &&
         (what.terms.in_code == VELO_DTYPE_FLOAT || what.terms.in_code == VELO_DTYPE_BFLOAT);
}

bool adds(const operation& what) {
  return what.terms.reduction == VELO_REDUCE_SUM || what.terms.reduction == VELO_REDUCE_AVG;
}

bool is_float(const operation& what) {
  return what.terms.in_code == VELO_DTYPE_FLOAT || what.terms.in_code == VELO_DTYPE_BFLOAT;
}

}  // namespace

mpi_hosts::mpi_hosts(mpi_link& link, std::size_t buffer) : link_(link) {
  const auto& all = link.ranks();
  for (int rank = 0; rank < link.size(); ++rank) {
    const auto name = [&](int of) -> const std::string& {
      return all[static_cast<std::size_t>(of)].host;
    };
    auto at = std::find_if(hosts_.begin(), hosts_.end(),
                           [&](const host& one) { return name(one.ranks[0]) == name(rank); });
    if (at == hosts_.end()) at = hosts_.insert(at, host());
    at->is_block = at->ranks.empty() || (at->is_block && at->ranks.back() == rank - 1);
    at->ranks.push_back(rank);
    if (rank == link.rank()) own_ = static_cast<std::size_t>(at - hosts_.begin());
  }
  pays_ = hosts_.size() > 1 && hosts_.size() < all.size();
  const std::vector<int>& here = hosts_[own_].ranks;
  if (!pays_ || here.size() == 1) return;
  const std::uint64_t token = all[static_cast<std::size_t>(here[0])].token;
  inside_ = make_shm({core::text("mpi-%016llx", static_cast<unsigned long long>(token)).buffer,
                      this->here(link.rank()), static_cast<int>(here.size()),
                      patience * std::min(link.timeout_ns(), INT64_MAX / patience),
                      shared_area::slot_for(buffer, static_cast<int>(here.size()))},
                     this);
}

int mpi_hosts::here(int rank) const {
  const std::vector<int>& all = hosts_[own_].ranks;
  const auto at = std::find(all.begin(), all.end(), rank);
  return at == all.end() ? 0 : static_cast<int>(at - all.begin());
}

// Who speaks for each host: the root for its own, so that nothing is moved twice.
std::vector<int> mpi_hosts::speakers(int root) const {
  std::vector<int> all;
  for (const host& one : hosts_) {
    const bool has = std::find(one.ranks.begin(), one.ranks.end(), root) != one.ranks.end();
    all.push_back(has ? root : one.ranks[0]);
  }
  return all;
}

bool mpi_hosts::serves(const operation& what) const {
  switch (what.terms.kind) {
    case collective::all_reduce:
    case collective::reduce:
      // Averages of integers are of their exact sum, and a caller's function sees all ranks at once.
      return what.terms.reduction != VELO_REDUCE_CUSTOM && what.in_bytes() > mpi_round::room &&
             (what.terms.reduction != VELO_REDUCE_AVG || is_float(what));
    case collective::broadcast:
      return what.out_bytes() > mpi_round::room;
    case collective::all_gather:  // even: of the others' offsets nobody knows
      return what.out_parts.empty() && what.in_bytes() > mpi_round::room &&
             std::all_of(hosts_.begin(), hosts_.end(), [](const host& h) { return h.is_block; });
    default:
      return false;
  }
}

bool mpi_hosts::carry_out(mpi_round& r) {
  if (!pays_ || !serves(r.what)) return false;
  r.meet();
  try {
    const int root = r.what.terms.root;
    if (r.what.terms.kind == collective::all_reduce) combine(r, -1);
    if (r.what.terms.kind == collective::reduce) combine(r, root);
    if (r.what.terms.kind == collective::broadcast) broadcast(r);
    if (r.what.terms.kind == collective::all_gather) all_gather(r);
  } catch (...) {
    end_all();
    throw;
  }
  return true;
}

// What ended the group: what the link knows, or what was found inside, of ranks of this host. What
// another rank was told and handed on inside may be here before the word that reaches the link.
void mpi_hosts::end_all() {
  fault why;
  if (inside_ != nullptr && !link_.failed(why) && inside_->failed(why)) {
    fault known = why;
    known.is_outer = false;
    if (!why.is_outer) {
      known.culprits = ranks_of(why.culprits);
    }
    link_.end(known);
  }
  if (!link_.failed(why)) return;  // not of the group
  fail(why);
  why.raise();
}

void mpi_hosts::fail(const fault& why) noexcept {
  fault handed = why;
  handed.is_outer = true;
  if (inside_ != nullptr) inside_->fail(handed);
}

void mpi_hosts::run_inside(const mpi_round& r, const operation& what) {
  if (inside_ == nullptr) return;
  doing_ = r.doing_;
  inside_->run(what, r.state);
  end_wait();
}

void mpi_hosts::end_wait() noexcept {
  if (told_ != 0) link_.tell_goes_on();
  told_ = waited_ = 0;
}

void mpi_hosts::look(std::int64_t waited_ns, const rank_set& awaited) {
  if (waited_ns < waited_) end_wait();  // it is the next one
  waited_ = waited_ns;
  link_.look_around(doing_, ranks_of(awaited), waited_ns, told_);
}

rank_set mpi_hosts::ranks_of(const rank_set& places) const {
  rank_set all;
  for (std::size_t i = 0; i < hosts_[own_].ranks.size(); ++i)
    if (places.has(static_cast<int>(i))) all.add(hosts_[own_].ranks[i]);
  return all;
}

void mpi_hosts::combine(mpi_round& r, int for_rank) {
  const operation& what = r.what;
  const std::vector<int> all = speakers(for_rank);
  const bool speaks = all[own_] == r.rank;
  const bool widens = adds(what) && is_narrow(what);
  const reduction_kernels& kernels = reductions_for(r.state.isa);
  const auto op = adds(what) ? std::uint8_t{VELO_REDUCE_SUM} : what.terms.reduction;

  operation inside = what;
  inside.terms.kind = collective::reduce;
  inside.terms.root = static_cast<std::uint16_t>(here(all[own_]));
  inside.terms.reduction = op;
  if (widens) inside.terms.out_code = VELO_DTYPE_FLOAT;
  inside.terms.out_bits = widens ? std::uint8_t{32} : what.terms.in_bits;
  if (!widens) inside.terms.out_code = what.terms.in_code;
  inside.kernel = kernel_for(inside.terms, kernels);
  const bool gets = for_rank < 0 || for_rank == r.rank;
  const bool in_out = gets && inside.terms.out_bits == what.terms.out_bits;
  inside.out = nullptr;
  if (speaks && in_out) inside.out = what.out;
  if (speaks && !in_out)
    inside.out = r.state.scratch.take<char>(static_cast<std::size_t>(inside.out_bytes()));
  if (inside_ != nullptr) {
    run_inside(r, inside);
  } else {
    inside.kernel({&what.in, 1, inside.out, what.count, what.terms.scale, false});
  }

  if (speaks) {
    operation between = what;
    between.in = inside.out;
    between.out = gets ? what.out : nullptr;
    between.terms.in_code = inside.terms.out_code;
    between.terms.in_bits = inside.terms.out_bits;
    between.terms.scale = 1;
    between.shares = r.size;
    const bool narrows = widens && what.terms.out_bits == 16;
    const bool averages = what.terms.reduction == VELO_REDUCE_AVG;
    between.kernel = narrows ? kernels.narrow[averages][what.terms.out_code == VELO_DTYPE_BFLOAT]
                             : kernel_for(between.terms, kernels);
    mpi_round inner(r, between, all);
    int home = -1;
    for (std::size_t h = 0; for_rank >= 0 && h < all.size(); ++h)
      if (all[h] == for_rank) home = static_cast<int>(h);
    combine_large(inner, home);
  }
  if (for_rank < 0) share(r, all[own_]);
}

// What fits a mailbox goes from rank to rank: so nobody leaves an operation inside before all have come,
// and owes a look at the others' terms when the group ends (attendance.hpp).
static_assert(mpi_round::room >= mailbox::room);

// What a rank of this host has in `out`, for the others here.
void mpi_hosts::share(mpi_round& r, int from) {
  operation all = r.what;
  all.terms.kind = collective::broadcast;
  all.terms.root = static_cast<std::uint16_t>(here(from));
  all.terms.in_code = all.terms.out_code;
  all.terms.in_bits = all.terms.out_bits;
  all.in = all.out;
  all.count = all.out_count;
  all.in_parts.clear();
  all.out_parts.clear();
  all.kernel = nullptr;
  run_inside(r, all);
}

void mpi_hosts::broadcast(mpi_round& r) {
  const std::vector<int> all = speakers(r.what.terms.root);
  if (all[own_] == r.rank) {
    operation between = r.what;
    between.terms.root = static_cast<std::uint16_t>(
        std::find(all.begin(), all.end(), int{r.what.terms.root}) - all.begin());
    mpi_round inner(r, between, all);
    broadcast_large(inner);
  }
  share(r, all[own_]);
}

void mpi_hosts::all_gather(mpi_round& r) {
  const operation& what = r.what;
  const std::vector<int> all = speakers(-1);
  const bool speaks = all[own_] == r.rank;
  const std::int64_t size = what.in_size();
  char* out = static_cast<char*>(what.out);
  const auto block = [&](std::size_t of) {
    const std::vector<int>& ranks = hosts_[of].ranks;
    return part{ranks[0] * what.count, static_cast<std::int64_t>(ranks.size()) * what.count};
  };
  operation inside = what;
  inside.terms.kind = collective::gather;
  inside.terms.root = static_cast<std::uint16_t>(here(all[own_]));
  for (const int rank : hosts_[own_].ranks)
    inside.out_parts.push_back({rank * what.count, what.count});
  if (inside_ != nullptr) {
    run_inside(r, inside);
  } else if (what.in != out + block(own_).begin * size) {
    std::copy_n(static_cast<const char*>(what.in), what.in_bytes(), out + block(own_).begin * size);
  }
  if (speaks) {
    std::vector<piece> gives(all.size()), takes(all.size());
    for (std::size_t h = 0; h < all.size(); ++h) {
      gives[h] = {out + block(own_).begin * size, nullptr, block(own_).count};
      takes[h] = {nullptr, out + block(h).begin * size, block(h).count};
    }
    mpi_round inner(r, what, all);
    exchange_pieces(inner, std::move(gives), std::move(takes), size);
  }
  share(r, all[own_]);
}

}  // namespace velo::comm
