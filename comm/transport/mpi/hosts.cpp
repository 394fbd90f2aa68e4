// Hierarchical operations: a part inside hosts, one between hosts, and one inside hosts again.
#include "comm/transport/mpi/hosts.hpp"

#include <algorithm>
#include <utility>

#include "comm/pattern/slices.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/shm.hpp"
#include "core/index.hpp"

namespace velo::comm {
namespace {

// The timeout inside a host is longer than the link's, so that the link, which knows which rank is
// late, reports it.
constexpr std::int64_t timeout_factor = 2;

std::vector<std::string> names_of(const mpi_link& link) {
  std::vector<std::string> all;
  for (const mpi_link::rank_host& one : link.ranks()) all.push_back(one.host);
  return all;
}

std::uint16_t index_of(const std::vector<int>& leaders, int rank) {
  return static_cast<std::uint16_t>(std::find(leaders.begin(), leaders.end(), rank) -
                                    leaders.begin());
}

}  // namespace

mpi_hosts::mpi_hosts(mpi_link& link, std::size_t buffer)
    : link_(link), order_(names_of(link)), own_host_(order_.host_of(link.rank())) {
  const std::vector<int>& here = local_ranks();
  if (!order_.matters() || here.size() == 1) return;
  const std::uint64_t token = link.ranks()[core::at(here[0])].token;
  inside_ = make_shm({core::text("mpi-%016llx", static_cast<unsigned long long>(token)).buffer,
                      this->local_rank(link.rank()), static_cast<int>(here.size()),
                      timeout_factor * std::min(link.timeout_ns(), INT64_MAX / timeout_factor),
                      shared_area::slot_for(buffer, static_cast<int>(here.size()))},
                     this);
}

int mpi_hosts::local_rank(int rank) const {
  const std::vector<int>& all = local_ranks();
  const auto at = std::find(all.begin(), all.end(), rank);
  return at == all.end() ? 0 : static_cast<int>(at - all.begin());
}

// The leader of each host. On the root's host it is the root itself, so that its data is not moved
// twice.
std::vector<int> mpi_hosts::leaders(int root) const {
  std::vector<int> all;
  for (const host_order::host& one : hosts()) {
    const bool has = std::find(one.ranks.begin(), one.ranks.end(), root) != one.ranks.end();
    all.push_back(has ? root : one.ranks[0]);
  }
  return all;
}

// Data that differs from rank to rank crosses between hosts once in any case. In an all_gather with
// blocks of different sizes no rank knows where another puts the blocks.
bool mpi_hosts::serves(const operation& what) const {
  const collective_traits& traits = what.traits();
  const std::int64_t bytes = what.pattern(link_.rank(), link_.size()).longest() * what.in_size();
  if (bytes <= mpi_round::room) return false;
  if (traits.reduces) return is_split(what);
  if (traits.in != layout::whole) return false;
  if (traits.out == layout::whole) return traits.root == root_role::gives;
  return traits.root == root_role::none && what.out_blocks.empty() &&
         std::all_of(hosts().begin(), hosts().end(),
                     [](const host_order::host& h) { return h.is_block; });
}

void mpi_hosts::explain(const operation& what, explanation& to) const {
  const bool has_one = hosts().size() == 1, goes = order_.matters() && serves(what);
  to.consider("by way of hosts", goes,
              goes               ? "several hosts: what is alike crosses to a host once"
              : has_one          ? "all ranks are on one host"
              : order_.matters() ? "small, or of a kind that gains nothing"
                                 : "each host has one rank");
}

bool mpi_hosts::carry_out(mpi_round& r) {
  if (!order_.matters() || !serves(r.what)) return false;
  r.exchange_openings();
  try {
    const collective_traits& traits = r.what.traits();
    if (traits.reduces)
      traits.in == layout::whole ? reduce_whole(r) : reduce_blocks(r);
    else
      traits.out == layout::whole ? spread(r) : gather_blocks(r);
  } catch (...) {
    note_.reset();  // not erased: this rank has met a fault, and its note of that follows
    end_all();
    throw;
  }
  return true;
}

// Ends the group for a fault that the link knows or that the ranks of this host found inside. A
// fault that arrives inside from another rank may precede its notice on the link.
void mpi_hosts::end_all() {
  fault why;
  if (inside_ != nullptr && !link_.failed(why) && inside_->failed(why)) {
    fault known = why;
    known.is_outer = false;
    if (!why.is_outer && !why.is_outermost) {
      known.culprits = ranks_of(why.culprits);
    }
    link_.end(known);
  }
  if (!link_.failed(why)) return;  // the failure does not concern the group
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
  waited_ = 0;
  note_.emplace(link_);
  inside_->run(what, r.state);
  note_->end();
  note_.reset();
}

void mpi_hosts::poll(std::int64_t waited_ns, const rank_set& awaited) {
  if (waited_ns < waited_) note_->end();  // a new wait has begun
  waited_ = waited_ns;
  link_.check_faults(doing_, ranks_of(awaited), waited_ns, *note_);
}

rank_set mpi_hosts::ranks_of(const rank_set& places) const {
  rank_set all;
  for (std::size_t i = 0; i < local_ranks().size(); ++i)
    if (places.has(static_cast<int>(i))) all.add(local_ranks()[i]);
  return all;
}

void mpi_hosts::reduce_whole(mpi_round& r) {
  const operation& what = r.what;
  const int root = what.traits().root == root_role::takes ? int{what.terms.root} : -1;
  const std::vector<int> all = leaders(root);
  const bool leads = all[own_host_] == r.rank;
  auto [inside, between] = split(what, r.size, reductions_for(r.state.isa));
  inside.terms.kind = collective::reduce;
  inside.terms.root = static_cast<std::uint16_t>(local_rank(all[own_host_]));
  const bool gets = root < 0 || root == r.rank;
  const bool in_out = gets && inside.terms.out_bits == what.terms.out_bits;
  inside.out = nullptr;
  if (leads && in_out) inside.out = what.out;
  if (leads && !in_out)
    inside.out = r.state.scratch.take<char>(static_cast<std::size_t>(inside.out_bytes()));
  if (inside_ != nullptr) {
    run_inside(r, inside);
  } else {
    inside.combine({&what.in, 1, inside.out, what.count, what.terms.scale, false});
  }

  if (leads) {
    between.in = inside.out;
    between.out = gets ? what.out : nullptr;
    if (root >= 0) between.terms.root = index_of(all, root);
    mpi_round inner(r, between, all);
    inner.reduce_large();
  }
  if (root < 0) share(r, all[own_host_]);
}

// A payload that fits a mailbox goes from rank to rank, so that no rank defers a wait inside a host
// (peer_wait.hpp).
static_assert(mpi_round::room >= mailbox::room);

// Broadcasts one rank's output to the other ranks of this host.
void mpi_hosts::share(mpi_round& r, int from) {
  operation all = r.what;
  all.terms.kind = collective::broadcast;
  all.terms.root = static_cast<std::uint16_t>(local_rank(from));
  all.terms.in_code = all.terms.out_code;
  all.terms.in_bits = all.terms.out_bits;
  all.in = all.out;
  all.count = all.out_count;
  all.in_blocks.clear();
  all.out_blocks.clear();
  all.reducer = {};
  run_inside(r, all);
}

// A hierarchical reduce_scatter, in slices of each rank's block. For each other host, the ranks of
// this host combine their elements for that host's ranks, directly in the send slots, and share
// this work; the receiver combines the results of all hosts. So a host sends each remote rank its
// block once, and all its ranks take part in sending. The messages of a slice are under way while
// the next slice is combined: a rank that waits inside its host has already sent what other hosts
// need.
class mpi_hosts::scattering {
 public:
  scattering(mpi_hosts& hosts, mpi_round& r)
      : hosts_(hosts),
        r_(r),
        both_(split(r.what, r.size, reductions_for(r.state.isa))),
        place_(static_cast<std::size_t>(hosts.local_rank(r.rank))),
        size_(both_.inside.out_size()),
        unit_(r.slot_bytes() / size_ / 64 * 64),
        results_(hosts.hosts().size()) {
    both_.inside.in_blocks.resize(hosts.local_ranks().size());
    for (char*& one : own_result_)
      one = r.state.scratch.take<char>(static_cast<std::size_t>(unit_ * size_));
  }

