// Rows of text: PyTorch's own, velo's, and invalid ones.
#include "sched/schedule/csv.hpp"

#include "sched/schedule/json.hpp"
#include "tests/core/fails.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;
using sched::read_csv;
using sched::write_csv;

TEST_CASE("what is written is read as the same schedule") {
  for (const sched::schedule& order :
       {made(VELO_SCHEDULE_1F1B, {4, 6}), made(VELO_SCHEDULE_INTERLEAVED, {2, 5, 2, 3}),
        made(VELO_SCHEDULE_ZBV, {3, 6}), made(VELO_SCHEDULE_VHALF, {4, 6}),
        made(VELO_SCHEDULE_DUALPIPEV, {3, 6}), made(VELO_SCHEDULE_DUALPIPE, {2, 4}),
        made(VELO_SCHEDULE_DUALPIPE, {6, 16})}) {
    const sched::schedule again = read_csv(write_csv(order));
    CHECK(again.sizes().stages == order.sizes().stages);
    CHECK(again.sizes().microbatches == order.sizes().microbatches);
    CHECK(write_csv(again) == write_csv(order));
    CHECK(violations_of(again).empty());
    CHECK(price(again).makespan == price(order).makespan);
  }
}

TEST_CASE("what is written as JSON is read as the same schedule, with all that rows leave out") {
  velo_schedule_desc uneven = desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 4});
  const std::int32_t noops[] = {3, 1};
  uneven.layout = "Ett|t||ttmL";
  uneven.noop_layers = noops;
  uneven.noop_count = 2;
  for (const sched::schedule& order :
       {made(VELO_SCHEDULE_1F1B, {4, 6}), made(VELO_SCHEDULE_ZBV, {3, 6}),
        made(VELO_SCHEDULE_DUALPIPEV, {3, 6}), made(VELO_SCHEDULE_DUALPIPE, {4, 8}),
        made(VELO_SCHEDULE_SEQ1F1B, {3, 4, 0, 0, 0, 2}),
        made(VELO_SCHEDULE_NANOPIPE, {4, 8, 0, 0, VELO_SCHEDULE_SWAP}), generate(uneven, {}),
        sched::schedule{}}) {
    const std::string text = sched::write_json(order);
    const sched::schedule again = sched::read_json(text);
    CHECK(sched::write_json(again) == text);
    CHECK(violations_of(again).empty());
    CHECK(price(again).makespan == price(order).makespan);
    CHECK(price(again).peak == price(order).peak);
  }
}

TEST_CASE("JSON that leaves everything out but actions is as rows are") {
  const sched::schedule order =
      sched::read_json(R"({"actions": [["0F0", "0B0"], ["1F0", "1B0"]]})");
  CHECK(write_csv(order) == "0F0,0B0\n1F0,1B0\n");
  CHECK(order.sizes().kind == VELO_SCHEDULE_CUSTOM);
  CHECK(order.layers() == nullptr);
}

TEST_CASE("JSON that makes no sense is refused by its member") {
  const auto refused = [](const std::string& text, const std::string& argument) {
    const auto found = failure_of([&] { sched::read_json(text); });
    INFO(text << ": " << found.argument << ": expected " << found.expected << ", got "
              << found.got);
    CHECK(found.code ==
          (argument == "text" && text.back() != ']' ? VELO_ERR_PARSE : VELO_ERR_ARGUMENT));
    CHECK(found.argument == argument);
  };
  const std::string actions = R"("actions": [["0F0", "0B0"], ["1F0", "1B0"]]})";
  refused("", "text");
  refused("{", "text");
  refused(std::string("{}\0", 3), "text");
  refused("[]", "text");
  refused("{}", "text.actions");
  refused(R"({"actions": 1})", "text.actions");
  refused(R"({"actions": [1]})", "text.actions[0]");
  refused(R"({"actions": [["0F0"], ["0F1", 7]]})", "text.actions[1][1]");
  refused(R"({"actions": [["0F0"], ["0F1", "F"]]})", "text.actions[1][1]");
  refused(R"({"action": []})", "text.action");
  refused(R"({"kind": "1f2b", )" + actions, "text.kind");
  refused(R"({"ranks": 3, )" + actions, "text.ranks");
  refused(R"({"ranks": -1, )" + actions, "text.ranks");
  refused(R"({"ranks": 2.5, )" + actions, "text.ranks");
  refused(R"({"stages": 1, )" + actions, "text.stages");
  refused(R"({"stages": 16777216, )" + actions, "text.stages");
  CHECK(failure_of([&] { sched::read_json(R"({"stages": 16777215, )" + actions); }).code ==
        VELO_ERR_ARGUMENT);
  refused(R"({"chains": 3, )" + actions, "text.chains");
  refused(R"({"microbatches": 3, "chains": 2, )" + actions, "text.microbatches");
  refused(R"({"placement": [[0]], )" + actions, "text.placement");
  refused(R"({"placement": [[0], [0]], )" + actions, "text.placement");
  refused(R"({"placement": [[0], [2]], )" + actions, "text.placement");
  refused(R"({"placement": [[0], ["x"]], )" + actions, "text.placement[1][0]");
  refused(R"({"layout": "Et|t", )" + actions, "text.layout, character 5");
  refused(R"({"layout": "EtL", )" + actions, "text.layout");
  refused(R"({"noop_layers": [0], )" + actions, "text.layout");
  refused(R"({"layout": "Et|tL", "noop_layers": [2], )" + actions, "text.noop_layers");
}

