// Every exported function, called with everything that is wrong: NULL in turn, integers at their
// ends, live handles of every other kind, destroyed handles. A status that the spec lists for the
// function is expected, never a crash.
//
// The functions and their parameters come from the generated table, and the calls go through
// velo_invoke, so a new function is swept as soon as it is in the spec. A call that does not return
// within its deadline ends the program with its name.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/text/utf8.hpp"
#include "tests/abi/sweep_facts.hpp"
#include "tests/abi/sweep_world.hpp"
#include "velo/velo.h"

namespace {

using namespace velo::testing;

constexpr unsigned deadline_seconds = 30;
constexpr const char* facts_file = VELO_SWEEP_FACTS_FILE;
const char* volatile current = "";

void overdue(int) {
  const char* name = current;
  (void)!write(STDERR_FILENO, name, std::strlen(name));
  constexpr char text[] = " did not return in time\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(99);
}

// Whether the spec lists a code for a function or operator; MEMORY any call may give.
bool is_listed(const function_info& f, velo_status status) {
  const char* code = "";
  velo_status_describe(status, &code, nullptr);
  const std::string& all = self_description();
  std::size_t at = all.find("{\"name\":\"" + std::string(f.name) + "\",\"header\"");
  if (at == std::string::npos)
    at = all.find("{\"name\":\"" + std::string(f.name).substr(5) + "\",\"aliases\"");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = all.find("\"errors\":[", at), end = all.find(']', begin);
  const std::string wanted = "\"" + std::string(code).substr(std::strlen("VELO_ERR_")) + "\"";
  return status == VELO_ERR_MEMORY ||
         all.substr(begin, end - begin).find(wanted) != std::string::npos;
}

// Frees what a successful call handed out, so that a leak checker has nothing to say.
void give_back(const function_info& f, const std::vector<velo_value>& values) {
  for (int i = 0; i < f.parameter_count; ++i) {
    const parameter_info& p = f.parameters[i];
    if (p.dir != direction::out || std::strcmp(p.ownership, "own") != 0) continue;
    void* made = nullptr;
    std::memcpy(&made, values[static_cast<std::size_t>(i)].as.p, sizeof made);
    if (std::strcmp(p.type, "velo_managed_tensor**") == 0)
      velo_tensor_release(static_cast<velo_managed_tensor*>(made));
    if (std::strcmp(p.type, "velo_context*") == 0)
      velo_context_destroy(static_cast<velo_context>(made));
    if (std::strcmp(p.type, "velo_pool*") == 0) velo_pool_destroy(static_cast<velo_pool>(made));
    if (std::strcmp(p.type, "velo_plan*") == 0) velo_plan_destroy(static_cast<velo_plan>(made));
    if (std::strcmp(p.type, "velo_topology*") == 0)
      velo_topology_destroy(static_cast<velo_topology>(made));
    if (std::strcmp(p.type, "velo_sharding*") == 0)
      velo_sharding_destroy(static_cast<velo_sharding>(made));
    if (std::strcmp(p.type, "velo_sequence_plan*") == 0)
      velo_sequence_plan_destroy(static_cast<velo_sequence_plan>(made));
    if (std::strcmp(p.type, "velo_recompute_plan*") == 0)
      velo_recompute_plan_destroy(static_cast<velo_recompute_plan>(made));
    if (std::strcmp(p.type, "velo_schedule*") == 0)
      velo_schedule_destroy(static_cast<velo_schedule>(made));
    if (std::strcmp(p.type, "velo_timeline*") == 0)
      velo_timeline_destroy(static_cast<velo_timeline>(made));
    if (std::strcmp(p.type, "velo_mailbox*") == 0)
      velo_mailbox_destroy(static_cast<velo_mailbox>(made));
    if (std::strcmp(p.type, "void**") == 0 && std::strcmp(f.name, "velo_pool_allocate") == 0)
      velo_pool_free(static_cast<velo_pool>(values[0].as.p), made, 0, nullptr);
    if (std::strcmp(p.type, "void**") == 0 && std::strcmp(f.name, "velo_plan_allocate") == 0)
      velo_plan_free(static_cast<velo_plan>(values[0].as.p), made, 0, nullptr);
  }
}

// Calls, and returns the status; a function without one counts as succeeding.
velo_status swept(const function_info& f, const std::vector<velo_value>& values) {
  current = f.name;
  alarm(deadline_seconds);
  velo_value result{VELO_VALUE_POINTER, 0, {0}};
  const velo_status status =
      velo_invoke(f.name, values.data(), static_cast<std::int64_t>(values.size()), &result);
  alarm(0);
  INFO(f.name);
  CHECK(result.kind == (f.result == value_type::nothing ? VELO_VALUE_NONE : VELO_VALUE_INT));
  CHECK(velo_status_describe(status, nullptr, nullptr) == VELO_OK);
  if (status != VELO_OK) {
    INFO("status " << status);
    CHECK(is_listed(f, status));
    if (f.result != value_type::nothing) sweep_facts::note();
  }
  if (status == VELO_OK) give_back(f, values);
  return status;
}

// How a plausible call ends in a sweep_world of its own: the same way each time.
velo_status plausible_status(const function_info& f) {
  static std::map<std::string, velo_status> known;
  const auto found = known.find(f.name);
  if (found != known.end()) return found->second;
  sweep_world w;
  return known[f.name] = swept(f, plausible(w, f));
}

// One value replaced in an otherwise plausible call. Where the plausible call succeeds, the
// replaced argument is the only thing wrong, and must be what the record names.
struct single_fault {
  const function_info& f;
  int at;
  std::function<velo_value(sweep_world&)> value;

