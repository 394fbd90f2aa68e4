// Tensors without elements have no data. No function of the C library may be given NULL for them,
// which is undefined even for 0 bytes.
//
// This is a program of its own, because it replaces memcpy and its like, by the linker's --wrap: it
// counts calls with NULL, and forwards the others. Sizes become 0 one after the other in the
// examples of all operators, and in all collectives.
#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "tests/context.hpp"
#include "tests/ops/every_operator/example_variants.hpp"
#include "tests/tensors.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> nulls{0};
std::atomic<void*> caller{nullptr};  // of the last one

void look(const void* one, const void* other, void* by) {
  if (!counting || (one != nullptr && other != nullptr)) return;
  ++nulls;
  caller = by;
}

}  // namespace

extern "C" {

#define WRAP(name, checked)                                                            \
  void* __real_##name(void* to, const void* from, std::size_t bytes);                  \
  void* __wrap_##name(void* to, const void* from, std::size_t bytes) {                 \
    look(to, from, __builtin_return_address(0));                                       \
    return bytes == 0 ? to : __real_##name(to, from, bytes);                           \
  }                                                                                    \
  void* __wrap_##checked(void* to, const void* from, std::size_t bytes, std::size_t) { \
    look(to, from, __builtin_return_address(0));                                       \
    return bytes == 0 ? to : __real_##name(to, from, bytes);                           \
  }
WRAP(memcpy, __memcpy_chk)
WRAP(memmove, __memmove_chk)
#undef WRAP

void* __real_memset(void* to, int value, std::size_t bytes);
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  look(to, to, __builtin_return_address(0));
  return bytes == 0 ? to : __real_memset(to, value, bytes);
}
void* __wrap___memset_chk(void* to, int value, std::size_t bytes, std::size_t) {
  look(to, to, __builtin_return_address(0));
  return bytes == 0 ? to : __real_memset(to, value, bytes);
}
int __real_memcmp(const void* a, const void* b, std::size_t bytes);
int __wrap_memcmp(const void* a, const void* b, std::size_t bytes) {
  look(a, b, __builtin_return_address(0));
  return bytes == 0 ? 0 : __real_memcmp(a, b, bytes);
}

}  // extern "C"

namespace {

using namespace velo::testing;

// Runs body() and requires that it calls nothing with NULL.
template <class Body>
void check(Body&& body) {
  nulls = 0;
  counting = true;
  body();
  counting = false;
  Dl_info where{};
  if (nulls > 0) dladdr(caller, &where);
  INFO("called at " << static_cast<char*>(caller.load()) - static_cast<char*>(where.dli_fbase)
                    << " of the program");
  CHECK(nulls == 0);
}

void run_without_data(example_call& call, velo_stream stream) {
  for (std::size_t i = 0; i < call.tensors(); ++i)
    if (call.memory(i).count() == 0) call.view(i).data = nullptr;
  check([&] { call.run(stream); });
}

}  // namespace

TEST_CASE("the replaced functions count calls with NULL") {
  nulls = 0;
  counting = true;
  void* volatile none = nullptr;
  char there[8] = {};
  volatile std::size_t zero = 0;
  std::memcpy(none, there, zero);
  std::memset(none, 0, zero);
  const int same = std::memcmp(there, none, zero);
  counting = false;
  CHECK(same == 0);
  CHECK(nulls == 3);
}

TEST_CASE("no operator hands NULL to the C library for a tensor without elements") {
  int run = 0;
  for (const char* level : {"0", "2"}) {
    const session s;
    REQUIRE(velo_config_set(s.context(), "level", level) == VELO_OK);
    for (const hosts::sample& example : hosts::samples(true)) {
      std::set<std::int64_t> sizes;
      for (const hosts::named_array& in : example.inputs)
        sizes.insert(in.data.shape.begin(), in.data.shape.end());
      for (const std::int64_t gone : sizes) {
        hosts::sample empty;
        const auto map = [&](std::int64_t size) { return size == gone ? 0 : size; };
        if (!with_sizes(example, s, map, empty)) continue;
        ++run;
        INFO(text_of(empty) << ", level " << level);
        example_call call(empty);
        run_without_data(call, s.stream());
      }
      for (std::size_t i = 0; i < example.inputs.size(); ++i) {  // one tensor alone
        hosts::sample empty = example;
        for (std::int64_t& size : empty.inputs[i].data.shape) size = 0;
        empty.inputs[i].data.bytes.clear();
        INFO(text_of(empty) << ", level " << level);
        example_call call(empty);
        run_without_data(call, s.stream());
      }
    }
  }
  CHECK(run > 60);
}

TEST_CASE("no collective hands NULL to the C library for a tensor without elements") {
  const live_context contexts[2];
  const velo_context both[] = {contexts[0], contexts[1]};
  const velo_stream now = contexts[0].inline_stream(), queue = contexts[1].new_stream();
  velo_group groups[2] = {};
  REQUIRE(velo_group_create_local(both, 2, nullptr, groups) == VELO_OK);
  static const std::int64_t none[] = {0};
  static const velo_tensor x = view_of(nullptr, f32, none);
  using collective = velo_status (*)(velo_stream, velo_group, int rank);
  const collective all[] = {
      [](velo_stream s, velo_group g, int) { return velo_group_all_reduce(s, g, nullptr, &x, &x); },
      [](velo_stream s, velo_group g, int) { return velo_group_reduce(s, g, 0, nullptr, &x, &x); },
      [](velo_stream s, velo_group g, int) { return velo_group_broadcast(s, g, 0, &x); },
      [](velo_stream s, velo_group g, int) { return velo_group_all_gather(s, g, &x, &x); },
      [](velo_stream s, velo_group g, int) {
        return velo_group_reduce_scatter(s, g, nullptr, &x, &x);
      },
      [](velo_stream s, velo_group g, int) { return velo_group_all_to_all(s, g, &x, &x); },
      [](velo_stream s, velo_group g, int) { return velo_group_gather(s, g, 0, &x, &x); },
      [](velo_stream s, velo_group g, int) { return velo_group_scatter(s, g, 0, &x, &x); },
      [](velo_stream s, velo_group g, int rank) {
        return rank == 0 ? velo_group_send(s, g, 1, &x) : velo_group_receive(s, g, 0, &x);
      }};
  for (std::size_t i = 0; i < std::size(all); ++i) {
    INFO("collective " << i);
    check([&] {
      const velo_status second = all[i](queue, groups[1], 1);
      const velo_status first = all[i](now, groups[0], 0);
      const velo_status done = velo_stream_synchronize(queue);
      counting = false;
      CHECK(first == VELO_OK);
      CHECK(second == VELO_OK);
      CHECK(done == VELO_OK);
    });
  }
}
