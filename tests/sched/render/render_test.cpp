// Pictures of timelines: the grid by its characters, what is cut and what is refused. That SVG and
// trace are well formed and hold every action is tested where a parser is at hand
// (tests/tools/velo/schedule_pictures_test.py).
#include "sched/render/text.hpp"
#include "sched/schedule/csv.hpp"
#include "tests/comma_locale.hpp"
#include "tests/sched/schedules.hpp"
#include "velo/velo.h"

using namespace velo;
using namespace velo::testing;
using sched::draw_grid;
using sched::draw_svg;

namespace {

std::size_t count(const std::string& in, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = in.find(part); at != std::string::npos; at = in.find(part, at + 1)) ++found;
  return found;
}

// Two ranks, one F and one B at once in the middle of each.
sched::timeline fused_timeline() {
  sched::costs given;
  given.fused = 2;
  return timed(sched::read_csv("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n"), given);
}

}  // namespace

TEST_CASE("a grid shows when each rank does what") {
  CHECK(draw_grid(timed(made(VELO_SCHEDULE_1F1B, {2, 3}))) ==
        "1f1b: 2 ranks, 2 stages, 3 micro-batches; makespan 12, bubble 25.0 %\n"
        "0 |F0 F1 ......B0--- F2 B1--- ...B2--- | peak 2\n"
        "1 |...F0 B0--- F1 B1--- F2 B2--- ......| peak 1\n");
  CHECK(draw_grid(timed(made(VELO_SCHEDULE_INTERLEAVED, {2, 2}))).find("\n0 |0F0 0F1 2F0 2F1 ") !=
        std::string::npos);
  CHECK(
      draw_grid(fused_timeline()).find("\n1 |......F0--- F1+B0------ B1--------- ............|") !=
      std::string::npos);
}

TEST_CASE("words that do not fit are cut to a letter") {
  const std::string grid = draw_grid(timed(made(VELO_SCHEDULE_1F1B, {2, 2000})));
  CHECK(grid.find("FB") != std::string::npos);
  CHECK(grid.size() < 2 * 4100 + 200);
}

TEST_CASE("a forward and a backward at once are drawn as two halves") {
  const std::string picture = draw_svg(fused_timeline());
  const std::size_t at = picture.find("<title>(1F1;1B0)OVERLAP_F_B: 2 to 4</title>");
  REQUIRE(at != std::string::npos);
  const std::string group = picture.substr(at, picture.find("</g>", at) - at);
  CHECK(count(group, "<rect") == 2);
  CHECK(count(group, R"(height="12.0")") == 2);
  CHECK(count(group, ">1</text>") + count(group, ">0</text>") == 2);
}

