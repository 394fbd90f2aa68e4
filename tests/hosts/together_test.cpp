// Threads of every host at once in a process that has not called velo's adapters before: the first
// calls race for the context that all then share, and slots are bound, called and released side by
// side. A sanitizer watches; without one the results still have to be right.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "mindspore_host.hpp"
#include "tvm_host.hpp"
#include "xla_host.hpp"

using namespace hosts;

namespace {

constexpr const char* path = VELO_ADAPTERS;

// How many of `rounds` calls of each job, all jobs at once on threads of their own, were wrong.
int wrong_of(int rounds, const std::vector<std::function<bool()>>& jobs) {
  std::atomic<std::size_t> ready{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const auto& job : jobs) {
    threads.emplace_back([&] {
      for (++ready; ready < jobs.size();) std::this_thread::yield();
      for (int i = 0; i < rounds; ++i) {
        try {
          if (!job()) ++wrong;
        } catch (const std::exception&) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return wrong;
}

}  // namespace

TEST_CASE("hosts that call first at the same time share one context and get their own results") {
  const sample sum = sample_of("add");
  xla_pool pool(2);
  const xla_handler xla(path, "velo_xla_add");
  const tvm_function tvm(path, "velo_add");
  const auto from_mindspore = [&] {
    mindspore_kernel kernel(path, "velo_ms_add");
    auto outputs = sum.blank_outputs();
    kernel.launch(sum.inputs, outputs);
    return same_bits(outputs, sum.outputs);
  };
  const auto from_xla = [&] {
    auto outputs = sum.blank_outputs();
    xla.execute(sum.inputs, outputs, {}, "", &pool);
    return same_bits(outputs, sum.outputs);
  };
  const auto from_tvm = [&] {
    auto outputs = sum.blank_outputs();
    tvm_arguments args;
    for (const named_array& in : sum.inputs) args.bare_tensor(in.data.view());
    args.bare_tensor(outputs[0].data.view());
    tvm(args);
    return same_bits(outputs, sum.outputs);
  };
  CHECK(wrong_of(30, {from_mindspore, from_mindspore, from_xla, from_xla, from_tvm, from_tvm}) ==
        0);
}

TEST_CASE("slots are bound, called and released by several threads") {
  const library adapters(path, RTLD_LAZY | RTLD_LOCAL);
  const auto bind = adapters.function<decltype(velo_ms_slot_bind)>("velo_ms_slot_bind");
  const auto release = adapters.function<decltype(velo_ms_slot_release)>("velo_ms_slot_release");
  const sample s = sample_of("rms_norm");
  std::vector<std::function<bool()>> jobs;
  for (int t = 0; t < 4; ++t) {
    // A space more for each thread: the same attributes, and a binding of its own.
    jobs.emplace_back([&, json = s.attributes_json() + std::string(static_cast<unsigned>(t), ' ')] {
      std::int32_t slot = -1;
      if (bind(-1, "rms_norm", json.c_str(), &slot) != VELO_OK) return false;
      char name[32];
      std::snprintf(name, sizeof name, "velo_ms_slot_%03d", slot);
      auto outputs = s.blank_outputs();
      mindspore_kernel(path, name).launch(s.inputs, outputs);
      return same_bits(outputs, s.outputs) && release(slot) == VELO_OK;
    });
  }
  CHECK(wrong_of(200, jobs) == 0);
}

TEST_CASE("each of several threads gets the whole sentence of its failure") {
  const sample s = sample_of("rms_norm");
  auto cut = s.inputs;
  cut[1].data.shape = {39};
  const tvm_function tvm(path, "velo_rms_norm");
  const auto failing = [&] {
    auto outputs = s.blank_outputs();
    tvm_arguments args;
    for (const named_array& in : cut) args.bare_tensor(in.data.view());
    args.bare_tensor(outputs[0].data.view());
    try {
      tvm(args);
    } catch (const host_error& error) {
      return std::string(error.what()) ==
             "velo_rms_norm: args.gamma.shape: expected [40], got [39]";
    }
    return false;
  };
  REQUIRE(failing());  // the latest failure from here on
  const auto asking = [&] {
    const library adapters(path, RTLD_LAZY | RTLD_LOCAL);
    return last_error(adapters) == "velo_rms_norm: args.gamma.shape: expected [40], got [39]";
  };
  CHECK(wrong_of(100, {failing, failing, asking}) == 0);
}
