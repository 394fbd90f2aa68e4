// Rows of text: PyTorch's own, velo's, and what is neither.
#include "sched/csv.hpp"

#include "tests/core/fails.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using sched::read_csv;
using sched::write_csv;

TEST_CASE("what is written is read as the same schedule") {
  for (const sched::schedule& order :
       {test::made(VELO_SCHEDULE_1F1B, {4, 6}), test::made(VELO_SCHEDULE_INTERLEAVED, {2, 5, 2, 3}),
        test::made(VELO_SCHEDULE_ZBV, {3, 6}), test::made(VELO_SCHEDULE_VHALF, {4, 6}),
        test::made(VELO_SCHEDULE_DUALPIPEV, {3, 6}), test::made(VELO_SCHEDULE_DUALPIPE, {2, 4}),
        test::made(VELO_SCHEDULE_DUALPIPE, {6, 16})}) {
    const sched::schedule again = read_csv(write_csv(order));
    CHECK(again.what().stages == order.what().stages);
    CHECK(again.what().microbatches == order.what().microbatches);
    CHECK(write_csv(again) == write_csv(order));
    CHECK(test::violations_of(again).empty());
    CHECK(test::price(again).makespan == test::price(order).makespan);
  }
}

TEST_CASE("PyTorch's names, line ends and idle steps are read") {
  const sched::schedule order = read_csv(
      "0UNSHARD,0F0,0SEND_F0,,,0RECV_B0,0I0,0W0,0REDUCE_GRAD\r\n"
      ",1RECV_F0,1F0, 1B0,1SEND_B0\r\n");
  CHECK(test::row_of(order, 0) == "0UNSHARD 0F0 0SEND_F0 0RECV_B0 0I0 0W0 0REDUCE_GRAD");
  CHECK(test::row_of(order, 1) == "1RECV_F0 1F0 1B0 1SEND_B0");
  CHECK(order.rank_of(1) == 1);
  const sched::schedule two = read_csv("0F0,(0F1;1B0)OVERLAP_F_B\n");
  sched::action both{};
  two.read(0, 1, 1, &both);
  CHECK(sched::same(both, sched::fused(0, 1, 1, 0)));
  CHECK(write_csv(two) == "0F0,(0F1;1B0)OVERLAP_F_B\n");
}

TEST_CASE("a rank without actions keeps its row, rows at the end without any are none") {
  const sched::schedule order = read_csv("0F0,0B0\n\n1F0,1B0\n\n\n");
  CHECK(order.what().ranks == 3);
  CHECK(order.length(1) == 0);
  CHECK(order.rank_of(1) == 2);
}

TEST_CASE("what is no action is named with its place") {
  for (const char* wrong : {"F0",
                            "0",
                            "0F",
                            "0G0",
                            "0F-1",
                            "-1F0",
                            "0F0x",
                            "0f0",
                            "0SEND0",
                            "0UNSHARD1",
                            "0F99999999",
                            "99999999F0",
                            "(0F0;1B0)",
                            "(0F0,1B0)OVERLAP_F_B",
                            "(0F0;1I0)OVERLAP_F_B",
                            "(0B0;1F0)OVERLAP_F_B",
                            "(;)OVERLAP_F_B",
                            "()OVERLAP_F_B",
                            "OVERLAP_F_B",
                            "0F0 1"}) {
    CAPTURE(wrong);
    const auto found =
        test::failure_of([&] { read_csv("0F0,0B0\n1F0, " + std::string(wrong) + "\n"); });
    CHECK(found.code == VELO_ERR_ARGUMENT);
    CHECK(std::string(found.argument) == "text, line 2, column 6");
  }
}

TEST_CASE("numbers far beyond what there is to do are refused before memory is taken for them") {
  const auto found = test::failure_of([] { read_csv("0F16777215,16777215F0\n"); });
  CHECK(std::string(found.argument) == "text");
  CHECK(test::failure_of([] { read_csv("1000F1000\n"); }).code == VELO_ERR_ARGUMENT);
  CHECK(test::failure_of([] { read_csv(std::string(70000, '\n')); }).code == VELO_ERR_ARGUMENT);
  CHECK(read_csv("").what().ranks == 0);
}
