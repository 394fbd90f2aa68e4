// Profiles: what is recorded at each level, and how they are read.
#include "velo/profiler.h"

#include <jansson.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "velo/velo.hpp"

using namespace std::string_literals;

namespace {

velo::profiler record(const velo::context& of, velo_profiler_level level,
                      std::uint64_t events = 1000) {
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  desc.level = level;
  desc.events = events;
  desc.rank = 3;
  return velo::profiler::create(of.get(), desc);
}

std::vector<velo_profiler_event> events_of(const velo::profiler& from) {
  std::vector<velo_profiler_event> all;
  const auto count = static_cast<std::int64_t>(from.stats().events);
  for (std::int64_t i = 0; i < count; ++i) all.push_back(from.event(i));
  return all;
}

std::vector<std::string> names_of(const velo::profiler& from) {
  std::vector<std::string> all;
  for (const velo_profiler_event& each : events_of(from)) all.emplace_back(each.name);
  return all;
}

void multiply(const velo::stream_ref& on) {
  static const std::vector<float> a(16 * 16, 1), b(16 * 16, 1);
  static std::vector<float> y(16 * 16);
  velo::matmul(on, velo::matmul_args()
                       .a(velo::tensor_view(a.data(), {16, 16}))
                       .b(velo::tensor_view(b.data(), {16, 16}))
                       .c(velo::tensor_view(y.data(), {16, 16})));
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("operators and ranges are recorded in the order of their ends, until the stop") {
  const velo::context context = velo::context::create();
  const velo::stream_ref now = context.inline_stream();
  multiply(now);
  const velo::profiler profile = record(context, VELO_PROFILER_TIMES);
  profile.begin("step 1");
  profile.begin("forward");
  multiply(now);
  profile.end();
  multiply(now);
  profile.end();
  profile.begin("left open");
  profile.stop();
  multiply(now);
  CHECK(names_of(profile) == names{"matmul", "forward", "matmul", "step 1", "left open"});
  const auto all = events_of(profile);
  for (const velo_profiler_event& each : all) {
    CHECK(each.begin_ns <= each.end_ns);
    CHECK(each.begin_ns >= profile.stats().begin_ns);
    CHECK(each.end_ns <= profile.stats().end_ns);
    CHECK(each.flops == 0);
    CHECK(each.bytes == 0);
    CHECK(each.thread == all[0].thread);
  }
  CHECK(all[1].begin_ns <= all[0].begin_ns);
  CHECK(all[0].end_ns <= all[1].end_ns);
  CHECK(all[0].kind == VELO_PROFILER_OPERATOR);
  CHECK(all[0].detail != ""s);
  CHECK(all[1].kind == VELO_PROFILER_RANGE);
  CHECK(all[1].detail == ""s);
}

TEST_CASE("level 1 has the work of operators, level 2 the waits") {
  const velo::context context = velo::context::create();
  const velo::stream stream = velo::stream::create(context.get());
  velo::profiler profile = record(context, VELO_PROFILER_WORK);
  multiply(stream);
  stream.synchronize();
  profile.stop();
  REQUIRE(names_of(profile) == names{"matmul"});
  CHECK(events_of(profile)[0].flops == 2 * 16 * 16 * 16);
  CHECK(events_of(profile)[0].bytes == 3 * 16 * 16 * 4);
  profile = record(context, VELO_PROFILER_WAITS);
  velo::event done = velo::event::create(context.get());
  done.record(context.inline_stream());
  stream.wait(done.get());
  multiply(stream);
  stream.synchronize();
  profile.stop();
  std::map<std::string, int> count;
  for (const velo_profiler_event& each : events_of(profile)) {
    ++count[each.name];
    if (each.name == "queue"s) CHECK(each.detail == "velo_matmul"s);
    CHECK((each.kind == VELO_PROFILER_WAIT) == (each.name != "matmul"s));
  }
  CHECK(count ==
        std::map<std::string, int>{{"event", 1}, {"matmul", 1}, {"queue", 1}, {"synchronize", 1}});
}

TEST_CASE("counters and a profile are kept beside each other") {
  velo::context context = velo::context::create();
  context.set("counters", "on");
  const velo::profiler profile = record(context, VELO_PROFILER_TIMES);
  multiply(context.inline_stream());
  profile.stop();
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  REQUIRE(velo_op_get_counts(context.get(), "matmul", &counts) == VELO_OK);
  CHECK(counts.calls == 1);
  CHECK(counts.seconds > 0);
  CHECK(names_of(profile) == names{"matmul"});
}

TEST_CASE("calls of a group are recorded with its label, failed ones as such") {
  const velo::context first = velo::context::create(), second = velo::context::create();
  const velo::stream queue = velo::stream::create(second);
  const velo_context contexts[] = {first, second};
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.label = "tp";
  const auto ranks = velo::group::create_local<std::vector<velo::group>>(contexts, 2, &desc);
  const velo::profiler of_first = record(first, VELO_PROFILER_WORK),
                       of_second = record(second, VELO_PROFILER_TIMES);
  float mine[3] = {1, 2, 3}, theirs[3] = {5, 5, 5};
  const velo::tensor_view x(mine, {3}), y(theirs, {3});
  ranks[1].all_reduce(queue, y, y);
  ranks[0].all_reduce(first.inline_stream(), x, x);
  queue.synchronize();
  const velo::stream waiting = velo::stream::create(first);
  ranks[0].barrier(waiting);
  while (ranks[0].history<std::string>().find("\"begun\"") == std::string::npos)
    std::this_thread::yield();
  ranks[1].abort();
  CHECK_THROWS_AS(waiting.synchronize(), velo::error);
  of_first.stop();
  of_second.stop();
  const auto all = events_of(of_first);
  REQUIRE(names_of(of_first) == names{"all_reduce", "barrier"});
  CHECK(all[0].kind == VELO_PROFILER_COLLECTIVE);
  CHECK(all[0].detail == "tp"s);
  CHECK(all[0].bytes == 12);
  CHECK(all[1].kind == VELO_PROFILER_FAILED);
  REQUIRE(names_of(of_second) == names{"all_reduce"});
  CHECK(events_of(of_second)[0].bytes == 0);
}

TEST_CASE("events without room are counted, and those of threads do not mix") {
  const velo::context context = velo::context::create();
  const velo::profiler profile = record(context, VELO_PROFILER_TIMES, 150);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        profile.begin(("thread " + std::to_string(i)).c_str());
        profile.end();
      }
    });
  for (std::thread& each : threads) each.join();
  profile.stop();
  CHECK(profile.stats().events == 150);
  CHECK(profile.stats().dropped == 50);
  std::map<std::int32_t, std::set<std::string>> texts;
  for (const velo_profiler_event& each : events_of(profile)) texts[each.thread].insert(each.name);
  CHECK(texts.size() <= 4);
  for (const auto& [thread, all] : texts) CHECK(all.size() == 1);
}

