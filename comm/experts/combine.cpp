// Checks of a combine, and the exchanges that return and sum its rows.
#include "comm/experts/combine.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "comm/collective/calls.hpp"
#include "core/context.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"
#include "core/tensor/check.hpp"

namespace velo::comm {

using core::at;
using core::fail;
using core::text;

namespace {

constexpr velo_dtype int32{VELO_DTYPE_INT, 32, 1}, float32{VELO_DTYPE_FLOAT, 32, 1};

bool is_wide(velo_dtype t) {
  return t.bits == 32;
}

// One combine on one rank.
class combine_run {
 public:
  combine_run(const combine_request& what, core::execution& on)
      : what_(what),
        to_(what.to),
        on_(on),
        batches_(at(to_.hosts())),
        arrived_(at(to_.hosts())),
        sources_(at(std::max<std::int64_t>(to_.targets_per_row, to_.hosts()))),
        factors_(at(to_.targets_per_row)) {}

  // Sends the other hosts the targets and weights of this rank's rows that went there.
  void request(transport& link) {
    to_.check_targets();
    batches_[at(to_.host())] = {to_.targets, what_.weights, to_.rows};
    if (link.size() == 1) return;
    counts give(at(link.size())), take = give;
    to_.for_each_remote([&](std::int64_t, int host, std::int64_t) { ++give[at(host)]; });
    exchange(link, on_, to_, give, take);
    const std::int64_t words = to_.targets_per_row * (to_.weighted ? 2 : 1);
    char* asked = bytes(4 * sum_of(give) * words);
    pack(give, words, asked);
    char* got = bytes(4 * sum_of(take) * words);
    exchange(link, on_, to_, int32, {asked, side_by_side(give, words)},
             {got, side_by_side(take, words)});
    for (int host = 0; host < link.size(); ++host) {
      if (host == to_.host()) continue;
      const std::int64_t rows = take[at(host)];
      const auto* targets = reinterpret_cast<const std::int32_t*>(got);
      const auto* weights = reinterpret_cast<const float*>(targets + rows * to_.targets_per_row);
      batches_[at(host)] = {targets, to_.weighted ? weights : nullptr, rows};
      got += 4 * rows * words;
    }
  }

  // Receives the rows of this host for all batches, and sums those that belong to other hosts.
  void collect(transport& link) {
    std::vector<counts> take;
    std::int64_t most = 0, words = 0;
    give_.assign(batches_.size(), 0);
    for (int host = 0; host < to_.hosts(); ++host) {
      take.push_back(count(host));
      if (host != to_.host()) most = std::max(most, sum_of(take.back()));
      words += give_[at(host)];
    }
    char* others = bytes(most * to_.row_bytes());
    char* own = bytes(sum_of(take[at(to_.host())]) * to_.row_bytes());
    auto* sums = reinterpret_cast<float*>(bytes(4 * words));
    sums_ = sums;
    for (int host = 0; host < to_.hosts(); ++host) {
      const auto from = what_.in_blocks.begin() + std::ptrdiff_t{host} * to_.ranks_per_host();
      char* rows = host == to_.host() ? own : others;
      exchange_rows(link, on_, to_, host, {what_.in, {from, from + to_.ranks_per_host()}},
                    {rows, side_by_side(take[at(host)], to_.width)});
      arrived_[at(host)] = {rows, take[at(host)], to_.row_bytes()};
      if (host != to_.host()) sums = add_up(host, sums);
    }
  }

  // Sends each host its sums.
  void send_sums(transport& link) {
    part_ = reinterpret_cast<float*>(bytes(4 * to_.width * to_.hosts()));
    got_.assign(batches_.size(), nullptr);
    if (link.size() == 1) return;
    counts take(batches_.size());
    to_.for_each_remote(
        [&](std::int64_t, int host, std::int64_t n) { take[at(host)] += words_of(n); });
    auto* got = reinterpret_cast<float*>(bytes(4 * sum_of(take)));
    exchange(link, on_, to_, float32, {sums_, side_by_side(give_, 1)},
             {got, side_by_side(take, 1)});
    for (std::size_t host = 0; host < got_.size(); ++host) {
      got_[host] = got;
      got += take[host];
    }
  }

  // Adds the sums of all hosts and rounds the result.
  void finish() {
    const reduction_kernels& kernels = reductions_for(on_.isa);
    const bool bf16 = what_.out_dtype.code == VELO_DTYPE_BFLOAT;
    const reduce_fn add = is_wide(what_.out_dtype) ? kernels.same[0][0] : kernels.narrow[0][bf16];
    const std::int64_t bytes = to_.width * what_.out_dtype.bits / 8;
    std::vector<const void*> parts(batches_.size());
    for (std::int64_t row = 0; row < to_.rows; ++row) {
      char* out = what_.out + row * bytes;
      std::size_t n = 0;
      for (int host = 0; host < to_.hosts(); ++host) {
        const float* one = part_of(row, host);
        if (one != nullptr) parts[n++] = one;
      }
      if (n == 0) std::memset(out, 0, static_cast<std::size_t>(bytes));
      if (n > 0) add({parts.data(), static_cast<int>(n), out, to_.width, 1, false});
    }
  }

