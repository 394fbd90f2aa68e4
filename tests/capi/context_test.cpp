// The context through the C API: descriptions read with care, configuration, refusal of wrong
// handles, life after fork.
#include "velo/context.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/child_process.hpp"
#include "tests/context.hpp"
#include "tests/core/environment.hpp"
#include "tests/refusals.hpp"
#include "tests/structs.hpp"
#include "tests/threads.hpp"
#include "velo/stream.h"
#include "velo/tensor.h"

using namespace velo::testing;

namespace {

std::string value_of(velo_context context, const char* key, std::string* origin = nullptr) {
  char text[64];
  const char* from = nullptr;
  REQUIRE(velo_config_get(context, key, text, sizeof text, nullptr, &from) == VELO_OK);
  if (origin != nullptr) *origin = from;
  return text;
}

// The status of a refused creation; `context` must come back untouched.
velo_status refused(const velo_context_desc& desc) {
  auto* const untouched = reinterpret_cast<velo_context>(0x1000);
  velo_context context = untouched;
  const velo_status status = velo_context_create(&desc, &context);
  CHECK(context == untouched);
  return status;
}

}  // namespace

TEST_CASE("a context has one inline stream, which is always idle") {
  const live_context context;
  const velo_stream stream = context.inline_stream();
  CHECK(stream == context.inline_stream());
  std::int32_t done = 0;
  CHECK(velo_stream_query(stream, &done) == VELO_OK);
  CHECK(done == 1);
  CHECK(velo_stream_synchronize(stream) == VELO_OK);
  CHECK(velo_stream_clear(stream) == VELO_OK);
}

TEST_CASE("struct_size is judged before anything else is read") {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.config_json = reinterpret_cast<const char*>(8);  // must not be followed
  for (const std::uint32_t size : {0u, 4u, 55u, 4097u, 0xffffffffu}) {
    desc.struct_size = size;
    CHECK_REFUSED(refused(desc), VELO_ERR_STRUCT, "desc.struct_size");
  }
}

TEST_CASE("a description from newer headers passes while its unknown tail is zero") {
  struct newer {
    velo_context_desc known = VELO_CONTEXT_DESC_INIT;
    std::uint64_t later = 0;
  } desc;
  desc.known.struct_size = sizeof desc;
  desc.known.threads = 1;
  { const live_context context(desc.known); }
  desc.later = 1;
  CHECK(refused(desc.known) == VELO_ERR_UNSUPPORTED);
}

TEST_CASE("a description's parts are named when they are wrong") {
  const bare_environment bare;
  const velo_allocator no_functions{sizeof(velo_allocator), 0, nullptr, nullptr, nullptr};
  const velo_allocator short_struct{3, 0, nullptr, nullptr, nullptr};
  const velo_parallel_for no_threads{
      sizeof(velo_parallel_for), 0, nullptr,
      [](void*, std::int64_t, void (*)(void*, std::int64_t), void*) {}};
  using desc = velo_context_desc;
  check_refusals(
      desc VELO_CONTEXT_DESC_INIT, refused,
      {{[&](desc& d) { d.device.type = 2; }, VELO_ERR_DEVICE, "desc.device"},
       {[&](desc& d) { d.threads = -3; }, VELO_ERR_ARGUMENT, "desc.threads"},
       {[&](desc& d) { d.allocator = &no_functions; }, VELO_ERR_NULL, "desc.allocator.allocate"},
       {[&](desc& d) { d.allocator = &short_struct; }, VELO_ERR_STRUCT,
        "desc.allocator.struct_size"},
       {[&](desc& d) { d.parallel_for = &no_threads; }, VELO_ERR_ARGUMENT,
        "desc.parallel_for.threads"},
       {[&](desc& d) { d.config_json = "{\"speed\": 1}"; }, VELO_ERR_NOT_FOUND,
        "desc.config_json.speed"}});
  desc malformed = VELO_CONTEXT_DESC_INIT;
  malformed.config_json = "{\n  \"level\": 1,,\n}";
  CHECK(refused(malformed) == VELO_ERR_PARSE);
  CHECK(last_record().got.find("line 2, column") == 0);
}

