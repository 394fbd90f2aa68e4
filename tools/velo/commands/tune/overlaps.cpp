// Two ranks are threads of this process, each with a context of one thread. Every part is timed in
// the same number of rounds on both ranks, and the median of the rounds of rank 0 counts.
//
// Three times are taken of the operators that the job calls: of work and exchange together, of the
// work alone, of the exchange alone. What the first is less than the sum of the others is hidden.
// Tensor parallelism: a feed-forward's linear layers. Context parallelism: a causal ring, whose
// work is that of two attentions of half of the rows. Data parallelism: two products of weight
// gradients whose sums go in buckets beside the next product.
#include "tools/velo/commands/tune/overlaps.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands/tune/matrix.hpp"

namespace command {
namespace {

using clock = std::chrono::steady_clock;
constexpr int rounds = 31;

// A rank: its context and its group.
struct overlap_rank {
  const velo::context& context;
  const velo::group& group;
  std::int64_t number;

  velo::stream_ref stream() const { return context.inline_stream(); }

  double median(const std::function<void()>& call) const {
    call();  // scratch
    std::vector<double> all;
    for (int round = 0; round < rounds; ++round) {
      group.barrier(stream());
      const clock::time_point begin = clock::now();
      call();
      all.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    }
    std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
    return all[rounds / 2];
  }
};

// Seconds of a round.
struct part_seconds {
  double together = 0, work = 0, exchange = 0;

  double hidden() const {
    return exchange > 0 ? std::clamp((work + exchange - together) / exchange, 0.0, 1.0) : 0;
  }
};

// Runs `work` on two ranks, and returns what it gave on rank 0.
using rank_work = std::function<part_seconds(const overlap_rank&)>;
part_seconds on_two_ranks(const rank_work& work) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  const velo::context contexts[] = {velo::context::create(desc), velo::context::create(desc)};
  const velo_context handles[] = {contexts[0].get(), contexts[1].get()};
  const auto groups = velo::group::create_local<std::vector<velo::group>>(handles, 2);
  part_seconds found[2];
  std::string failures[2];
  const auto run = [&](std::size_t rank) {
    try {
      found[rank] = work({contexts[rank], groups[rank], static_cast<std::int64_t>(rank)});
    } catch (const std::exception& why) {
      failures[rank] = why.what();
      try {
        groups[rank].abort();
      } catch (const std::exception&) {  // it has ended
      }
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  for (const std::string& one : failures)
    if (!one.empty()) throw std::runtime_error(one);
  return found[0];
}

// A feed-forward's two linear layers, with the gather and the scatter of ranks that share rows.
part_seconds linear_seconds(const overlap_rank& rank, const overlap_sizes& of) {
  const std::int64_t own = std::max<std::int64_t>(of.rows / 2, 1);
  matrix x({own, of.hidden}, of.wide), up({of.inner, of.hidden}, of.wide),
      middle({own * 2, of.inner}, of.wide), down({of.hidden, of.inner}, of.wide),
      y({own, of.hidden}, of.wide), all({own * 2, of.hidden}, of.wide);
  const velo::tensor_view in = x.view(), first = up.view(), inner = middle.view();
  const velo::pack first_pack = packed(rank.context, up, true),
                   last_pack = packed(rank.context, down, true);
  const velo::tensor_view last = down.view(), out = y.view(), whole = all.view();
  const auto layers = [&](velo_group group) {  // of one rank: all rows
    velo::column_parallel_linear(rank.stream(), velo::column_parallel_linear_args()
                                                    .group(group)
                                                    .x(group == nullptr ? whole : in)
                                                    .weight(first)
                                                    .packed(first_pack)
                                                    .y(inner)
                                                    .sequence_parallel(true));
    velo::row_parallel_linear(rank.stream(), velo::row_parallel_linear_args()
                                                 .group(group)
                                                 .x(inner)
                                                 .weight(last)
                                                 .packed(last_pack)
                                                 .y(group == nullptr ? whole : out)
                                                 .sequence_parallel(true));
  };
  const auto exchange = [&] {
    rank.group.all_gather(rank.stream(), in, whole);
    rank.group.reduce_scatter(rank.stream(), whole, out);
  };
  return {rank.median([&] { layers(rank.group.get()); }), rank.median([&] { layers(nullptr); }),
          rank.median(exchange)};
}

// A causal ring of two ranks, with the exchange of keys and values.
part_seconds ring_seconds(const overlap_rank& rank, const overlap_sizes& of) {
  const std::int64_t own = std::max<std::int64_t>(of.rows / 2, 1);
  matrix query({own, of.heads, of.head_dim}, of.wide), out({own, of.heads, of.head_dim}, of.wide);
  matrix key({own, of.kv_heads, of.head_dim}, of.wide), value = key;
  matrix keys({own * 2, of.kv_heads, of.head_dim}, of.wide);
  const velo::tensor_view q = query.view(), k = key.view(), v = value.view(), y = out.view();
  const velo::tensor_view all = keys.view();
  const auto attention = [&](velo_group group) {
    velo::context_parallel_attention(rank.stream(), velo::context_parallel_attention_args()
                                                        .group(group)
                                                        .query(q)
                                                        .key(k)
                                                        .value(v)
                                                        .attention_out(y)
                                                        .scale(0.1));
  };
  const auto exchange = [&] {
    rank.group.all_gather(rank.stream(), k, all);
    rank.group.all_gather(rank.stream(), v, all);
  };
  return {rank.median([&] { attention(rank.group.get()); }),
          2 * rank.median([&] { attention(nullptr); }), rank.median(exchange)};
}

// Two products of weight gradients, with their sums.
part_seconds bucket_seconds(const overlap_rank& rank, const overlap_sizes& of) {
  matrix x({of.rows, of.hidden}, of.wide), dy({of.rows, of.inner}, of.wide);
  const std::int64_t count = of.inner * of.hidden, counts[] = {count, count};
  std::vector<float> sums(static_cast<std::size_t>(2 * count), 0.01F);
  const velo::tensor_view all(sums.data(), {2 * count}), in = x.view(), from = dy.view();
  const velo::stream link = velo::stream::create(rank.context);
  const velo::buckets buckets = velo::buckets::create(link, rank.group, all, counts, 2);
  const auto product = [&](std::int64_t which) {
    const velo::tensor_view to(sums.data() + which * count, {of.inner, of.hidden});
    velo::matmul_add_fp32(rank.stream(),
                          velo::matmul_add_fp32_args().total_input(in).grad_output(from).grad(to));
  };
  const auto step = [&](bool products, bool exchanges) {
    for (const std::int64_t which : {0, 1}) {
      if (products) product(which);
      if (exchanges) buckets.ready(rank.stream(), which);
    }
    if (exchanges) buckets.finish(rank.stream());
  };
  try {
    const double together = rank.median([&] { step(true, true); });
    const double products = rank.median([&] { step(true, false); });
    return {together, products, rank.median([&] { step(false, true); })};
  } catch (...) {  // before `buckets` waits for the other rank
    rank.group.abort();
    throw;
  }
}

}  // namespace

overlaps measured_overlaps(const overlap_sizes& of) {
  const auto hidden = [&](auto seconds) {
    return on_two_ranks([&](const overlap_rank& rank) { return seconds(rank, of); }).hidden();
  };
  return {hidden(linear_seconds), hidden(ring_seconds), hidden(bucket_seconds)};
}

}  // namespace command
