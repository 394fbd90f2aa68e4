// The sources of random numbers of tests: a seed gives the same numbers on every machine.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace velo::testing {

// An engine of the standard library, with the draws that tests need. Any thread may make one.
template <class Engine>
class random_numbers {
 public:
  using result_type = typename Engine::result_type;

  explicit random_numbers(std::uint64_t seed) : engine_(static_cast<result_type>(seed)) {}

  static constexpr result_type min() { return Engine::min(); }
  static constexpr result_type max() { return Engine::max(); }
  result_type operator()() { return engine_(); }
  result_type below(std::uint64_t count) { return static_cast<result_type>(engine_() % count); }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class List>
  const auto& pick(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  Engine engine_;
};

// The source of a test's own thread: a check that fails shows its seed.
template <class Engine>
class shown_random_numbers : public random_numbers<Engine> {
 public:
  explicit shown_random_numbers(std::uint64_t seed)
      : random_numbers<Engine>(seed),
        shown_(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
               << "random numbers of seed " << seed) {}

 private:
  Catch::ScopedMessage shown_;
};

using random_source = shown_random_numbers<std::mt19937_64>;
using random_source32 = shown_random_numbers<std::mt19937>;  // golden values came from it
using thread_random = random_numbers<std::mt19937_64>;
using thread_random32 = random_numbers<std::mt19937>;
// For filling tensors: one multiplication a number.
using cheap_random =
    random_numbers<std::linear_congruential_engine<std::uint32_t, 1664525u, 1013904223u, 0u>>;
// The same with 64 bits; the bounds of the operators' tests were found with its numbers.
using cheap_random64 = random_numbers<
    std::linear_congruential_engine<std::uint64_t, 6364136223846793005u, 1442695040888963407u, 0u>>;

}  // namespace velo::testing
