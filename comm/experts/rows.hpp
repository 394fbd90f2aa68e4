// Rows that ranks give each other by way of two groups, so that little crosses between hosts: what
// dispatch and combine share.
//
// Ranks are numbered host by host: `inside` has the ranks of a host, `across` those of one place on
// all hosts. Each row names ranks, its targets. A call takes its number in both groups at once, so
// that ranks agree on the order whatever else the groups are used for.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/group/buffer.hpp"
#include "comm/group/group.hpp"

namespace velo::comm {

// A call: the rows of a rank that name others, and what is called for them.
struct routes {
  group* inside = nullptr;
  group* across = nullptr;
  collective kind = collective::dispatch;
  const char* function = "";
  velo_dtype dtype = {};             // of rows
  std::int64_t rows = 0, width = 0;  // elements of a row
  const std::int32_t* targets = nullptr;
  std::int64_t each = 0;  // targets of a row
  bool weighted = false;  // each target with a weight

  // rows: the tensor whose rows name ranks, called `name`. Throws as the C functions say.
  void read(const velo_tensor& rows, const char* name, const velo_tensor& targets,
            const buffer& names);

  int near() const noexcept { return inside->size(); }  // ranks of a host
  int hosts() const noexcept { return across->size(); }
  int host() const noexcept { return across->rank(); }  // the rank's own
  int ranks() const noexcept { return near() * hosts(); }
  std::int64_t row_bytes() const noexcept { return width * (dtype.bits / 8); }
  operation whole() const;     // as the history and a failure before it begins show it
  void check_targets() const;  // throws ARGUMENT

  // f(row, host, n) for each other host with targets of the row, n of them: rows and hosts in
  // order.
  template <class F>
  void each_crossing(F&& f) const;
};

// Targets of rows that came from one host to this place, or of the rank's own.
struct batch {
  const std::int32_t* targets = nullptr;
  std::int64_t rows = 0;

  // f(row, target, place) for each target of the call's own host, `target` being its index.
  template <class F>
  void each_near(const routes& of, F&& f) const;
};

// Throw as the C functions say.
void require_two(const group& inside, const group& across);
std::int64_t width_of(const velo_tensor& of, const char* argument);  // elements of a row
void require_rows(const velo_tensor& of, const char* argument, std::int64_t rows, const char* why);
void require_width(const velo_tensor& of, const char* argument, const routes& as,
                   const char* other);
void require_own(const buffer& out, const buffer& in, const char* name);
// What `of` has of each rank: counts rows, one behind the other.
std::vector<part> parts_of_rows(const routes& call, const std::int64_t* counts, const char* name,
                                const velo_tensor& of, const char* argument);

using counts = std::vector<std::int64_t>;
std::int64_t sum_of(const counts& all);
std::vector<part> side_by_side(const counts& each, std::int64_t elements);

// all_to_all of a number for each rank, and of parts in elements: steps of a call, which meet those
// of another call's no more than the calls themselves.
void exchange(transport& link, core::execution& on, const routes& call, const counts& in,
              counts& out);
struct outgoing {
  const void* data;
  std::vector<part> parts;
};
struct incoming {
  void* data;
  std::vector<part> parts;
};
void exchange(transport& link, core::execution& on, const routes& call, velo_dtype dtype,
              outgoing in, incoming out);
// The same of rows, inside, that come from the ranks of a host, or go back there. Where counts of
// the caller's are not those of the rows, the failure names the count: out_counts of a dispatch,
// in_counts of a combine; on the ranks that got or had others, in its cause.
void exchange_rows(transport& link, core::execution& on, const routes& call, int host, outgoing in,
                   incoming out);

// The place of a call in both groups.
struct places {
  group::ticket inside, across;
};

template <class F>
void routes::each_crossing(F&& f) const {
  std::vector<std::int64_t> named(static_cast<std::size_t>(hosts()));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = row * each; i < (row + 1) * each; ++i)
      if (targets[i] >= 0) ++named[static_cast<std::size_t>(targets[i] / near())];
    for (int to = 0; to < hosts(); ++to) {
      const std::int64_t n = std::exchange(named[static_cast<std::size_t>(to)], 0);
      if (n > 0 && to != host()) f(row, to, n);
    }
  }
}

template <class F>
void batch::each_near(const routes& of, F&& f) const {
  for (std::int64_t i = 0; i < rows * of.each; ++i)
    if (targets[i] >= 0 && targets[i] / of.near() == of.host())
      f(i / of.each, i, targets[i] % of.near());
}

template <class Call>
struct call_of_both final : core::work {
  using action = void (*)(const Call&, const places&, core::execution&);
  call_of_both(const Call& given, action what)
      : work(core::demand::waits), call(given), carry_out(what) {
    function = call.to.function;
  }
  void run(core::execution& state) override { carry_out(call, in, state); }
  void skip() noexcept override {
    const operation all = call.to.whole();
    call.to.across->drop(in.across, all);
    call.to.inside->drop(in.inside, all);
  }

  const Call call;
  const action carry_out;
  places in;
};

// queue(): as group::enter's.
void enter_both(const core::stream& on, const routes& call, places& in,
                const std::function<void()>& queue);

// call.to: its routes. carry_out serves both groups, or drops them.
template <class Call>
void submit_to_both(core::stream& on, const Call& call,
                    void (*carry_out)(const Call&, const places&, core::execution&)) {
  if (on.is_inline()) {
    on.run_waiting([&](core::execution& state) {
      places in;
      enter_both(on, call.to, in, [] {});
      carry_out(call, in, state);
    });
    return;
  }
  core::work_ptr<call_of_both<Call>> piece = on.make<call_of_both<Call>>(call, carry_out);
  places& in = piece->in;
  enter_both(on, call.to, in, [&] { on.enqueue(std::move(piece)); });
}

}  // namespace velo::comm
