// Finds memory that calls of a host leak.
#pragma once

#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstddef>

namespace hosts {

// Checks that the heap has the same size after 10000 calls as after the first. call(i): the i-th.
template <class Call>
void check_no_leak(const Call& call) {
  const auto heap_after = [&](int times) {
    for (int i = 0; i < times; ++i) call(i);
    return mallinfo2().uordblks;
  };
  const std::size_t before = heap_after(20);
  CHECK(heap_after(10000) <= before + 4096);
}

}  // namespace hosts
