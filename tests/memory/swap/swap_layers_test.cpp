// Buckets of layers: what a layer keeps is out between its forward and its backward pass, and comes
// back while the layer above is in its backward pass.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/memory/swap/swaps.hpp"

using namespace velo::testing;

namespace {

constexpr std::uint64_t bytes = 64 * kib;

velo_swap_desc small_objects() {
  velo_swap_desc desc = host_desc();
  desc.minimum = bytes;
  return desc;
}

}  // namespace

TEST_CASE("a pass over layers and back keeps contents, with one layer prefetched") {
  const live_pool pool;
  for (tier_case& t : tier_cases()) {
    INFO(t.name);
    t.desc.memory = pool;
    t.desc.minimum = bytes;
    const swap_world w(t.desc);
    constexpr int layers = 4;
    std::vector<std::uint64_t> ids;
    for (int layer = 0; layer < layers; ++layer) {
      ids.push_back(w.add(nullptr, bytes));
      std::memset(w.object(ids.back()).memory, layer + 1, bytes);
      REQUIRE(velo_swap_assign(w.swap, ids.back(), layer) == VELO_OK);
      REQUIRE(velo_swap_forward(w.swap, layer, w.stream) == VELO_OK);
    }
    w.settle();
    CHECK(pool.stats().bytes_live == 0);
    for (int layer = layers - 1; layer >= 0; --layer) {
      REQUIRE(velo_swap_backward(w.swap, layer, w.stream) == VELO_OK);
      const velo_swap_object mine = w.object(ids[layer]);
      REQUIRE(mine.state == VELO_SWAP_RESIDENT);
      CHECK(static_cast<const char*>(mine.memory)[bytes - 1] == layer + 1);
      if (layer > 0) CHECK(w.object(ids[layer - 1]).memory != nullptr);  // on its way
      if (layer > 1) CHECK(w.state(ids[layer - 2]) == VELO_SWAP_OUT);
      REQUIRE(velo_swap_drop(w.swap, ids[layer], nullptr) == VELO_OK);
    }
    CHECK(pool.stats().bytes_live == 0);
  }
}

TEST_CASE("small objects, and those of other layers, stay where they are") {
  const swap_world w(small_objects());
  std::vector<unsigned char> memory(3 * bytes, 1);
  const std::uint64_t small = w.add(memory.data(), bytes - 1);
  const std::uint64_t large = w.add(memory.data() + bytes, bytes);
  const std::uint64_t other = w.add(memory.data() + 2 * bytes, bytes);
  REQUIRE(velo_swap_assign(w.swap, small, 0) == VELO_OK);
  REQUIRE(velo_swap_assign(w.swap, large, 0) == VELO_OK);
  REQUIRE(velo_swap_assign(w.swap, other, 1) == VELO_OK);
  REQUIRE(velo_swap_forward(w.swap, 0, w.stream) == VELO_OK);
  w.settle();
  CHECK(w.state(small) == VELO_SWAP_RESIDENT);
  CHECK(w.state(large) == VELO_SWAP_OUT);
  CHECK(w.state(other) == VELO_SWAP_RESIDENT);
}

TEST_CASE("what several layers keep moves once, with the last of them") {
  const swap_world w(small_objects());
  std::vector<unsigned char> memory(bytes, 1);
  const std::uint64_t id = w.add(memory.data(), bytes);
  for (const int layer : {1, 0, 2, 1, 2}) REQUIRE(velo_swap_assign(w.swap, id, layer) == VELO_OK);
  CHECK(w.object(id).layer == 2);
  REQUIRE(velo_swap_forward(w.swap, 0, w.stream) == VELO_OK);
  REQUIRE(velo_swap_forward(w.swap, 1, w.stream) == VELO_OK);
  CHECK(w.state(id) == VELO_SWAP_RESIDENT);
  REQUIRE(velo_swap_forward(w.swap, 2, w.stream) == VELO_OK);
  REQUIRE(velo_swap_forward(w.swap, 2, w.stream) == VELO_OK);  // it has left already
  w.settle();
  CHECK(w.state(id) == VELO_SWAP_OUT);
  REQUIRE(velo_swap_backward(w.swap, 2, w.stream) == VELO_OK);
  CHECK(w.state(id) == VELO_SWAP_RESIDENT);
  CHECK(w.stats().bytes_out == bytes);
}

TEST_CASE("a bucket forgets what was dropped, and one that never was is empty") {
  const swap_world w(small_objects());
  std::vector<unsigned char> memory(bytes, 1);
  const std::uint64_t id = w.add(memory.data(), bytes);
  REQUIRE(velo_swap_assign(w.swap, id, 5) == VELO_OK);
  REQUIRE(velo_swap_drop(w.swap, id, nullptr) == VELO_OK);
  CHECK(velo_swap_forward(w.swap, 5, w.stream) == VELO_OK);
  CHECK(velo_swap_backward(w.swap, 5, w.stream) == VELO_OK);
  CHECK(velo_swap_forward(w.swap, 77, w.stream) == VELO_OK);
  CHECK(velo_swap_backward(w.swap, 0, w.stream) == VELO_OK);
  CHECK(velo_swap_forward(w.swap, -1, w.stream) == VELO_ERR_ARGUMENT);
  CHECK(velo_swap_backward(w.swap, -1, w.stream) == VELO_ERR_ARGUMENT);
  CHECK(w.stats().bytes_out == 0);
}

TEST_CASE("a stream's backward pass waits for its own layer, not for the one below") {
  const swap_world w(small_objects());
  held_queue queue(w.context);
  std::vector<unsigned char> memory(2 * bytes);
  std::uint64_t ids[2];
  for (int layer = 0; layer < 2; ++layer) {
    ids[layer] = w.add(memory.data() + layer * bytes, bytes);
    REQUIRE(velo_swap_assign(w.swap, ids[layer], layer) == VELO_OK);
    queue.then([&memory, layer] { std::memset(memory.data() + layer * bytes, layer + 1, bytes); });
    REQUIRE(velo_swap_forward(w.swap, layer, queue) == VELO_OK);
  }
  int seen[2] = {};
  for (int layer = 1; layer >= 0; --layer) {
    REQUIRE(velo_swap_backward(w.swap, layer, queue) == VELO_OK);
    queue.then([&, layer] { seen[layer] = memory[layer * bytes + bytes - 1]; });
  }
  CHECK(w.state(ids[0]) == VELO_SWAP_RETURNING);
  queue.open();
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(seen[0] == 1);
  CHECK(seen[1] == 2);
}