 private:
  struct rows_to_sum : batch {
    rows_to_sum() = default;
    rows_to_sum(const std::int32_t* targets, const float* given, std::int64_t rows)
        : batch{targets, rows}, weights(given) {}
    float weight(std::int64_t target) const { return weights != nullptr ? weights[target] : 1; }
    const float* weights = nullptr;
  };
  // The rows received from each local rank, in the order of the targets.
  struct arrivals {
    arrivals() = default;
    arrivals(const char* rows, const counts& each, std::int64_t row_bytes) : row_bytes(row_bytes) {
      for (const block& one : side_by_side(each, row_bytes)) next.push_back(rows + one.begin);
    }
    const char* take(int local_rank) {
      return std::exchange(next[at(local_rank)], next[at(local_rank)] + row_bytes);
    }
    std::vector<const char*> next;
    std::int64_t row_bytes = 0;
  };

  char* bytes(std::int64_t n) { return on_.scratch.take<char>(at(n)); }
  bool is_at(std::int32_t target, int host) const {
    return target >= 0 && target / to_.ranks_per_host() == host;
  }
  // The 4-byte words that a host sends for a row with n targets on it.
  std::int64_t words_of(std::int64_t n) const {
    return n == 1 ? core::ceil_div(to_.row_bytes(), 4) : to_.width;
  }

  void pack(const counts& give, std::int64_t words, char* to) const {
    struct block {
      std::int32_t* targets;
      float* weights;
    };
    std::vector<block> next;
    for (const std::int64_t rows : give) {
      auto* targets = reinterpret_cast<std::int32_t*>(to);
      next.push_back({targets, reinterpret_cast<float*>(targets + rows * to_.targets_per_row)});
      to += 4 * rows * words;
    }
    to_.for_each_remote([&](std::int64_t row, int host, std::int64_t) {
      block& one = next[at(host)];
      one.targets =
          std::copy_n(to_.targets + row * to_.targets_per_row, to_.targets_per_row, one.targets);
      if (to_.weighted)
        one.weights = std::copy_n(what_.weights + row * to_.targets_per_row, to_.targets_per_row,
                                  one.weights);
    });
  }

  // Counts the rows of a host's batch that each local rank sends, and the words of its sums.
  counts count(int host) {
    const rows_to_sum& of = batches_[at(host)];
    counts take(at(to_.ranks_per_host()));
    std::int64_t last = -1, n = 0;
    const auto end_row = [&] {
      if (n > 0 && host != to_.host()) give_[at(host)] += words_of(n);
      n = 0;
    };
    of.for_each_local(to_, [&](std::int64_t row, std::int64_t, int local_rank) {
      if (row != std::exchange(last, row)) end_row();
      ++take[at(local_rank)];
      ++n;
    });
    end_row();
    return take;
  }

  float* add_up(int host, float* sums) {
    for (std::int64_t row = 0; row < batches_[at(host)].rows; ++row) {
      const std::int64_t n = find(host, row);
      if (n == 1) copy_row(sources_[0], sums);
      if (n > 1) weigh(n, sums);
      if (n > 0) sums += words_of(n);
    }
    return sums;
  }

  // Copies whole words. An odd number of 16-bit elements leaves padding, which is sent and
  // therefore cleared.
  void copy_row(const void* row, float* to) const {
    const std::size_t bytes = at(to_.row_bytes());
    std::memcpy(to, row, bytes);
    std::memset(reinterpret_cast<char*>(to) + bytes, 0, at(4 * words_of(1)) - bytes);
  }

  // Finds this host's rows and weights for one row of a batch.
  std::int64_t find(int host, std::int64_t row) {
    const rows_to_sum& of = batches_[at(host)];
    std::int64_t n = 0;
    for (std::int64_t i = row * to_.targets_per_row; i < (row + 1) * to_.targets_per_row; ++i) {
      if (!is_at(of.targets[i], to_.host())) continue;
      sources_[at(n)] = arrived_[at(host)].take(of.targets[i] % to_.ranks_per_host());
      factors_[at(n++)] = of.weight(i);
    }
    return n;
  }

