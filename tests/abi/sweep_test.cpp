// Every exported function, called with everything that is wrong: NULL in turn, integers at their
// ends, live handles of every other kind, destroyed handles. A status that the spec lists for the
// function is expected, never a crash.
//
// The functions and their parameters come from the generated table, and the calls go through
// velo_invoke, so a new function is swept as soon as it is in the spec. Every call gets a world of
// its own: what one destroys, the next does not miss. A call that does not return within its
// deadline ends the program with its name.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/signature.hpp"
#include "core/utf8.hpp"
#include "velo/velo.h"

namespace {

using velo::core::direction;
using velo::core::function_info;
using velo::core::parameter_info;
using velo::core::thread_class;
using velo::core::value_type;
#include "abi/generated/functions.inc"

constexpr unsigned deadline_seconds = 30;
const char* volatile current = "";

void overdue(int) {
  const char* name = current;
  (void)!write(STDERR_FILENO, name, std::strlen(name));
  constexpr char text[] = " did not return in time\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(99);
}

velo_status fill(std::int64_t, float*) {
  return VELO_OK;
}

constexpr const char* kinds[] = {
#define VELO_HANDLE(name, article, order) "velo_" #name,
#include "abi/generated/handles.inc"
#undef VELO_HANDLE
};
constexpr int kind_count = sizeof kinds / sizeof kinds[0];

// What the library says of itself, read once.
const std::string& self_description() {
  static const std::string all = [] {
    std::uint64_t needed = 0;
    velo_describe(nullptr, 0, &needed);
    std::string text(needed, 0);
    velo_describe(&text[0], needed, nullptr);
    return text;
  }();
  return all;
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

// One live handle of each kind, and memory that plausible pointers may point to. Kinds that take
// more than a context to make are made here; others by the function that hands one out.
class world {
 public:
  void* handles[kind_count] = {};

  world() {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    REQUIRE(velo_context_create(&desc, &context_) == VELO_OK);
    REQUIRE(velo_context_stream(context_, &inline_) == VELO_OK);
    velo_stream stream = nullptr;
    velo_event event = nullptr;
    velo_pack pack = nullptr;
    velo_kernel kernel = nullptr;
    velo_closure closure = nullptr;
    REQUIRE(velo_pool_create(nullptr, &pool_) == VELO_OK);
    velo_allocator below = VELO_ALLOCATOR_INIT;
    REQUIRE(velo_pool_allocator(pool_, &below) == VELO_OK);
    velo_adaptor_desc over = VELO_ADAPTOR_DESC_INIT;
    over.upstream = &below;
    REQUIRE(velo_adaptor_create(&over, &adaptor_) == VELO_OK);
    velo_plan_desc steps = VELO_PLAN_DESC_INIT;
    steps.pool = pool_;
    REQUIRE(velo_plan_create(&steps, &plan_) == VELO_OK);
    velo_recompute_desc kept = VELO_RECOMPUTE_DESC_INIT;
    kept.allocator = &below;
    REQUIRE(velo_recompute_create(&kept, &recompute_) == VELO_OK);
    REQUIRE(velo_recompute_plan_create(&recompute_plan_) == VELO_OK);
    REQUIRE(velo_topology_create(nullptr, &topology_) == VELO_OK);
    velo_swap swap = nullptr;
    REQUIRE(velo_swap_create(context_, nullptr, &swap) == VELO_OK);
    velo_group group = nullptr;
    REQUIRE(velo_group_create(context_, nullptr, &group) == VELO_OK);
    REQUIRE(velo_stream_create(context_, &stream) == VELO_OK);
    REQUIRE(velo_event_create(context_, &event) == VELO_OK);
    REQUIRE(velo_event_record(event, stream) == VELO_OK);
    velo_pack_desc weight = VELO_PACK_DESC_INIT;
    weight.k = weight.n = 4;
    REQUIRE(velo_pack_create(context_, &weight, &pack) == VELO_OK);
    velo_kernel_desc foreign = VELO_KERNEL_DESC_INIT;
    foreign.op = "swept";
    foreign.signature = "s(lp)";
    foreign.binding = "y.numel, y.data";
    foreign.tensors = "out y f32";
    foreign.function = reinterpret_cast<void*>(&fill);
    REQUIRE(velo_kernel_register(context_, &foreign, &kernel) == VELO_OK);
    void* function = nullptr;
    REQUIRE(velo_closure_create(stream, "rms_norm", "x, gamma, y", &function, &closure) == VELO_OK);
    const std::map<std::string, void*> made = {{"velo_context", context_},
                                               {"velo_stream", stream},
                                               {"velo_event", event},
                                               {"velo_pack", pack},
                                               {"velo_kernel", kernel},
                                               {"velo_closure", closure},
                                               {"velo_pool", pool_},
                                               {"velo_adaptor", adaptor_},
                                               {"velo_plan", plan_},
                                               {"velo_recompute", recompute_},
                                               {"velo_recompute_plan", recompute_plan_},
                                               {"velo_swap", swap},
                                               {"velo_group", group},
                                               {"velo_topology", topology_}};
    for (int k = 0; k < kind_count; ++k) {
      const auto known = made.find(kinds[k]);
      handles[k] = known != made.end() ? known->second : create(kinds[k]);
    }
    std::memset(memory_, 0, sizeof memory_);
    elements_ = reinterpret_cast<float*>(memory_ + 1024);
    const std::int64_t shape[2] = {4, 4};
    std::memcpy(memory_ + 512, shape, sizeof shape);
    tensor_ = new (memory_ + 256) velo_tensor{elements_,
                                              {VELO_DEVICE_CPU, 0},
                                              2,
                                              {VELO_DTYPE_FLOAT, 32, 1},
                                              reinterpret_cast<std::int64_t*>(memory_ + 512),
                                              nullptr,
                                              0};
    blocks_.reserve(16);
  }
  ~world() {
    velo_context_destroy(context_);
    velo_recompute_destroy(recompute_);  // no context owns these
    velo_recompute_plan_destroy(recompute_plan_);
    velo_adaptor_destroy(adaptor_);
    velo_plan_destroy(plan_);
    velo_pool_destroy(pool_);
    velo_topology_destroy(topology_);
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  velo_context context() const { return context_; }
  const velo_tensor* tensor() const { return tensor_; }

  void* zeros(std::size_t bytes) {
    blocks_.push_back(std::vector<std::uint64_t>(bytes / 8, 0));
    return blocks_.back().data();
  }
  bool alive() const {
    velo_stream stream = nullptr;
    return velo_context_stream(context_, &stream) == VELO_OK && stream == inline_;
  }

 private:
  // A handle from velo_<kind>_create(context, &handle).
  void* create(const std::string& kind) const {
    void* made = nullptr;
    velo_value values[2] = {{VELO_VALUE_HANDLE, 0, {0}}, {VELO_VALUE_POINTER, 0, {0}}};
    values[0].as.p = context_;
    values[1].as.p = &made;
    INFO(kind);
    REQUIRE(velo_invoke((kind + "_create").c_str(), values, 2, nullptr) == VELO_OK);
    return made;
  }

  velo_context context_ = nullptr;
  velo_pool pool_ = nullptr;
  velo_adaptor adaptor_ = nullptr;
  velo_plan plan_ = nullptr;
  velo_recompute recompute_ = nullptr;
  velo_recompute_plan recompute_plan_ = nullptr;
  velo_topology topology_ = nullptr;
  velo_stream inline_ = nullptr;
  alignas(64) unsigned char memory_[4096];
  velo_tensor* tensor_;
  float* elements_;
  std::vector<std::vector<std::uint64_t>> blocks_;
};

// What a pointer points to, without const.
std::string pointed_to(const parameter_info& p) {
  std::string type = p.type;
  if (type.rfind("const ", 0) == 0) type.erase(0, 6);
  type.pop_back();
  return type;
}

// The kind of handles that a pointer points to, -1: of none.
int kind_pointed_to(const parameter_info& p) {
  const std::string type = pointed_to(p);
  for (int i = 0; i < kind_count; ++i)
    if (type == kinds[i]) return i;
  return -1;
}

// Whether a pointer's struct begins with its size, as the self-description says.
bool is_sized(const parameter_info& p) {
  const std::string type = pointed_to(p);
  if (kind_pointed_to(p) >= 0) return false;
  if (type.size() > 5 && type.compare(type.size() - 5, 5, "_args") == 0) return true;
  const std::string& all = self_description();
  const std::size_t at = all.find("{\"name\":\"" + type + "\",\"header\"");
  return at != std::string::npos && all.find("\"sized\":true", at) < all.find("\"fields\"", at);
}

int kind_of(const parameter_info& p) {
  for (int i = 0; i < kind_count; ++i)
    if (std::strcmp(p.type, kinds[i]) == 0) return i;
  FAIL("a handle of a kind the sweep does not know: " << p.type);
  return -1;
}

bool is_pointer(const parameter_info& p) {
  return p.kind == value_type::handle || p.kind == value_type::pointer ||
         p.kind == value_type::string || p.kind == value_type::tensor || p.kind == value_type::ints;
}

velo_value integer(std::int64_t i) {
  velo_value v{VELO_VALUE_INT, 0, {0}};
  v.as.i = i;
  return v;
}

velo_value pointer(const parameter_info& p, const void* address) {
  velo_value v{VELO_VALUE_POINTER, 0, {0}};
  if (p.kind == value_type::handle) v.kind = VELO_VALUE_HANDLE;
  if (p.kind == value_type::string) v.kind = VELO_VALUE_STRING;
  if (p.kind == value_type::tensor) v.kind = VELO_VALUE_TENSOR;
  if (p.kind == value_type::ints) v.kind = VELO_VALUE_INTS;
  v.as.p = const_cast<void*>(address);
  return v;
}

// The ends of an integer's type, and what is next to them; none for other types.
std::vector<std::int64_t> ends_of(value_type kind) {
  using limit32 = std::numeric_limits<std::int32_t>;
  using limit64 = std::numeric_limits<std::int64_t>;
  switch (kind) {
    case value_type::i32:
      return {limit32::min(), -1, 0, limit32::max()};
    case value_type::u32:
      return {0, std::numeric_limits<std::uint32_t>::max()};
    case value_type::i64:
      return {limit64::min(), -1, 0, limit64::max()};
    case value_type::u64:
      return {0, limit64::max()};
    default:
      return {};
  }
}

const char* plausible_string(const parameter_info& p) {
  if (std::strcmp(p.name, "op") == 0) return "rms_norm";
  if (std::strcmp(p.name, "function") == 0) return "velo_op_count";
  if (std::strcmp(p.name, "key") == 0) return "level";
  if (std::strcmp(p.name, "value") == 0) return "1";
  if (std::strcmp(p.name, "path") == 0) return "/dev/null/x";  // leaves nothing behind
  return "x";
}

// What a call might be given by somebody who read the header, without knowing what it means.
velo_value plausible(world& w, const parameter_info& p) {
  switch (p.kind) {
    case value_type::handle:
      return pointer(p, w.handles[kind_of(p)]);
    case value_type::string:
      return pointer(p, plausible_string(p));
    case value_type::tensor:
      return pointer(p, w.tensor());
    case value_type::f64: {
      velo_value v{VELO_VALUE_FLOAT, 0, {0}};
      v.as.f = 1;
      return v;
    }
    case value_type::ints:
      return pointer(p, w.zeros(4096));
    case value_type::pointer: {
      const bool text = std::strcmp(p.type, "char*") == 0;  // capacity may be said to be anything
      void* block = w.zeros(text ? 4 << 20 : 65536);
      const std::uint32_t size = 4096;  // legal, and more than any struct the library knows
      if (is_sized(p)) std::memcpy(block, &size, sizeof size);
      const int kind = kind_pointed_to(p);  // of handles: a list of one
      if (kind >= 0 && p.dir == direction::in)
        std::memcpy(block, &w.handles[kind], sizeof w.handles[kind]);
      return pointer(p, block);
    }
    default:
      return integer(1);
  }
}

std::vector<velo_value> plausible(world& w, const function_info& f) {
  std::vector<velo_value> all;
  for (int i = 0; i < f.parameter_count; ++i) all.push_back(plausible(w, f.parameters[i]));
  return all;
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
    if (std::strcmp(p.type, "velo_recompute_plan*") == 0)
      velo_recompute_plan_destroy(static_cast<velo_recompute_plan>(made));
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
  }
  if (status == VELO_OK) give_back(f, values);
  return status;
}

std::string failed_argument() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  REQUIRE(velo_last_error(&info) == VELO_OK);
  return info.argument;
}

// One value replaced in an otherwise plausible call. Where the plausible call succeeds, the
// replaced argument is the only thing wrong, and must be what the record names.
struct single_fault {
  const function_info& f;
  int at;
  std::function<velo_value(world&)> value;