  void expect(velo_status code) const {
    sweep_world w;
    expect(code, w);
  }

  // Whether the world is as it was: the call was refused.
  bool expect(velo_status code, sweep_world& w) const {
    const velo_status before = plausible_status(f);
    std::vector<velo_value> values = plausible(w, f);
    values[static_cast<std::size_t>(at)] = value(w);
    const velo_status status = swept(f, values);
    w.take_back();
    INFO(f.name << ", " << f.parameters[at].name);
    if (f.result == value_type::nothing) {
      CHECK(w.alive());
      return false;  // for all that is known
    }
    CHECK(status != VELO_OK);
    if (before != VELO_OK) return status != VELO_OK;
    CHECK(status == code);
    if (std::strcmp(f.name, "velo_last_error") != 0)  // reports the record and leaves it alone
      CHECK(last_record().argument.rfind(f.parameters[at].name, 0) == 0);
    return status != VELO_OK;
  }
};

// Calls work(f, i, p) for parameter i of every function.
template <class Work>
void each_parameter(Work&& work) {
  for (const function_info& f : functions)
    for (int i = 0; i < f.parameter_count; ++i) work(f, i, f.parameters[i]);
}

struct watchdog {
  watchdog() { signal(SIGALRM, &overdue); }
} armed;

}  // namespace

TEST_CASE("every function survives all its arguments being NULL or zero") {
  sweep_facts facts("zero");
  for (const function_info& f : functions) {
    std::vector<velo_value> values;
    bool needs = false;
    for (int i = 0; i < f.parameter_count; ++i) {
      const parameter_info& p = f.parameters[i];
      values.push_back(is_pointer(p) ? pointer(p, nullptr) : integer(0));
      needs = needs || (is_pointer(p) && !p.nullable);
    }
    const velo_status status = swept(f, values);
    INFO(f.name);
    if (needs) CHECK(status == VELO_ERR_NULL);
  }
  facts.check(facts_file);
}

TEST_CASE("every function answers a plausible call") {
  int worked = 0;
  for (const function_info& f : functions) {
    sweep_world w;
    worked += swept(f, plausible(w, f)) == VELO_OK ? 1 : 0;
  }
  CHECK(worked > 30);  // the sweep proves little where even this fails
}

TEST_CASE("every pointer may be NULL in turn") {
  sweep_facts facts("NULL");
  int calls = 0;
  each_parameter([&](const function_info& f, int i, const parameter_info& p) {
    if (!is_pointer(p)) return;
    ++calls;
    if (p.nullable) {
      sweep_world w;
      std::vector<velo_value> values = plausible(w, f);
      values[static_cast<std::size_t>(i)] = pointer(p, nullptr);
      swept(f, values);
    } else {
      single_fault{f, i, [&](sweep_world&) { return pointer(p, nullptr); }}.expect(VELO_ERR_NULL);
    }
  });
  CHECK(calls > 60);
  facts.check(facts_file);
}

TEST_CASE("every string may be bytes that are not UTF-8, which no record shows") {
  sweep_facts facts("string");
  int refused = 0;
  each_parameter([&](const function_info& f, int i, const parameter_info& p) {
    if (p.kind != value_type::string) return;
    sweep_world w;
    std::vector<velo_value> values = plausible(w, f);
    const char* not_text = "\xffx\xc3\x80\x80{\xed\xa0\x80";
    values[static_cast<std::size_t>(i)] = pointer(p, not_text);
    const velo_status status = swept(f, values);
    std::remove(not_text);  // a function may have written a file of that name
    if (status == VELO_OK) return;
    ++refused;
    const call_record record = last_record();
    for (const std::string& text : {record.argument, record.expected, record.got, record.cause}) {
      for (const char* at = text.c_str(); *at != 0;) {
        const std::size_t bytes = velo::core::utf8_character(at);
        INFO(f.name << ", " << p.name << ": " << text);
        REQUIRE(bytes > 0);
        at += bytes;
      }
    }
  });
  CHECK(refused > 10);
  facts.check(facts_file);
}