TEST_CASE("a profile is stopped while others work") {
  const velo::context context = velo::context::create();
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) multiply(context.inline_stream());
  });
  for (int i = 0; i < 200; ++i) {
    const velo::profiler profile = record(context, VELO_PROFILER_TIMES, 8);
    std::this_thread::yield();
    if (i % 2 == 0) profile.stop();
  }
  done = true;
  other.join();
}

TEST_CASE("a trace is JSON that has every event, with times in microseconds") {
  const velo::context context = velo::context::create();
  const velo::stream stream = velo::stream::create(context.get());
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  desc.level = VELO_PROFILER_WAITS;
  desc.rank = 5;
  desc.label = "a \"rank\"";
  const velo::profiler profile = velo::profiler::create(context.get(), desc);
  multiply(stream);
  stream.synchronize();
  profile.stop();
  const std::string text = profile.write<std::string>(VELO_PROFILER_TRACE);
  json_t* trace = json_loads(text.c_str(), 0, nullptr);
  REQUIRE(trace != nullptr);
  const json_t* events = json_object_get(trace, "traceEvents");
  std::map<std::string, int> kinds;
  for (std::size_t i = 0; i < json_array_size(events); ++i) {
    const json_t* each = json_array_get(events, i);
    CHECK(json_integer_value(json_object_get(each, "pid")) == 5);
    const std::string kind = json_string_value(json_object_get(each, "ph"));
    ++kinds[kind];
    if (kind != "X") continue;
    const double from = json_number_value(json_object_get(each, "ts")) * 1e3;
    CHECK(from >= static_cast<double>(profile.stats().begin_ns) - 1);
    CHECK(from <= static_cast<double>(profile.stats().end_ns));
    CHECK(json_number_value(json_object_get(each, "dur")) >= 0);
  }
  json_decref(trace);
  CHECK(kinds["X"] == 2);  // matmul and synchronize
  CHECK(kinds["b"] == 1);
  CHECK(kinds["e"] == 1);
  CHECK(kinds["M"] >= 2);
  const std::string lines = profile.write<std::string>(VELO_PROFILER_EVENTS);
  CHECK(text.find(lines) != std::string::npos);
  json_t* list = json_loads(("[" + lines + "," + lines + "]").c_str(), 0, nullptr);
  CHECK(list != nullptr);
  json_decref(list);
}

TEST_CASE("what a profiler cannot do is refused by name") {
  const velo::context context = velo::context::create();
  const auto refusal = [](auto&& call) {
    try {
      call();
    } catch (const velo::error& e) {
      return std::string(e.argument()) + ": " + e.expected();
    }
    return "accepted"s;
  };
  const auto created = [&](auto&& change) {
    velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
    change(desc);
    return refusal([&] { velo::profiler::create(context.get(), desc); });
  };
  CHECK(created([](auto& d) { d.level = 3; }).find("desc.level: ") == 0);
  CHECK(created([](auto& d) { d.rank = -1; }) == "desc.rank: 0 or more");
  CHECK(created([](auto& d) { d.events = 0; }) == "desc.events: 1 to 16777216");
  CHECK(created([](auto& d) { d.events = (1u << 24) + 1; }) == "desc.events: 1 to 16777216");
  CHECK(created([](auto& d) { d.label = "\xff"; }).find("desc.label: ") == 0);
  const velo::profiler profile = record(context, VELO_PROFILER_TIMES);
  CHECK(created([](auto&) {}) == "context: a context that no profiler records");
  CHECK(refusal([&] { profile.end(); }) == "profiler: a range of this thread that has not ended");
  CHECK(refusal([&] { profile.begin(std::string(64, 'x').c_str()); }) == "text: at most 63 bytes");
  CHECK(refusal([&] { profile.event(0); }) == "profiler: one that has stopped");
  CHECK(refusal([&] { profile.write<std::string>(VELO_PROFILER_TRACE); }) ==
        "profiler: one that has stopped");
  profile.stop();
  profile.stop();
  CHECK(refusal([&] { profile.begin("x"); }) == "profiler: one that records");
  CHECK(refusal([&] { profile.event(0); }).find("index: ") == 0);
  CHECK(refusal([&] { profile.save("/no such folder/x"); }) != "accepted");
  CHECK(created([](auto&) {}) == "accepted");
}