  void expect(velo_status code) const {
    velo_status before = VELO_OK;
    {
      world w;
      before = swept(f, plausible(w, f));
    }
    world w;
    std::vector<velo_value> values = plausible(w, f);
    values[static_cast<std::size_t>(at)] = value(w);
    const velo_status status = swept(f, values);
    INFO(f.name << ", " << f.parameters[at].name);
    if (f.result == value_type::nothing) {
      CHECK(w.alive());
      return;
    }
    CHECK(status != VELO_OK);
    if (before != VELO_OK) return;
    CHECK(status == code);
    if (std::strcmp(f.name, "velo_last_error") != 0)  // reports the record and leaves it alone
      CHECK(failed_argument().rfind(f.parameters[at].name, 0) == 0);
  }
};

struct watchdog {
  watchdog() { signal(SIGALRM, &overdue); }
} armed;

}  // namespace

TEST_CASE("every function survives all its arguments being NULL or zero") {
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
}

TEST_CASE("every function answers a plausible call") {
  int worked = 0;
  for (const function_info& f : functions) {
    world w;
    worked += swept(f, plausible(w, f)) == VELO_OK ? 1 : 0;
  }
  CHECK(worked > 30);  // the sweep proves little where even this fails
}

TEST_CASE("every pointer may be NULL in turn") {
  int calls = 0;
  for (const function_info& f : functions) {
    for (int i = 0; i < f.parameter_count; ++i) {
      const parameter_info& p = f.parameters[i];
      if (!is_pointer(p)) continue;
      ++calls;
      if (p.nullable) {
        world w;
        std::vector<velo_value> values = plausible(w, f);
        values[static_cast<std::size_t>(i)] = pointer(p, nullptr);
        swept(f, values);
      } else {
        single_fault{f, i, [&](world&) { return pointer(p, nullptr); }}.expect(VELO_ERR_NULL);
      }
    }
  }
  CHECK(calls > 60);
}

