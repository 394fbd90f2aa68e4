// Users of reductions, over ranks of two hosts: buckets have the bits of one all_reduce, whatever
// their sizes and whether all ranks or parts get the result; fused operators have those of product
// and collective. Ranks are threads, over MPI by a plugin of the tests.
#include <numeric>

#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/overlap/overlap_apart.hpp"

using namespace velo::testing;

namespace {

const char* const placings[] = {"0011", "0101", "0001"};
// Some below what goes from rank to rank, most above.
const std::vector<std::int64_t> slices = {700, 3, 1, 300, 1000, 17, 64, 20000, 5};

std::int64_t total() {
  return std::accumulate(slices.begin(), slices.end(), std::int64_t{0});
}

// Numbers far apart, so that each order has another sum.
void fill(elements& all, int rank) {
  for (std::int64_t i = 0; i < all.count(); ++i)
    all.set(i, std::ldexp(static_cast<double>((i * 37 + rank * 101) % 1009 - 504),
                          static_cast<int>((i + 5 * rank) % 16) - 20));
}

// For a rank, the elements that differ between buckets and one collective.
struct comparison {
  velo_buckets_desc desc;
  velo_dtype dtype;

  velo_status differ(const rank_of_group& me, std::int64_t& wrong) const {
    const elements_ptr gradients = make_elements(dtype, total()),
                       whole = make_elements(dtype, total());
    fill(*gradients, me.rank);
    fill(*whole, me.rank);
    const velo_tensor view = gradients->view(), other = whole->view();
    velo_reduction how = VELO_REDUCTION_INIT;
    if (desc.scale == 0) how.op = VELO_REDUCE_AVG;
    if (desc.scale != 0) how.scale = desc.scale;
    velo_status done = velo_group_all_reduce(me.stream, me.group, &how, &other, &other);
    velo_buckets all = nullptr;
    if (done == VELO_OK)
      done = velo_buckets_create(me.stream, me.group, &view, slices.data(),
                                 static_cast<std::int64_t>(slices.size()), &desc, &all);
    if (done == VELO_OK) done = velo_buckets_finish(all, me.stream);
    if (done == VELO_OK && desc.mode == VELO_BUCKETS_REDUCE_SCATTER)
      done = velo_buckets_gather(all, me.stream, &view);
    velo_buckets_destroy(all);
    for (std::int64_t i = 0; i < total(); ++i) wrong += gradients->get(i) != whole->get(i);
    return done;
  }
};

}  // namespace

TEST_CASE("buckets of ranks on two hosts have the bits of one all_reduce") {
  for (const char* hosts : placings) {
    const ranks_on_hosts ranks(hosts);
    for (const velo_dtype dtype : {f32, bf16})
      for (const std::uint64_t bytes : {1, 1000, 2500, 1 << 20})
        for (const double scale : {0.0, 0.7})
          for (const velo_bucket_mode mode :
               {VELO_BUCKETS_ALL_REDUCE, VELO_BUCKETS_REDUCE_SCATTER}) {
            comparison with{VELO_BUCKETS_DESC_INIT, dtype};
            with.desc.bytes = bytes, with.desc.scale = scale, with.desc.mode = mode;
            std::int64_t wrong[4] = {};
            ranks.require([&](const rank_of_group& me) { return with.differ(me, wrong[me.rank]); });
            INFO(hosts << ", " << int{dtype.bits} << " bits, buckets of " << bytes << ", scale "
                       << scale << ", mode " << mode);
            for (const std::int64_t one : wrong) CHECK(one == 0);
          }
  }
}

namespace {

// A rank's product with the sum of all, fused and composed; `scatters`: its rows of the sum.
struct layer {
  matrix x, weight, fused, product, composed;

  layer(velo_dtype dtype, std::int64_t rows, int rank, int ranks, bool scatters)
      : x(dtype, {rows, 40}, 2 * rank),
        weight(dtype, {40, 24}, 2 * rank + 1),
        fused(dtype, {scatters ? rows / ranks : rows, 24}),
        product(dtype, {rows, 24}),
        composed(dtype, {scatters ? rows / ranks : rows, 24}) {}

