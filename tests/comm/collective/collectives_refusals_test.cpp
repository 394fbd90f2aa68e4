// Errors of collectives: ranks whose parts differ from what their peers expect, which only these
// ranks report, and wrong arguments, which fail before any rank waits.
#include "comm/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

TEST_CASE("the parts that ranks send must be those that their peers expect") {
  const auto expect = [](const call_record& one, int culprit, const char* expected,
                         const char* got) {
    CHECK_PEER(one, culprit, got);
    CHECK(one.expected == expected);
  };
  const std::int64_t tens[3] = {10, 10, 10};
  SECTION("all_to_all_v") {
    const local_ranks ranks(3);
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const float_tensor in({100}), out({100});
      const std::int64_t give[3] = {5, 6, 7};
      const std::int64_t take[3] = {5 + me.rank, 5 + me.rank, me.rank == 1 ? 9 : 5 + me.rank};
      return velo_group_all_to_all_v(me.stream, me.group, &in.view, give, nullptr, take, nullptr,
                                     &out.view);
    });
    expect(all[1], 2, "all_to_all of 9 float32 (operation 1)",
           "rank 2 with all_to_all of 6 float32");
  }
  SECTION("gather_v") {
    const local_ranks ranks(3);
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const float_tensor in({me.rank == 2 ? 4 : 10}), out({100});
      return velo_group_gather_v(me.stream, me.group, 0, &in.view, tens, nullptr, &out.view);
    });
    expect(all[0], 2, "gather of 10 float32 to rank 0 (operation 1)",
           "rank 2 with gather of 4 float32 to rank 0");
  }
  SECTION("scatter_v") {
    const local_ranks ranks(3);
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const float_tensor in({100}), out({me.rank == 2 ? 4 : 10});
      return velo_group_scatter_v(me.stream, me.group, 0, &in.view, tens, nullptr, &out.view);
    });
    expect(all[2], 0, "scatter of 4 float32 from rank 0 (operation 1)",
           "rank 0 with scatter of 10 float32 from rank 0");
  }
  SECTION("roots and counts that all must know") {
    const local_ranks ranks(3);
    for (const call_record& one : ranks.run([&](const rank_of_group& me) {
           const float_tensor x({100});
           return velo_group_broadcast(me.stream, me.group, me.rank == 1 ? 2 : 0, &x.view);
         }))
      expect(one, 1, "broadcast of 100 float32 from rank 0 (operation 1)",
             "rank 1 with broadcast of 100 float32 from rank 2");
  }
  SECTION("counts of all_gather_v") {
    const local_ranks ranks(2);
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const std::int64_t own = me.rank == 0 ? 10 : 20, counts[2] = {10, own};
      const float_tensor in({own}), out({100});
      return velo_group_all_gather_v(me.stream, me.group, &in.view, counts, nullptr, &out.view);
    });
    CHECK(all[0].code == VELO_ERR_PEER);
    CHECK(all[1].code == VELO_ERR_PEER);
    CHECK(all[1].rank == 1);
  }
}