TEST_CASE("every integer may be at the ends of its type") {
  sweep_facts facts("integer");
  int calls = 0;
  each_parameter([&](const function_info& f, int i, const parameter_info& p) {
    for (const std::int64_t end : ends_of(p.kind)) {
      sweep_world w;
      std::vector<velo_value> values = plausible(w, f);
      values[static_cast<std::size_t>(i)] = integer(end);
      swept(f, values);
      ++calls;
    }
  });
  CHECK(calls > 40);
  facts.check(facts_file);
}

TEST_CASE("every handle of another kind is refused by the name of the parameter") {
  int calls = 0;
  for (const function_info& f : functions) {
    std::optional<sweep_world> w;  // one for all calls that are refused
    for (int i = 0; i < f.parameter_count; ++i) {
      const parameter_info& p = f.parameters[i];
      if (p.kind != value_type::handle) continue;
      for (int k = 0; k < kind_count; ++k) {
        if (k == kind_of(p)) continue;
        if (!w) w.emplace();
        const auto other = [&](sweep_world& of) { return pointer(p, of.handles[k]); };
        if (!single_fault{f, i, other}.expect(VELO_ERR_HANDLE, *w)) w.reset();
        ++calls;
      }
    }
  }
  CHECK(calls > 200);
}

TEST_CASE("every destroyed handle is refused by the name of the parameter") {
  void* destroyed[kind_count] = {};
  {
    const sweep_world w;
    std::memcpy(destroyed, w.handles, sizeof destroyed);
  }
  int calls = 0;
  each_parameter([&](const function_info& f, int i, const parameter_info& p) {
    if (p.kind != value_type::handle) return;
    single_fault{f, i, [&](sweep_world&) { return pointer(p, destroyed[kind_of(p)]); }}.expect(
        VELO_ERR_HANDLE);
    ++calls;
  });
  CHECK(calls > 50);
}

TEST_CASE("every operator survives an args struct whose fields are all the same tensor") {
  sweep_facts facts("tensor");
  int calls = 0;
  for (const function_info& f : functions) {
    if (f.parameter_count != 2 || std::strstr(f.parameters[1].type, "_args*") == nullptr) continue;
    sweep_world w;
    std::vector<velo_value> values = plausible(w, f);
    const std::string name = std::string(f.name).substr(5);
    std::uint64_t needed = 0;
    REQUIRE(velo_op_describe(name.c_str(), nullptr, 0, &needed) == VELO_OK);
    std::string text(needed, 0);
    REQUIRE(velo_op_describe(name.c_str(), &text[0], needed, nullptr) == VELO_OK);
    std::uint32_t fields = 0;
    for (std::size_t at = text.find("\"kind\""); at != std::string::npos;
         at = text.find("\"kind\"", at + 1))
      ++fields;
    auto* slots = static_cast<std::uint64_t*>(values[1].as.p);
    const std::uint32_t size = 8 + 8 * fields;
    std::memcpy(slots, &size, sizeof size);
    const velo_tensor* tensor = w.tensor();
    for (std::uint32_t i = 1; i <= fields; ++i) std::memcpy(slots + i, &tensor, sizeof slots[i]);
    INFO(f.name);
    swept(f, values);  // add may work in place
    ++calls;
  }
  std::int64_t operators = 0;
  REQUIRE(velo_op_count(&operators) == VELO_OK);
  CHECK(calls == operators);
  facts.check(facts_file);
}

TEST_CASE("what destroys is what the table says, and was swept like the rest") {
  std::set<std::string> destroying;
  for (const function_info& f : functions) {
    bool takes = false;
    for (int i = 0; i < f.parameter_count; ++i)
      takes = takes || std::strcmp(f.parameters[i].ownership, "take") == 0;
    INFO(f.name);
    CHECK(takes == (f.result == value_type::nothing));
    if (takes) destroying.insert(f.name);
  }
  std::set<std::string> expected = {"velo_tensor_release"};
  for (const char* kind : kinds) expected.insert(std::string(kind) + "_destroy");
  CHECK(destroying == expected);
}