  // A host's sum for a row of this rank; nullptr if the row has no target on that host.
  const float* part_of(std::int64_t row, int host) {
    float* part = part_ + host * to_.width;
    std::int64_t n = 0;
    if (host == to_.host()) {
      n = find(host, row);
      if (n > 0) weigh(n, part);
      return n > 0 ? part : nullptr;
    }
    for (std::int64_t i = row * to_.targets_per_row; i < (row + 1) * to_.targets_per_row; ++i)
      if (is_at(to_.targets[i], host)) {
        factors_[0] = batches_[at(to_.host())].weight(i);
        ++n;
      }
    if (n == 0) return nullptr;
    const float* got = std::exchange(got_[at(host)], got_[at(host)] + words_of(n));
    if (n > 1) return got;
    sources_[0] = got;
    weigh(1, part);
    return part;
  }

  void weigh(std::int64_t n, float* sum) const {
    const int type = is_wide(to_.dtype) ? 0 : to_.dtype.code == VELO_DTYPE_BFLOAT ? 2 : 1;
    reductions_for(on_.isa).weighted[type](
        {sources_.data(), factors_.data(), static_cast<int>(n), sum, to_.width});
  }

  const combine_request& what_;
  const routing& to_;
  core::execution& on_;
  std::vector<rows_to_sum> batches_;  // from each host to this rank
  std::vector<arrivals> arrived_;     // of each batch
  std::vector<const void*> sources_;  // of one sum
  std::vector<float> factors_;
  counts give_;  // words of sums for each host
  const float* sums_ = nullptr;
  std::vector<const float*> got_;  // the next sum of each host
  float* part_ = nullptr;          // one row for each host
};

// Serves `inside` during the turn in `across`, so the call has the same position among the calls of
// both groups. An earlier failure also drops the ticket of `inside`.
void carry_out(const combine_request& what, const ticket_pair& in, core::execution& on) {
  const request all = what.to.whole();
  std::optional<combine_run> run;
  bool inside_served = false;
  try {
    what.to.across->serve(in.across, all, [&](transport& across_hosts, core::arena&) {
      run.emplace(what, on);
      run->request(across_hosts);
      inside_served = true;
      what.to.inside->serve(in.inside, all,
                            [&](transport& on_host, core::arena&) { run->collect(on_host); });
      run->send_sums(across_hosts);
    });
  } catch (...) {
    if (!inside_served) what.to.inside->drop_failed(in.inside, all);
    throw;
  }
  run->finish();
}

bool is_summed(velo_dtype t) {
  return (t.code == VELO_DTYPE_FLOAT && (t.bits == 32 || t.bits == 16)) ||
         (t.code == VELO_DTYPE_BFLOAT && t.bits == 16);
}

const float* weights_of(const velo_tensor* given, const combine_request& what, const buffer& out) {
  if (given == nullptr) return nullptr;
  const buffer weights = buffer_of(what.to.inside->owner(), given, "weights");
  const std::int64_t each = width_of(*given, "weights");
  require_rows(*given, "weights", what.to.rows, "as many as out has");
  if (each != what.to.targets_per_row)
    fail(VELO_ERR_SHAPE, "weights",
         core::concat("rows of ", what.to.targets_per_row, " elements, as targets has"),
         core::number(each));
  require_dtype(weights, "weights", {nullptr, 0, float32});
  require_own(out, weights, "weights");
  return reinterpret_cast<const float*>(weights.data);
}

}  // namespace

combine_request combine_call(group& inside, group& across, const velo_tensor* given_in,
                             const std::int64_t* in_counts, const velo_tensor* targets,
                             const velo_tensor* weights, const velo_tensor* given_out) {
  require_two(inside, across);
  const buffer in = buffer_of(inside.owner(), given_in, "in"),
               names = buffer_of(inside.owner(), targets, "targets"),
               out = buffer_of(inside.owner(), given_out, "out");
  combine_request what{{}, in.data, {}, nullptr, out.data, out.dtype};
  what.to = {&inside, &across, other_call::combine, "velo_group_combine", in.dtype};
  what.to.weighted = weights != nullptr;
  what.to.read(*given_out, "out", *targets, names);
  if (!is_summed(in.dtype))
    core::refuse_dtype(
        in.dtype, core::dtype_names(core::dtype_f32 | core::dtype_f16 | core::dtype_bf16), "in");
  if (is_wide(in.dtype) || !(out.dtype.code == VELO_DTYPE_FLOAT && is_wide(out.dtype)))
    require_dtype(out, "out", in);
  require_width(*given_in, "in", what.to, "out");
  what.in_blocks = blocks_of_rows(what.to, in_counts, "in_counts", *given_in, "in");
  what.weights = weights_of(weights, what, out);
  require_own(out, in, "in");
  require_own(out, names, "targets");
  return what;
}

void submit(core::stream& on, const combine_request& what) {
  submit_to_both(on, what, carry_out);
}

}  // namespace velo::comm