TEST_CASE("counts, offsets, roots and memory that do not fit are refused by name") {
  const local_ranks ranks(3);
  const float_tensor a({30}), b({30});
  const std::int64_t ten = 10;
  const velo_tensor x = a.view, y = b.view, small = view_of(a.data.data(), f32, ten);
  const velo_stream stream = ranks.stream(0);
  const velo_group group = ranks.group(0);
  SECTION("roots") {
    CHECK_REFUSED(velo_group_broadcast(stream, group, 3, &x), VELO_ERR_ARGUMENT, "root");
    CHECK_REFUSED(velo_group_broadcast(stream, group, -1, &x), VELO_ERR_ARGUMENT, "root");
    CHECK_REFUSED(velo_group_reduce(stream, group, 9, nullptr, &x, &y), VELO_ERR_ARGUMENT, "root");
    CHECK_REFUSED(velo_group_gather(stream, group, 3, &small, &y), VELO_ERR_ARGUMENT, "root");
    CHECK_REFUSED(velo_group_scatter(stream, group, -2, &y, &small), VELO_ERR_ARGUMENT, "root");
  }
  SECTION("tensors that only the root needs") {
    CHECK_REFUSED(velo_group_reduce(stream, group, 0, nullptr, &x, nullptr), VELO_ERR_NULL, "out");
    CHECK_REFUSED(velo_group_gather(stream, group, 0, &small, nullptr), VELO_ERR_NULL, "out");
    CHECK_REFUSED(velo_group_scatter(stream, group, 0, nullptr, &small), VELO_ERR_NULL, "in");
    CHECK_REFUSED(velo_group_gather_v(stream, group, 0, &small, nullptr, nullptr, &y),
                  VELO_ERR_NULL, "counts");
  }
  SECTION("sizes") {
    CHECK_REFUSED(velo_group_all_gather(stream, group, &x, &y), VELO_ERR_SHAPE, "out");
    CHECK_REFUSED(velo_group_reduce_scatter(stream, group, nullptr, &x, &y), VELO_ERR_SHAPE, "in");
    std::int64_t odd = 20;
    velo_tensor twenty = x;
    twenty.shape = &odd;
    CHECK_REFUSED(velo_group_all_to_all(stream, group, &twenty, &twenty), VELO_ERR_SHAPE, "in");
    CHECK_REFUSED(velo_group_all_to_all(stream, group, &x, &twenty), VELO_ERR_SHAPE, "out");
  }
  SECTION("counts") {
    const std::int64_t negative[3] = {10, -1, 10}, many[3] = {10, 10, 11},
                       huge[3] = {10, INT64_MAX, INT64_MAX}, fits[3] = {10, 10, 10};
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, negative, nullptr, &y),
                  VELO_ERR_ARGUMENT, "counts[1]");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, many, nullptr, &y),
                  VELO_ERR_ARGUMENT, "counts[2]");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, huge, nullptr, &y),
                  VELO_ERR_ARGUMENT, "counts[1]");
    CHECK_REFUSED(velo_group_all_to_all_v(stream, group, &x, huge, nullptr, fits, nullptr, &y),
                  VELO_ERR_ARGUMENT, "in_counts[1]");
    const std::int64_t self[3] = {9, 10, 10};
    CHECK_REFUSED(velo_group_all_to_all_v(stream, group, &x, fits, nullptr, self, nullptr, &y),
                  VELO_ERR_ARGUMENT, "out_counts[0]");
    CHECK_REFUSED(velo_group_reduce_scatter_v(stream, group, nullptr, &x, self, &small),
                  VELO_ERR_SHAPE, "in");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, self, nullptr, &y), VELO_ERR_SHAPE,
                  "in");
  }
  SECTION("offsets") {
    const std::int64_t fits[3] = {10, 10, 10}, beyond[3] = {0, 10, 21}, before[3] = {0, -5, 20},
                       meets[3] = {0, 9, 19}, far[3] = {0, 10, INT64_MAX};
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, fits, beyond, &y),
                  VELO_ERR_ARGUMENT, "offsets[2]");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, fits, before, &y),
                  VELO_ERR_ARGUMENT, "offsets[1]");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, fits, far, &y), VELO_ERR_ARGUMENT,
                  "offsets[2]");
    CHECK_REFUSED(velo_group_all_gather_v(stream, group, &small, fits, meets, &y),
                  VELO_ERR_ARGUMENT, "offsets[1]");
    CHECK(last_record().got == "some of rank 0's");
    CHECK_REFUSED(velo_group_all_to_all_v(stream, group, &x, fits, meets, fits, meets, &y),
                  VELO_ERR_ARGUMENT, "out_offsets[1]");
  }
  SECTION("memory") {
    velo_tensor shifted = small;
    shifted.data = static_cast<float*>(x.data) + 1;
    CHECK_REFUSED(velo_group_all_gather(stream, group, &shifted, &x), VELO_ERR_OVERLAP, "out");
    CHECK_REFUSED(velo_group_reduce_scatter(stream, group, nullptr, &x, &shifted), VELO_ERR_OVERLAP,
                  "out");
    const std::int64_t fits[3] = {10, 10, 10}, others[3] = {20, 0, 10};
    CHECK_REFUSED(velo_group_all_to_all_v(stream, group, &x, fits, nullptr, fits, others, &x),
                  VELO_ERR_OVERLAP, "out");
  }
  SECTION("dtypes") {
    velo_tensor ints = y;
    ints.dtype = i32;
    CHECK_REFUSED(velo_group_all_gather(stream, group, &small, &ints), VELO_ERR_DTYPE, "out.dtype");
    CHECK_REFUSED(velo_group_all_to_all(stream, group, &x, &ints), VELO_ERR_DTYPE, "out.dtype");
  }
  ranks.require_barrier();
}
