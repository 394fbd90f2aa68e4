// Checks of a dispatch, and its two exchanges.
#include "comm/experts/dispatch.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "comm/collective/calls.hpp"
#include "core/index.hpp"

namespace velo::comm {
namespace {

using core::at;

constexpr velo_dtype int32{VELO_DTYPE_INT, 32, 1};

// One dispatch on one rank.
class dispatch_run {
 public:
  dispatch_run(const dispatch_request& what, core::execution& on)
      : what_(what), to_(what.to), on_(on), batches_(at(to_.hosts())), rows_(at(to_.hosts())) {}

  void across(transport& link) {
    to_.check_targets();
    batches_[at(to_.host())] = {to_.targets, to_.rows};
    rows_[at(to_.host())] = what_.in;
    if (link.size() == 1) return;
    counts give(at(link.size()), 0), take = give;
    to_.for_each_remote([&](std::int64_t, int host, std::int64_t) { ++give[at(host)]; });
    exchange(link, on_, to_, give, take);
    char* rows = bytes(sum_of(give) * to_.row_bytes());
    auto* targets = reinterpret_cast<std::int32_t*>(bytes(sum_of(give) * each_bytes()));
    pack(give, rows, targets);
    char* got_rows = bytes(sum_of(take) * to_.row_bytes());
    auto* got_targets = reinterpret_cast<std::int32_t*>(bytes(sum_of(take) * each_bytes()));
    exchange(link, on_, to_, int32, {targets, side_by_side(give, to_.targets_per_row)},
             {got_targets, side_by_side(take, to_.targets_per_row)});
    exchange(link, on_, to_, to_.dtype, {rows, side_by_side(give, to_.width)},
             {got_rows, side_by_side(take, to_.width)});
    for (int host = 0; host < link.size(); ++host) {
      if (host == to_.host()) continue;
      batches_[at(host)] = {got_targets, take[at(host)]};
      rows_[at(host)] = got_rows;
      got_rows += take[at(host)] * to_.row_bytes();
      got_targets += take[at(host)] * to_.targets_per_row;
    }
  }

  void inside(transport& link) {
    std::vector<counts> give;
    std::int64_t most = 0;
    for (const batch& one : batches_) {
      give.emplace_back(at(to_.ranks_per_host()), 0);
      one.for_each_local(
          to_, [&](std::int64_t, std::int64_t, int local_rank) { ++give.back()[at(local_rank)]; });
      most = std::max(most, sum_of(give.back()));
    }
    char* packed = bytes(most * to_.row_bytes());
    for (std::size_t host = 0; host < batches_.size(); ++host) {
      const blocks parts = side_by_side(give[host], to_.width);
      counts next;
      for (const block& one : side_by_side(give[host], to_.row_bytes())) next.push_back(one.begin);
      batches_[host].for_each_local(to_, [&](std::int64_t row, std::int64_t, int local_rank) {
        copy_row(rows_[host], row, packed + next[at(local_rank)]);
        next[at(local_rank)] += to_.row_bytes();
      });
      const auto from =
          what_.out_blocks.begin() + static_cast<std::ptrdiff_t>(host) * to_.ranks_per_host();
      exchange_rows(link, on_, to_, static_cast<int>(host), {packed, parts},
                    {what_.out, {from, from + to_.ranks_per_host()}});
    }
  }

 private:
  char* bytes(std::int64_t n) { return on_.scratch.take<char>(static_cast<std::size_t>(n)); }
  std::int64_t each_bytes() const { return to_.targets_per_row * 4; }
  void copy_row(const char* rows, std::int64_t row, char* to) const {
    std::memcpy(to, rows + row * to_.row_bytes(), static_cast<std::size_t>(to_.row_bytes()));
  }
  void pack(const counts& give, char* rows, std::int32_t* targets) const {
    counts next;
    for (const block& one : side_by_side(give, 1)) next.push_back(one.begin);
    to_.for_each_remote([&](std::int64_t row, int host, std::int64_t) {
      const std::int64_t slot = next[at(host)]++;
      copy_row(what_.in, row, rows + slot * to_.row_bytes());
      std::copy_n(to_.targets + row * to_.targets_per_row, to_.targets_per_row,
                  targets + slot * to_.targets_per_row);
    });
  }

  const dispatch_request& what_;
  const routing& to_;
  core::execution& on_;
  std::vector<batch> batches_;     // from each host to this rank
  std::vector<const char*> rows_;  // of each batch
};

// Ends the turn in `across` before it serves `inside`, so that two dispatches with swapped groups
// never wait for each other. An earlier failure also drops the ticket of `inside`.
void carry_out(const dispatch_request& what, const ticket_pair& in, core::execution& on) {
  const request all = what.to.whole();
  std::optional<dispatch_run> run;
  try {
    what.to.across->serve(in.across, all, [&](transport& link, core::arena&) {
      run.emplace(what, on);
      run->across(link);
    });
  } catch (...) {
    what.to.inside->drop_failed(in.inside, all);
    throw;
  }
  what.to.inside->serve(in.inside, all, [&](transport& link, core::arena&) { run->inside(link); });
}

}  // namespace

dispatch_request dispatch_call(group& inside, group& across, const velo_tensor* given_in,
                               const velo_tensor* targets, const std::int64_t* out_counts,
                               const velo_tensor* given_out) {
  require_two(inside, across);
  const buffer in = buffer_of(inside.owner(), given_in, "in"),
               names = buffer_of(inside.owner(), targets, "targets"),
               out = buffer_of(inside.owner(), given_out, "out");
  dispatch_request what{{}, in.data, out.data, {}};
  what.to = {&inside, &across, other_call::dispatch, "velo_group_dispatch", in.dtype};
  what.to.read(*given_in, "in", *targets, names);
  require_dtype(out, "out", in);
  require_width(*given_out, "out", what.to, "in");
  what.out_blocks = blocks_of_rows(what.to, out_counts, "out_counts", *given_out, "out");
  require_own(out, in, "in");
  require_own(out, names, "targets");
  return what;
}

void submit(core::stream& on, const dispatch_request& what) {
  submit_to_both(on, what, carry_out);
}

}  // namespace velo::comm