  velo_status run(const rank_of_group& me, bool scatters) const {
    const velo_tensor in = x.view(), by = weight.view(), out = fused.view(), all = product.view(),
                      own = composed.view();
    velo_matmul_all_reduce_args sums = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    sums.group = me.group, sums.x = &in, sums.weight = &by, sums.y = &out;
    velo_matmul_reduce_scatter_args parts = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    parts.group = me.group, parts.x = &in, parts.weight = &by, parts.y = &out;
    velo_status done = scatters ? velo_matmul_reduce_scatter(me.stream, &parts)
                                : velo_matmul_all_reduce(me.stream, &sums);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &in, args.b = &by, args.c = &all;
    if (done == VELO_OK) done = velo_matmul(me.stream, &args);
    if (done != VELO_OK) return done;
    // The whole sum first: a rank's rows of it are what reduce_scatter must give.
    done = velo_group_all_reduce(me.stream, me.group, nullptr, &all, &all);
    if (done != VELO_OK || !scatters) return done;
    velo_tensor rows = all;
    rows.shape = own.shape;
    const std::int64_t first = me.rank * composed.count() * (own.dtype.bits / 8);
    rows.byte_offset += static_cast<std::uint64_t>(first);
    std::memcpy(own.data, static_cast<const char*>(rows.data) + rows.byte_offset,
                static_cast<std::size_t>(composed.count() * (own.dtype.bits / 8)));
    return done;
  }
};

}  // namespace

TEST_CASE("fused operators of ranks on two hosts have the bits of product and all_reduce") {
  for (const char* hosts : placings) {
    const ranks_on_hosts ranks(hosts);
    for (const char* level : {"0", "1", "2"})
      for (const velo_dtype dtype : {f32, bf16})
        for (const std::int64_t rows : {4, 40, 600})
          for (const bool scatters : {false, true}) {
            std::vector<std::unique_ptr<layer>> all;
            for (int rank = 0; rank < 4; ++rank) {
              all.push_back(std::make_unique<layer>(dtype, rows, rank, 4, scatters));
              REQUIRE(velo_config_set(ranks.context(rank), "level", level) == VELO_OK);
            }
            const auto at = [&](int rank) -> const layer& {
              return *all[static_cast<std::size_t>(rank)];
            };
            ranks.require([&](const rank_of_group& me) { return at(me.rank).run(me, scatters); });
            INFO(hosts << ", level " << level << ", " << int{dtype.bits} << " bits, " << rows
                       << " rows, scatters " << scatters);
            for (int rank = 0; rank < 4; ++rank)
              CHECK(at(rank).fused.same_bits(scatters ? at(rank).composed : at(rank).product));
          }
  }
}

namespace {

using overlap_calls = std::vector<std::unique_ptr<overlap_call>>;

overlap_calls calls_of(overlap_kind how, velo_dtype dtype, std::int64_t rows, bool transposed) {
  overlap_calls all;
  for (int rank = 0; rank < 4; ++rank) {
    all.push_back(std::make_unique<overlap_call>(how, dtype, overlap_call::sizes{rows, 40, 24},
                                                 rank, 4, transposed));
    all.back()->slices = transposed ? 3 : 0;
  }
  return all;
}

// With a second group of all ranks, which the operator with two sums over.
velo_status run_fused(const overlap_call& one, const rank_of_group& me) {
  const std::int32_t members[] = {0, 1, 2, 3};
  velo_group second = nullptr;
  velo_status done = velo_group_create_part(me.group, members, 4, nullptr, &second);
  if (done == VELO_OK) done = one.run(me.stream, {me.group, second});
  velo_group_destroy(second);
  return done;
}

void check_overlap(const ranks_on_hosts& ranks, const overlap_calls& fused,
                   const overlap_calls& apart) {
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  ranks.require([&](const rank_of_group& me) { return run_fused(*fused[at(me.rank)], me); });
  ranks.require([&](const rank_of_group& me) {
    return run_apart(*apart[at(me.rank)], me.stream, {me.group, me.group});
  });
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(fused[r]->same_bits(*apart[r]));
    CHECK(fused[r]->borders_kept());
  }
}

}  // namespace

TEST_CASE("each operator beside a collective has the bits of the calls apart on two hosts") {
  for (const char* hosts : placings) {
    const ranks_on_hosts ranks(hosts);
    for (const char* level : {"0", "1", "2"}) {
      for (int rank = 0; rank < 4; ++rank)
        REQUIRE(velo_config_set(ranks.context(rank), "level", level) == VELO_OK);
      for (const overlap_kind how : overlap_kinds)
        for (const velo_dtype dtype : {f32, bf16, f16})
          for (const std::int64_t rows : {8, 200}) {
            INFO(name_of(how) << " on " << hosts << ", level " << level << ", " << int{dtype.code}
                              << "." << int{dtype.bits} << ", " << rows << " rows");
            const bool transposed = (rows == 200) == (dtype.bits == 16);
            check_overlap(ranks, calls_of(how, dtype, rows, transposed),
                          calls_of(how, dtype, rows, transposed));
          }
    }
  }
}
