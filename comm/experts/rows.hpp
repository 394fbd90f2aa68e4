// The exchange of rows through two groups, shared by dispatch and combine. It keeps the traffic
// between hosts low.
//
// Ranks are numbered host by host: `inside` is the group of a host's ranks, `across` the group of
// the ranks with the same local rank on all hosts. Each row names target ranks. A call takes its
// tickets in both groups at once, so that ranks agree on the order of all calls in the groups.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/group/buffer.hpp"
#include "comm/group/group.hpp"
#include "core/index.hpp"

namespace velo::comm {

// The routing of a call: this rank's rows, and the target ranks of each row.
struct routing {
  group* inside = nullptr;
  group* across = nullptr;
  other_call kind = other_call::dispatch;
  const char* function = "";
  velo_dtype dtype = {};             // of rows
  std::int64_t rows = 0, width = 0;  // width: elements of a row
  const std::int32_t* targets = nullptr;
  std::int64_t targets_per_row = 0;
  bool weighted = false;  // each target has a weight

  // rows: the tensor whose rows name target ranks; `name` is its argument. Throws as the C
  // functions do.
  void read(const velo_tensor& rows, const char* name, const velo_tensor& targets,
            const buffer& names);

  int ranks_per_host() const noexcept { return inside->size(); }
  int hosts() const noexcept { return across->size(); }
  int host() const noexcept { return across->rank(); }  // of this rank
  int ranks() const noexcept { return ranks_per_host() * hosts(); }
  std::int64_t row_bytes() const noexcept { return width * (dtype.bits / 8); }
  request whole() const;       // the call as the history and an early failure describe it
  void check_targets() const;  // throws ARGUMENT

  // Calls f(row, host, n) for each row and each other host with n > 0 of its targets, in order of
  // rows and hosts.
  template <class F>
  void for_each_remote(F&& f) const;
};

// The targets of the rows that one host sent to this rank, or of the rank's own rows.
struct batch {
  const std::int32_t* targets = nullptr;
  std::int64_t rows = 0;

  // Calls f(row, index, local_rank) for each target on this host. index: that of the target.
  template <class F>
  void for_each_local(const routing& of, F&& f) const;
};

// These throw as the C functions do.
void require_two(const group& inside, const group& across);
std::int64_t width_of(const velo_tensor& of, const char* argument);  // elements of a row
void require_rows(const velo_tensor& of, const char* argument, std::int64_t rows, const char* why);
void require_width(const velo_tensor& of, const char* argument, const routing& as,
                   const char* other);
void require_own(const buffer& out, const buffer& in, const char* name);
// The part of `of` for each rank: counts[rank] rows, one rank after the other.
blocks blocks_of_rows(const routing& call, const std::int64_t* counts, const char* name,
                      const velo_tensor& of, const char* argument);

using counts = std::vector<std::int64_t>;
std::int64_t sum_of(const counts& all);
blocks side_by_side(const counts& each, std::int64_t elements);

// An all_to_all of one number for each rank, and one of parts counted in elements. The terms of
// these steps name their call, so they never match steps of another call.
void exchange(transport& link, core::execution& on, const routing& call, const counts& in,
              counts& out);
struct send_parts {
  const void* data;
  blocks parts;
};
struct receive_parts {
  void* data;
  blocks parts;
};
void exchange(transport& link, core::execution& on, const routing& call, velo_dtype dtype,
              send_parts in, receive_parts out);
// The same inside a host, for rows that come from the ranks of `host` or return to them. If a
// caller's count differs from the number of rows, the failure names that count: out_counts of a
// dispatch, in_counts of a combine. On the other ranks the failure's cause names it.
void exchange_rows(transport& link, core::execution& on, const routing& call, int host,
                   send_parts in, receive_parts out);

// The tickets of a call in its two groups.
struct ticket_pair {
  group::ticket inside, across;
};

template <class F>
void routing::for_each_remote(F&& f) const {
  std::vector<std::int64_t> named(static_cast<std::size_t>(hosts()));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = row * targets_per_row; i < (row + 1) * targets_per_row; ++i)
      if (targets[i] >= 0) ++named[core::at(targets[i] / ranks_per_host())];
    for (int to = 0; to < hosts(); ++to) {
      const std::int64_t n = std::exchange(named[core::at(to)], 0);
      if (n > 0 && to != host()) f(row, to, n);
    }
  }
}

template <class F>
void batch::for_each_local(const routing& of, F&& f) const {
  for (std::int64_t i = 0; i < rows * of.targets_per_row; ++i)
    if (targets[i] >= 0 && targets[i] / of.ranks_per_host() == of.host())
      f(i / of.targets_per_row, i, targets[i] % of.ranks_per_host());
}

template <class Call>
struct call_of_both final : core::work {
  using action = void (*)(const Call&, const ticket_pair&, core::execution&);
  call_of_both(const Call& given, action what)
      : work(core::demand::waits), call(given), carry_out(what) {
    function = call.to.function;
  }
  void run(core::execution& state) override { carry_out(call, in, state); }
  void skip() noexcept override {
    const request all = call.to.whole();
    call.to.across->drop(in.across, all);
    call.to.inside->drop(in.inside, all);
  }

  const Call call;
  const action carry_out;
  ticket_pair in;
};

// queue(): as for group::enter.
void enter_both(const core::stream& on, const routing& call, ticket_pair& in,
                const std::function<void()>& queue);

// call.to: the routing. carry_out: serves both groups or drops their tickets.
template <class Call>
void submit_to_both(core::stream& on, const Call& call,
                    void (*carry_out)(const Call&, const ticket_pair&, core::execution&)) {
  using piece = call_of_both<Call>;
  on.call(
      {core::demand::waits},
      [&](core::execution& state) {
        ticket_pair in;
        enter_both(on, call.to, in, [] {});
        carry_out(call, in, state);
      },
      [&] { return on.make<piece>(call, carry_out); },
      [&](piece& made, auto&& enqueue) { enter_both(on, call.to, made.in, enqueue); });
}

}  // namespace velo::comm