TEST_CASE("PyTorch's names, line ends and idle steps are read") {
  const sched::schedule order = read_csv(
      "0UNSHARD,0F0,0SEND_F0,,,0RECV_B0,0I0,0W0,0REDUCE_GRAD\r\n"
      ",1RECV_F0,1F0, 1B0,1SEND_B0\r\n");
  CHECK(row_of(order, 0) == "0UNSHARD 0F0 0SEND_F0 0RECV_B0 0I0 0W0 0REDUCE_GRAD");
  CHECK(row_of(order, 1) == "1RECV_F0 1F0 1B0 1SEND_B0");
  CHECK(order.rank_of(1) == 1);
  const sched::schedule waits = read_csv("0F0,0SEND_F0,0WAIT_SEND_F0,0WAIT_REDUCE_GRAD\n");
  CHECK(row_of(waits, 0) == "0F0 0SEND_F0");
  const sched::schedule two = read_csv("0F0,(0F1;1B0)OVERLAP_F_B\n");
  sched::action both{};
  two.read(0, 1, 1, &both);
  CHECK(sched::same(both, sched::fused(0, 1, 1, 0)));
  CHECK(write_csv(two) == "0F0,(0F1;1B0)OVERLAP_F_B\n");
}

TEST_CASE("a rank without actions keeps its row, rows at the end without any are none") {
  const sched::schedule order = read_csv("0F0,0B0\n\n1F0,1B0\n\n\n");
  CHECK(order.sizes().ranks == 3);
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
                            "0OPTIMIZER0",
                            "0RECOMPUTE",
                            "0OFFLOAD",
                            "0F99999999",
                            "99999999F0",
                            "(0F0;1B0)",
                            "(0F0,1B0)OVERLAP_F_B",
                            "(0F0;1I0)OVERLAP_F_B",
                            "(0B0;1F0)OVERLAP_F_B",
                            "(;)OVERLAP_F_B",
                            "()OVERLAP_F_B",
                            "OVERLAP_F_B",
                            "WAIT_SEND_F0",
                            "0WAIT_SEND_Fx",
                            "0WAIT_SEND0",
                            "0F0 1"}) {
    CAPTURE(wrong);
    CHECK_REFUSED(failure_of([&] { read_csv("0F0,0B0\n1F0, " + std::string(wrong) + "\n"); }),
                  VELO_ERR_ARGUMENT, "text, line 2, column 6");
  }
}

TEST_CASE("numbers far beyond what there is to do are refused before memory is taken for them") {
  const auto found = failure_of([] { read_csv("0F16777215,16777215F0\n"); });
  CHECK(found.argument == "text");
  CHECK(failure_of([] { read_csv("1000F1000\n"); }).code == VELO_ERR_ARGUMENT);
  CHECK(failure_of([] { read_csv(std::string(70000, '\n')); }).code == VELO_ERR_ARGUMENT);
  CHECK(read_csv("").sizes().ranks == 0);
}