  void run() {
    r_.steps(
        slices_in(r_.what.pattern(r_.rank, r_.size).longest(), unit_),
        [this](std::int64_t step) { write(step); }, [this](std::int64_t step) { read(step); });
  }

 private:
  using host = host_order::host;
  block slice_for(int rank, std::int64_t step) const {
    const block whole = r_.what.in_block(rank);
    const slice s = slice_of(whole.count, unit_, step);
    return {whole.begin + s.begin, s.bytes};
  }
  // The rank of the host `of` that sends that host's result to this rank.
  int giver(const host& of) const { return of.ranks[place_ % of.ranks.size()]; }

  void write(std::int64_t step) {
    const std::vector<host>& all = hosts_.hosts();
    const std::int64_t comes = slice_for(r_.rank, step).count * size_;
    for (std::size_t h = 0; h < all.size(); ++h)
      if (h != hosts_.own_host_) r_.expect(giver(all[h]), comes);
    for (std::size_t i = 1; i <= all.size();
         ++i) {  // its own host comes last, since no other rank waits for that result
      const host& of = all[(hosts_.own_host_ + i) % all.size()];
      for (std::size_t first = 0; first < of.ranks.size(); first += hosts_.local_ranks().size())
        combine_inside(of, first, step);
    }
  }
  // Combines blocks for as many ranks of another host as this host has.
  void combine_inside(const host& of, std::size_t first, std::int64_t step) {
    operation& inside = both_.inside;
    std::int64_t all = 0;
    for (std::size_t i = 0; i < inside.in_blocks.size(); ++i) {
      inside.in_blocks[i] = {};
      if (first + i < of.ranks.size()) inside.in_blocks[i] = slice_for(of.ranks[first + i], step);
      all += inside.in_blocks[i].count;
    }
    if (all == 0) return;
    inside.terms.count = all;
    inside.count = inside.out_count = inside.in_blocks[place_].count;
    const int taker = first + place_ < of.ranks.size() ? of.ranks[first + place_] : r_.rank;
    inside.out = taker == r_.rank ? own_result_[step % 2] : r_.to(taker);
    if (hosts_.inside_ != nullptr) {
      hosts_.run_inside(r_, inside);
    } else {
      const void* in =
          static_cast<const char*>(inside.in) + inside.in_blocks[0].begin * inside.in_size();
      inside.combine({&in, 1, inside.out, inside.count, inside.terms.scale, false});
    }
    if (taker != r_.rank) r_.give(taker, r_.to(taker), inside.count * size_);
  }