TEST_CASE("configuration shows values and origins and refuses what is late") {
  const bare_environment bare;
  const environment level("VELO_LEVEL", "1");
  const live_context context(R"({"threads": 2, "level": 0})");
  std::string origin;
  CHECK(value_of(context, "level", &origin) == "1");
  CHECK(origin == "environment");
  CHECK(value_of(context, "threads", &origin) == "2");
  CHECK(origin == "code");
  CHECK(value_of(context, "closures", &origin) == "on");
  CHECK(origin == "default");
  CHECK(context.stats().threads == 2);

  CHECK(velo_config_set(context, "level", "2") == VELO_ERR_STATE);
  CHECK(velo_config_set(context, "closures", "off") == VELO_OK);
  CHECK(value_of(context, "closures") == "off");
  CHECK(velo_config_set(context, "threads", "3") == VELO_OK);
  CHECK(context.stats().threads == 3);
  CHECK(velo_config_set(context, "threads", "-1") == VELO_ERR_ARGUMENT);
  CHECK(velo_config_set(context, "nonsense", "1") == VELO_ERR_NOT_FOUND);
  CHECK(velo_config_set(context, "kernel.nonsense", "x") == VELO_ERR_NOT_FOUND);
  CHECK(velo_config_set(context, "kernel.npu_rms_norm", "reference") == VELO_ERR_NOT_FOUND);
  CHECK_REFUSED(velo_config_set(context, "kernel.rms_norm", "avx"), VELO_ERR_ARGUMENT, "value");
  CHECK_THAT(last_record().expected, Catch::Contains("avx512") && Catch::Contains("reference"));
  CHECK(velo_config_set(context, "kernel.rms_norm", "reference") == VELO_OK);
  CHECK(value_of(context, "kernel.rms_norm") == "reference");
  CHECK(value_of(context, "kernel.matmul").empty());
  CHECK_REFUSED(velo_config_set(context, nullptr, "1"), VELO_ERR_NULL, "key");
  CHECK_REFUSED(velo_config_set(context, "isa", nullptr), VELO_ERR_NULL, "value");

  std::uint64_t needed = 0;
  REQUIRE(velo_config_list(context, nullptr, 0, &needed) == VELO_OK);
  std::string list(needed, ' ');
  REQUIRE(velo_config_list(context, &list[0], needed, nullptr) == VELO_OK);
  CHECK(list.find("{\"key\":\"level\",\"value\":\"1\",\"origin\":\"environment\"") !=
        std::string::npos);
}

TEST_CASE("the host's threads are used, at most as many as the key allows") {
  const bare_environment bare;
  velo_parallel_for host{
      sizeof(velo_parallel_for), 4, nullptr,
      [](void*, std::int64_t tasks, void (*task)(void*, std::int64_t), void* data) {
        for (std::int64_t i = 0; i < tasks; ++i) task(data, i);
      }};
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.parallel_for = &host;
  {
    const live_context context(desc);
    CHECK(context.stats().threads == 4);
  }
  desc.threads = 3;
  const live_context context(desc);
  CHECK(context.stats().threads == 3);
}

TEST_CASE("log lines reach the host's sink when asked for") {
  const bare_environment bare;
  std::vector<std::string> lines;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.log = [](void* user, velo_log_level, const char* component, const char* line) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::string(component) + ": " + line);
  };
  desc.log_user = &lines;
  { const live_context quiet(desc); }
  CHECK(lines.empty());
  desc.config_json = R"({"log": "info"})";
  { const live_context chatty(desc); }
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("context: created: isa ") == 0);
  desc.config_json = nullptr;
  const live_context context(desc);
  velo_stream_destroy(context.inline_stream());
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].find("handle: velo_stream_destroy") == 0);
  CHECK(velo_stream_synchronize(context.inline_stream()) == VELO_OK);
}

TEST_CASE(
    "a handle that cannot be destroyed is logged to its own context's sink while that lives") {
  const bare_environment bare;
  std::vector<std::string> mine, theirs;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.log = [](void* user, velo_log_level level, const char* component, const char* line) {
    CHECK(level == VELO_LOG_WARN);
    static_cast<std::vector<std::string>*>(user)->push_back(std::string(component) + ": " + line);
  };
  desc.log_user = &theirs;
  const live_context other(desc);
  desc.log_user = &mine;
  velo_event orphan = nullptr;
  {
    const live_context context(desc);
    const velo_event event = context.new_event();
    velo_event_destroy(event);
    CHECK(mine.empty());
    velo_event_destroy(event);
    REQUIRE(mine.size() == 1);
    CHECK(mine[0] == "handle: velo_event_destroy: event: expected an event, got a destroyed event");
    velo_stream_destroy(reinterpret_cast<velo_stream>(orphan = context.new_event()));
    CHECK(mine.size() == 2);
  }
  velo_event_destroy(orphan);  // whose context is gone
  CHECK(mine.size() == 2);
  CHECK(theirs.empty());
}