TEST_CASE(
    "a measured timeline is shown in milliseconds, its communication below what is computed") {
  sched::timeline times =
      timed(sched::read_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"));
  times.measured = std::make_shared<const sched::spans>(sched::spans{
      {{0, 2000000}, {2000000, 2500000}, {9000000, 9500000}, {9500000, 12000000}},
      {{2500000, 2500000}, {2500000, 5000000}, {5000000, 9000000}, {9000000, 9000000}}});
  times.times.ranks = {{0, 12000000, 4500000, 1}, {2500000, 9000000, 6500000, 1}};
  const std::string picture = draw_svg(times);
  CHECK(picture.find("<title>0B0: 9.5 to 12</title>") != std::string::npos);
  CHECK(picture.find("makespan 12 ms, bubble 62.5 %") != std::string::npos);
  sched::timeline longer = times;
  longer.times.ranks[0].last = 15191126075;
  CHECK(draw_grid(longer).find("makespan 15191.1 ms,") != std::string::npos);
  const std::size_t sent = picture.find("<title>0SEND_F0: 2 to 2.5</title>");
  REQUIRE(sent != std::string::npos);
  CHECK(picture.substr(sent, 200).find(R"(height="4.0")") != std::string::npos);
  CHECK(count(picture, "RECV_F0:") == 0);  // took no time
  const std::string trace = write_trace(times);
  CHECK(trace.find(
            R"({"name": "0SEND_F0", "ph": "X", "pid": 0, "tid": 1, "cat": "SEND_F", "ts": 2000, )"
            R"("dur": 500,)") != std::string::npos);
}

TEST_CASE("a measured run of few actions fits a screen, and what takes its time has its number") {
  const auto measured = [](std::int64_t short_ns, std::int64_t pause_ns) {
    std::string row;
    sched::spans took(1);
    std::int64_t now = 0;
    for (int i = 0; i < 24; ++i) {  // F and B of each micro-batch, one of these quick, a pause once
      for (const char* kind : {"0F", "0B"}) {
        row += (row.empty() ? "" : ",") + (kind + std::to_string(i));
        const std::int64_t takes = i == 7 ? short_ns : 1000000 + 40000 * i;
        took[0].push_back({now, now + takes});
        now += takes + (i == 5 ? pause_ns : 0);
      }
    }
    sched::timeline times = timed(sched::read_csv(row + "\n"));
    times.measured = std::make_shared<const sched::spans>(took);
    times.times.ranks = {{0, now, now, 1}};
    return draw_svg(times);
  };
  const auto width = [](const std::string& picture) {
    return std::stod(picture.substr(picture.find("width=\"") + 7));
  };
  const std::string quick = measured(700, 0), steady = measured(1000000, 0);
  CHECK(width(quick) <= 1280);
  CHECK(count(quick, "<text class=\"n") == 2 * 23);
  CHECK(width(steady) <= 1280);
  CHECK(count(steady, "<text class=\"n") == 2 * 24);
  CHECK(width(measured(700, 20000000000)) <= 1920);  // nothing is to be read then
  const std::string many = draw_svg(timed(made(VELO_SCHEDULE_1F1B, {4, 512})));
  CHECK(width(many) > 12000);  // many actions, as wide as a picture becomes
}

TEST_CASE(
    "every number of a simulated picture is drawn, also where ranks wait for most of the time") {
  const std::string bubbles = draw_svg(timed(made(VELO_SCHEDULE_GPIPE, {64, 16})));
  CHECK(count(bubbles, "<text class=\"n") == 2 * 64 * 16);
}

TEST_CASE("every kind of a schedule has its name in a picture") {
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE; kind <= sched::last_schedule_kind; ++kind) {
    INFO(kind);
    CHECK(draw_grid(timed(made(kind, {4, 8}))).find("schedule: ") == std::string::npos);
  }
}

TEST_CASE("nothing is drawn as nothing") {
  const sched::timeline nothing = timed(sched::schedule{});
  CHECK(draw_grid(nothing) ==
        "custom: 0 ranks, 0 stages, 0 micro-batches; makespan 0, bubble 0.0 %\n");
  CHECK(draw_svg(nothing).find("</svg>\n") != std::string::npos);
}

TEST_CASE("pictures and texts are the same under any locale") {
  sched::costs given;
  given.forward = 1.5;
  const sched::timeline of = timed(made(VELO_SCHEDULE_ZBV, {2, 3}), given);
  constexpr std::string (*writers[])(const sched::timeline&) = {
      &sched::write_summary, &sched::write_summary_json, &draw_svg, &sched::write_trace,
      &draw_grid};
  std::vector<std::string> before;
  for (const auto write : writers) before.push_back(write(of));
  const comma_locale comma;
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(writers[i](of) == before[i]);
}

TEST_CASE("more actions than anyone looks at are refused before anything is drawn") {
  const live_schedule order(VELO_SCHEDULE_1F1B, {129, 4096});
  velo_timeline times = nullptr;
  REQUIRE(velo_schedule_simulate(order, nullptr, &times) == VELO_OK);
  std::uint64_t needed = 7;
  for (const velo_timeline_format format :
       {VELO_TIMELINE_SVG, VELO_TIMELINE_TRACE, VELO_TIMELINE_GRID})
    CHECK(velo_timeline_write(times, format, nullptr, 0, &needed) == VELO_ERR_ARGUMENT);
  CHECK(velo_timeline_write(times, VELO_TIMELINE_GRID + 1, nullptr, 0, &needed) ==
        VELO_ERR_ARGUMENT);
  CHECK(velo_timeline_write(times, -1, nullptr, 0, &needed) == VELO_ERR_ARGUMENT);
  CHECK(needed == 7);
  CHECK(velo_timeline_write(times, VELO_TIMELINE_SUMMARY, nullptr, 0, &needed) == VELO_OK);
  velo_timeline_destroy(times);
}