  void read(std::int64_t step) {
    const std::vector<host>& all = hosts_.hosts();
    const block mine = slice_for(r_.rank, step);
    if (mine.count == 0) return;
    for (std::size_t h = 0; h < all.size(); ++h)
      results_[h] = h == hosts_.own_host_ ? own_result_[step % 2] : r_.from(giver(all[h]));
    const operation& between = both_.between;
    char* out = static_cast<char*>(between.out) + step * unit_ * between.out_size();
    between.combine(
        {results_.data(), static_cast<int>(all.size()), out, mine.count, 1, false, r_.size});
    if (between.reducer.custom != nullptr) r_.link_.raise_if_failed();
  }

  mpi_hosts& hosts_;
  mpi_round& r_;
  two_reductions both_;
  const std::size_t place_;           // in this host
  const std::int64_t size_, unit_;    // bytes of an element of a host's result; elements of a slice
  std::vector<const void*> results_;  // of the hosts
  char* own_result_[2];               // of this host, in turn
};

void mpi_hosts::reduce_blocks(mpi_round& r) {
  scattering(*this, r).run();
}

void mpi_hosts::spread(mpi_round& r) {
  const std::vector<int> all = leaders(r.what.terms.root);
  if (all[own_host_] == r.rank) {
    operation between = r.what;
    between.terms.root = index_of(all, r.what.terms.root);
    mpi_round inner(r, between, all);
    inner.spread_large();
  }
  share(r, all[own_host_]);
}

void mpi_hosts::gather_blocks(mpi_round& r) {
  const operation& what = r.what;
  const std::vector<int> all = leaders(-1);
  const bool leads = all[own_host_] == r.rank;
  const std::int64_t size = what.in_size();
  char* out = static_cast<char*>(what.out);
  const auto block_of = [&](std::size_t of) {
    const std::vector<int>& ranks = hosts()[of].ranks;
    return block{ranks[0] * what.count, static_cast<std::int64_t>(ranks.size()) * what.count};
  };
  operation inside = what;
  inside.terms.kind = collective::gather;
  inside.terms.root = static_cast<std::uint16_t>(local_rank(all[own_host_]));
  for (const int rank : local_ranks()) inside.out_blocks.push_back({rank * what.count, what.count});
  if (inside_ != nullptr) {
    run_inside(r, inside);
  } else if (what.in != out + block_of(own_host_).begin * size) {
    std::copy_n(static_cast<const char*>(what.in), what.in_bytes(),
                out + block_of(own_host_).begin * size);
  }
  if (leads) {
    operation between = what;
    between.in = out + block_of(own_host_).begin * size;
    between.count = block_of(own_host_).count;
    for (std::size_t h = 0; h < all.size(); ++h) between.out_blocks.push_back(block_of(h));
    mpi_round inner(r, between, all);
    inner.move_large();
  }
  share(r, all[own_host_]);
}

}  // namespace velo::comm
