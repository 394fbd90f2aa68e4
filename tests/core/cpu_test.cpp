// Detection of the processor: ISAs are named, ordered and bounded.
#include "core/cpu.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace velo::core;

TEST_CASE("every ISA has a name that parses back") {
  for (int i = 0; i < 5; ++i) {
    isa found{};
    REQUIRE(parse_isa(isa_name(static_cast<isa>(i)), found));
    CHECK(found == static_cast<isa>(i));
  }
  isa found = isa::avx2;
  CHECK_FALSE(parse_isa("sse9", found));
  CHECK(found == isa::avx2);
}

TEST_CASE("the machine offers at least one thread and a first-level cache") {
  CHECK(usable_threads() >= 1);
  const cache_sizes sizes = detect_caches();
  CHECK(sizes.l1d >= 8 << 10);
  CHECK(sizes.l2 >= sizes.l1d);
}