TEST_CASE("a handle of another kind is refused by name") {
  const live_context context;
  velo_stream stream = context.inline_stream();
  const auto as_stream = reinterpret_cast<velo_stream>(static_cast<velo_context>(context));
  CHECK(velo_stream_synchronize(as_stream) == VELO_ERR_HANDLE);
  CHECK(last_record().got == "a context");
  CHECK(last_record().expected == "a stream");
  CHECK(last_record().argument == "stream");
  CHECK(last_record().function == "velo_stream_synchronize");
  CHECK(velo_context_stream(nullptr, &stream) == VELO_ERR_NULL);
  velo_event_destroy(reinterpret_cast<velo_event>(stream));  // refused, recorded, ignored
  CHECK(last_record().function == "velo_event_destroy");
  CHECK(last_record().got == "a stream");
  CHECK(velo_stream_synchronize(stream) == VELO_OK);
}

TEST_CASE("destroying a context destroys its streams and events") {
  velo_context context = nullptr;
  REQUIRE(velo_context_create(nullptr, &context) == VELO_OK);
  velo_stream own = nullptr, queue = nullptr;
  velo_event event = nullptr;
  REQUIRE(velo_context_stream(context, &own) == VELO_OK);
  REQUIRE(velo_stream_create(context, &queue) == VELO_OK);
  REQUIRE(velo_event_create(context, &event) == VELO_OK);
  velo_context_destroy(context);
  CHECK(velo_stream_synchronize(own) == VELO_ERR_HANDLE);
  CHECK(last_record().got == "a destroyed stream");
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_HANDLE);
  CHECK(velo_event_synchronize(event, 0) == VELO_ERR_HANDLE);
  CHECK(last_record().got == "a destroyed event");
  CHECK(velo_context_stream(context, &own) == VELO_ERR_HANDLE);
  CHECK(last_record().got == "a destroyed context");
  velo_context_destroy(context);
  velo_context_destroy(nullptr);
}

TEST_CASE("contexts do not see each other") {
  const bare_environment bare;
  const live_context first(R"({"threads": 1, "level": 0})"), second(R"({"threads": 3})");
  CHECK(value_of(first, "level") == "0");
  CHECK(value_of(second, "level") == "2");
  CHECK(first.stats().threads == 1);
  CHECK(second.stats().threads == 3);
}

TEST_CASE("contexts may be made and destroyed by many threads at once") {
  on_threads(4, [] {
    for (int i = 0; i < 20; ++i) {
      velo_context context = nullptr;
      velo_stream stream = nullptr;
      if (velo_context_create(nullptr, &context) != VELO_OK) continue;
      velo_stream_create(context, &stream);
      velo_context_destroy(context);
    }
  });
  const live_context after;
  CHECK(velo_stream_synchronize(after.inline_stream()) == VELO_OK);
}

TEST_CASE("a stats struct is written no further than its size") {
  const live_context context;
  struct {
    velo_context_stats known;
    std::uint64_t later;
  } stats;
  std::memset(&stats, 0x5a, sizeof stats);
  stats.known.struct_size = sizeof stats;
  REQUIRE(velo_context_get_stats(context, &stats.known) == VELO_OK);
  CHECK(stats.known.struct_size == sizeof stats);
  CHECK(stats.known.operator_calls == 0);
  CHECK(stats.later == 0x5a5a5a5a5a5a5a5au);
  stats.known.struct_size = 16;
  CHECK(velo_context_get_stats(context, &stats.known) == VELO_ERR_STRUCT);
}

TEST_CASE("a parent's handles are refused in the child, and the child can have its own") {
  const live_context context(R"({"threads": 2})");
  const velo_stream stream = context.inline_stream(), queue = context.new_stream();
  const velo_event event = context.new_event();
  const int failed_at = in_child([&]() -> int {
    std::int32_t done = 0;
    velo_context_stats stats{};
    stats.struct_size = sizeof stats;
    velo_stream made = nullptr;
    if (velo_stream_query(stream, &done) != VELO_ERR_STATE) return 1;
    if (velo_stream_synchronize(queue) != VELO_ERR_STATE) return 2;
    if (velo_event_record(event, stream) != VELO_ERR_STATE) return 3;
    if (velo_context_get_stats(context, &stats) != VELO_ERR_STATE) return 4;
    if (velo_stream_create(context, &made) != VELO_ERR_STATE) return 5;
    if (last_record().got != "one made before fork") return 6;
    velo_stream_destroy(queue);
    velo_context_destroy(context);  // ignored: its threads are the parent's
    const velo_context_desc desc = context_desc(1);
    velo_context own = nullptr;
    if (velo_context_create(&desc, &own) != VELO_OK) return 7;
    if (velo_context_stream(own, &made) != VELO_OK) return 8;
    if (velo_stream_synchronize(made) != VELO_OK) return 9;
    if (velo_stream_query(stream, &done) != VELO_ERR_STATE) return 10;
    velo_context_destroy(own);
    return 0;
  });
  CHECK(failed_at == 0);
  CHECK(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(velo_context_create(nullptr, nullptr) == VELO_ERR_NULL);
}
