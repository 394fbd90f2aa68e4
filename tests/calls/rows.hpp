// Every function of the C API called once as its header says, and every operator on its example:
// the table that tests of faults, of hosts' functions and of forks go through.
//
// A row makes what its call needs and calls once; the world puts everything back. A row can be
// repeated, in a child of a fork too. The test "every function of the spec has a row"
// (tests/faults/allocation_test.cpp) fails for one without.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/calls/world.hpp"

namespace velo::testing {

struct call_row {
  std::string name;
  void (*prepare)(world&);
  velo_status (*call)(world&);  // of a function that destroys: VELO_OK when the handle is gone
  const example_call* example = nullptr;
  bool is_slow = false;  // takes milliseconds: tests that repeat rows repeat this one less

  void begin(world& w) const;
  // Opens the context from `desc` instead; only for rows of operators.
  void begin(world& w, const velo_context_desc& desc) const;
  void end(world& w) const;  // the second rank's calls must have succeeded
};

// In the order of the spec; then every operator inline, on a queue, and by name. Made once.
const std::vector<call_row>& every_call_row();

// The names of functions that have no row.
std::vector<std::string> functions_without_a_row();

// Preparations.
void nothing(world&);
void open(world& w);  // a context
void open_with_queue(world& w);

extern char text[1 << 20];

// Function(object, arguments..)
template <auto Function, auto Object, auto... Arguments>
velo_status run_on(world& w) {
  return Function(w.*Object, Arguments...);
}

// Function(object, arguments.., text, capacity, &needed)
template <auto Function, auto Object, auto... Arguments>
velo_status write_text(world& w) {
  return Function(w.*Object, Arguments..., text, sizeof text, nullptr);
}

// Function(object, arguments.., &result); the result may be a struct that begins with its size.
template <class Function>
struct result_of;
template <class... Parameters>
struct result_of<velo_status (*)(Parameters...)> {
  using type = std::remove_pointer_t<
      std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>>;
};
template <class Result>
auto set_size(Result& result, int) -> decltype(result.struct_size, void()) {
  result.struct_size = sizeof result;
}
template <class Result>
void set_size(Result&, long) {}

template <auto Function, auto Object, auto... Arguments>
velo_status get(world& w) {
  typename result_of<std::decay_t<decltype(Function)>>::type result{};
  set_size(result, 0);
  return Function(w.*Object, Arguments..., &result);
}

// Whether a call on a destroyed handle was refused as one.
velo_status gone(velo_status of_a_call);

// Destroys the object, and expects `Use` of it to be refused.
template <auto Destroy, auto Object, auto Use>
velo_status destroy(world& w) {
  Destroy(w.*Object);
  const velo_status refused = gone(Use(w));
  w.*Object = nullptr;
  return refused;
}

std::vector<call_row> memory_rows();
std::vector<call_row> plan_rows();
std::vector<call_row> comm_rows();
std::vector<call_row> topology_rows();
std::vector<call_row> sharding_rows();
std::vector<call_row> sched_rows();
std::vector<call_row> dispatcher_rows();
std::vector<call_row> expert_rows();
std::vector<call_row> sequence_rows();
std::vector<call_row> executor_rows();
std::vector<call_row> tune_rows();

}  // namespace velo::testing