TEST_CASE("every string may be bytes that are not UTF-8, which no record shows") {
  int refused = 0;
  for (const function_info& f : functions) {
    for (int i = 0; i < f.parameter_count; ++i) {
      if (f.parameters[i].kind != value_type::string) continue;
      world w;
      std::vector<velo_value> values = plausible(w, f);
      values[static_cast<std::size_t>(i)] =
          pointer(f.parameters[i], "\xffx\xc3\x80\x80{\xed\xa0\x80");
      if (swept(f, values) == VELO_OK) continue;
      ++refused;
      velo_error_info info = VELO_ERROR_INFO_INIT;
      REQUIRE(velo_last_error(&info) == VELO_OK);
      for (const char* text : {info.argument, info.expected, info.got, info.cause}) {
        for (const char* at = text; *at != 0;) {
          const std::size_t bytes = velo::core::utf8_character(at);
          INFO(f.name << ", " << f.parameters[i].name << ": " << text);
          REQUIRE(bytes > 0);
          at += bytes;
        }
      }
    }
  }
  CHECK(refused > 10);
}

TEST_CASE("every integer may be at the ends of its type") {
  int calls = 0;
  for (const function_info& f : functions) {
    for (int i = 0; i < f.parameter_count; ++i) {
      for (const std::int64_t end : ends_of(f.parameters[i].kind)) {
        world w;
        std::vector<velo_value> values = plausible(w, f);
        values[static_cast<std::size_t>(i)] = integer(end);
        swept(f, values);
        ++calls;
      }
    }
  }
  CHECK(calls > 40);
}

TEST_CASE("every handle of another kind is refused by the name of the parameter") {
  int calls = 0;
  for (const function_info& f : functions) {
    for (int i = 0; i < f.parameter_count; ++i) {
      const parameter_info& p = f.parameters[i];
      if (p.kind != value_type::handle) continue;
      for (int k = 0; k < kind_count; ++k) {
        if (k == kind_of(p)) continue;
        single_fault{f, i, [&](world& w) { return pointer(p, w.handles[k]); }}.expect(
            VELO_ERR_HANDLE);
        ++calls;
      }
    }
  }
  CHECK(calls > 200);
}

TEST_CASE("every destroyed handle is refused by the name of the parameter") {
  void* destroyed[kind_count] = {};
  {
    const world w;
    std::memcpy(destroyed, w.handles, sizeof destroyed);
  }
  int calls = 0;
  for (const function_info& f : functions) {
    for (int i = 0; i < f.parameter_count; ++i) {
      const parameter_info& p = f.parameters[i];
      if (p.kind != value_type::handle) continue;
      single_fault{f, i, [&](world&) { return pointer(p, destroyed[kind_of(p)]); }}.expect(
          VELO_ERR_HANDLE);
      ++calls;
    }
  }
  CHECK(calls > 50);
}

TEST_CASE("every operator survives an args struct whose fields are all the same tensor") {
  int calls = 0;
  for (const function_info& f : functions) {
    if (f.parameter_count != 2 || std::strstr(f.parameters[1].type, "_args*") == nullptr) continue;
    world w;
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
