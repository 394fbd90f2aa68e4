// Regions through their C entries: released, restored once, in any order, from inside each other,
// under failures.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/context.hpp"
#include "tests/memory/pool/pools.hpp"
#include "velo/velo.h"

namespace {

using velo::testing::last_record;
using velo::testing::live_pool;

// Regions over a pool, and a host whose functions count and compute: every output is one more than
// the sum of its inputs, plus its place, seed and offset.
class host {
 public:
  explicit host(std::uint64_t limit = 0) : pool_(velo::testing::limited_pool(limit)) {
    const velo_allocator below = velo::testing::allocator_of(pool_);
    velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
    desc.allocator = &below;
    REQUIRE(velo_recompute_create(&desc, &handle_) == VELO_OK);
  }
  ~host() { velo_recompute_destroy(handle_); }
  host(const host&) = delete;
  host& operator=(const host&) = delete;
  operator velo_recompute() const { return handle_; }

  struct made {
    std::function<velo_status(const velo_recompute_call&)> then;  // after the outputs are filled
    std::size_t inputs = 0, outputs = 0;
    int calls = 0;
    velo_stream stream = nullptr;
  };

  static velo_status restore(void* user, const velo_recompute_call* call) {
    auto& m = *static_cast<made*>(user);
    ++m.calls;
    m.stream = call->stream;
    std::uint64_t sum = 1 + call->seed + call->offset;
    for (std::size_t i = 0; i < m.inputs; ++i)
      sum += *static_cast<const std::uint64_t*>(call->inputs[i]);
    for (std::size_t i = 0; i < m.outputs; ++i)
      *static_cast<std::uint64_t*>(call->outputs[i]) = sum + i;
    return m.then ? m.then(*call) : VELO_OK;
  }

  // Declares a region and runs its forward pass, which is what restores it.
  velo_status add(made& m, const char* name, const std::vector<velo_recompute_input>& inputs,
                  std::int64_t* index, std::int64_t parent = -1,
                  const std::vector<std::uint64_t>& outputs = {4096, 8192}) {
    velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
    region.name = name;
    region.restore = &restore;
    region.user = &m;
    region.parent = parent;
    region.inputs = inputs.data();
    region.input_count = static_cast<std::int64_t>(inputs.size());
    region.output_bytes = outputs.data();
    region.output_count = static_cast<std::int64_t>(outputs.size());
    region.seed = 1000;
    region.offset = 10;
    m.inputs = inputs.size();
    m.outputs = outputs.size();
    return velo_recompute_add(handle_, &region, nullptr, index);
  }
  std::int64_t declare(made& m, const char* name, const std::vector<velo_recompute_input>& inputs,
                       std::int64_t parent = -1) {
    std::int64_t index = -1;
    REQUIRE(add(m, name, inputs, &index, parent) == VELO_OK);
    std::vector<const void*> in;
    for (const velo_recompute_input& i : inputs)
      in.push_back(i.region < 0 ? i.memory : output(i.region, i.output));
    std::vector<void*> out = {output(index, 0), output(index, 1)};
    velo_recompute_call call{};
    call.seed = 1000;
    call.offset = 10;
    call.inputs = in.data();
    call.outputs = out.data();
    const auto then = std::exchange(m.then, nullptr);
    restore(&m, &call);
    m.then = then;
    m.calls = 0;
    return index;
  }
  void release(std::initializer_list<std::int64_t> regions) const {
    for (const std::int64_t i : regions)
      REQUIRE(velo_recompute_release(handle_, i, nullptr) == VELO_OK);
  }
  void* output(std::int64_t region, std::int64_t which) const {
    void* memory = nullptr;
    REQUIRE(velo_recompute_get_output(handle_, region, which, &memory) == VELO_OK);
    return memory;
  }
  std::uint64_t value(std::int64_t region, std::int64_t which = 0) const {
    return *static_cast<const std::uint64_t*>(output(region, which));
  }
  bool there(std::int64_t region) const {
    void* memory = nullptr;
    return velo_recompute_get_output(handle_, region, 0, &memory) == VELO_OK;
  }
  velo_recompute_stats stats() const {
    velo_recompute_stats stats = VELO_RECOMPUTE_STATS_INIT;
    REQUIRE(velo_recompute_get_stats(handle_, &stats) == VELO_OK);
    return stats;
  }
  const live_pool& pool() const { return pool_; }

 private:
  live_pool pool_;
  velo_recompute handle_ = nullptr;
};

constexpr std::uint64_t x = 5;
velo_recompute_input from_host(const void* memory) {
  return {memory, -1, 0};
}
velo_recompute_input from(std::int64_t region, std::int64_t output = 0) {
  return {nullptr, region, output};
}

}  // namespace

TEST_CASE("outputs are released to the allocator and restored once, seed and offset with them") {
  host h;
  host::made m;
  const std::int64_t a = h.declare(m, "a", {from_host(&x)});
  CHECK(h.value(a, 1) == 1 + 1010 + 5 + 1);
  CHECK(h.pool().stats().purpose_live[VELO_PURPOSE_WORKSPACE] == 12288);
  REQUIRE(velo_recompute_release(h, a, nullptr) == VELO_OK);
  CHECK(h.pool().stats().purpose_live[VELO_PURPOSE_WORKSPACE] == 0);
  CHECK(h.stats().bytes == 0);
  CHECK(h.stats().bytes_peak == 12288);
  void* memory = nullptr;
  CHECK(velo_recompute_get_output(h, a, 0, &memory) == VELO_ERR_STATE);
  CHECK(last_record().got.find("'a'") != std::string::npos);
  CHECK(memory == nullptr);
  for (int again = 0; again < 3; ++again) REQUIRE(velo_recompute_restore(h, a, nullptr) == VELO_OK);
  CHECK(m.calls == 1);
  CHECK(h.value(a, 0) == 1 + 1010 + 5);
  CHECK(h.value(a, 1) == 1 + 1010 + 5 + 1);
  REQUIRE(velo_recompute_release(h, a, nullptr) == VELO_OK);
  REQUIRE(velo_recompute_release(h, a, nullptr) == VELO_OK);
  CHECK(h.stats().releases == 2);
  REQUIRE(velo_recompute_end(h, a, nullptr) == VELO_OK);
  CHECK(velo_recompute_restore(h, a, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(h.stats().regions == 0);
  CHECK(m.calls == 1);
}

TEST_CASE("what a region takes is restored first and stays") {
  host h;
  host::made m[4];
  const std::int64_t a = h.declare(m[0], "a", {from_host(&x)});
  const std::int64_t b = h.declare(m[1], "b", {from(a), from(a, 1)});
  const std::int64_t c = h.declare(m[2], "c", {from(b, 1), from(a)});
  const std::int64_t d = h.declare(m[3], "d", {from(c)});
  const std::uint64_t value = h.value(d);
  h.release({a, b, c, d});
  REQUIRE(velo_recompute_restore(h, d, nullptr) == VELO_OK);
  CHECK(h.value(d) == value);
  for (const std::int64_t i : {c, b, a}) {  // the backward pass
    REQUIRE(velo_recompute_restore(h, i, nullptr) == VELO_OK);
    CHECK(h.there(i));
  }
  for (const host::made& one : m) CHECK(one.calls == 1);
}

TEST_CASE("regions end in any order, and what others still take comes and goes") {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    host h;
    host::made m[4];
    std::int64_t r[4] = {};
    r[0] = h.declare(m[0], "0", {from_host(&x)});
    for (int i = 1; i < 4; ++i) r[i] = h.declare(m[i], "i", {from(r[i - 1]), from(r[i / 2], 1)});
    std::uint64_t values[4] = {};
    for (int i = 0; i < 4; ++i) values[i] = h.value(r[i]);
    h.release({r[0], r[1], r[2], r[3]});
    for (const int i : order) {
      REQUIRE(velo_recompute_restore(h, r[i], nullptr) == VELO_OK);
      CHECK(h.value(r[i]) == values[i]);
      REQUIRE(velo_recompute_end(h, r[i], nullptr) == VELO_OK);
      CHECK_FALSE(h.there(r[i]));
    }
    CHECK(h.stats().regions == 0);
    CHECK(h.stats().bytes == 0);
    CHECK(h.pool().stats().bytes_live == 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("what is inside a region is released and ends with it, and comes back by itself") {
  host h;
  host::made outer, inner, norm;
  const std::int64_t layer = h.declare(outer, "layer", {from_host(&x)});
  const std::int64_t mlp = h.declare(inner, "layer.mlp", {from_host(&x)}, layer);
  const std::int64_t deep = h.declare(norm, "layer.mlp.norm", {from(mlp)}, mlp);
  REQUIRE(velo_recompute_release(h, layer, nullptr) == VELO_OK);
  CHECK_FALSE(h.there(mlp));
  CHECK_FALSE(h.there(deep));
  REQUIRE(velo_recompute_restore(h, layer, nullptr) == VELO_OK);
  CHECK(inner.calls == 0);
  REQUIRE(velo_recompute_restore(h, deep, nullptr) == VELO_OK);
  CHECK(inner.calls == 1);
  CHECK(norm.calls == 1);
  REQUIRE(velo_recompute_end(h, layer, nullptr) == VELO_OK);
  CHECK_FALSE(h.there(deep));
  CHECK(h.pool().stats().bytes_live == 0);
  std::int64_t index = -1;
  CHECK_REFUSED(h.add(inner, "late", {}, &index, layer), VELO_ERR_ARGUMENT, "region.parent");
}

TEST_CASE("a region's function may call back in, but not undo what is being restored") {
  host h;
  host::made a, b, other, inside;
  const std::int64_t first = h.declare(a, "a", {from_host(&x)});
  const std::int64_t aside = h.declare(other, "other", {from_host(&x)});
  const std::int64_t second = h.declare(b, "b", {from(first)});
  std::vector<velo_status> seen;
  std::int64_t nested = -1;
  b.then = [&](const velo_recompute_call& call) {
    seen = {velo_recompute_release(call.recompute, first, nullptr),
            velo_recompute_end(call.recompute, first, nullptr),
            velo_recompute_release(call.recompute, second, nullptr),
            velo_recompute_end(call.recompute, second, nullptr),
            velo_recompute_restore(call.recompute, second, nullptr),
            velo_recompute_restore(call.recompute, aside, nullptr),
            h.add(inside, "inside", {from(second)}, &nested, second)};
    velo_recompute_destroy(call.recompute);
    return VELO_OK;
  };
  h.release({first, second, aside});
  REQUIRE(velo_recompute_restore(h, second, nullptr) == VELO_OK);
  CHECK(seen == std::vector<velo_status>{VELO_ERR_STATE, VELO_ERR_STATE, VELO_ERR_STATE,
                                         VELO_ERR_STATE, VELO_ERR_STATE, VELO_OK, VELO_OK});
  CHECK(other.calls == 1);
  CHECK(h.there(nested));
  REQUIRE(velo_recompute_end(h, second, nullptr) == VELO_OK);
  CHECK_FALSE(h.there(nested));
  CHECK(h.there(first));

  // A region that takes from one being restored cannot be restored by its function.
  host::made c, d;
  const std::int64_t third = h.declare(c, "c", {from_host(&x)});
  const std::int64_t fourth = h.declare(d, "d", {from(third)});
  velo_status circular = VELO_OK;
  c.then = [&](const velo_recompute_call&) {
    return circular = velo_recompute_restore(h, fourth, nullptr), VELO_OK;
  };
  h.release({third, fourth});
  REQUIRE(velo_recompute_restore(h, third, nullptr) == VELO_OK);
  CHECK(circular == VELO_ERR_STATE);
}

TEST_CASE("a function that fails or throws is named, and its region can be restored later") {
  host h;
  host::made a, b, hidden;
  const std::int64_t zero = h.declare(hidden, "embedding", {from_host(&x)});
  const std::int64_t first = h.declare(a, "layer3.mlp", {from(zero)});
  const std::int64_t second = h.declare(b, "layer4", {from(first)});
  const std::uint64_t value = h.value(second);
  h.release({zero, first, second});
  REQUIRE(velo_recompute_end(h, zero, nullptr) == VELO_OK);
  a.then = [](const velo_recompute_call& call) {
    return velo_recompute_restore(call.recompute, -5, nullptr);  // leaves a record
  };
  CHECK(velo_recompute_restore(h, second, nullptr) == VELO_ERR_FOREIGN);
  CHECK(last_record().got.find("'layer3.mlp'") != std::string::npos);
  CHECK(last_record().cause.find("velo_recompute_restore") != std::string::npos);
  CHECK(h.stats().bytes == 0);  // nothing of what had been restored before it is left
  a.then = [](const velo_recompute_call&) -> velo_status { throw std::runtime_error("no luck"); };
  CHECK(velo_recompute_restore(h, second, nullptr) == VELO_ERR_FOREIGN);
  CHECK(last_record().got.find("'layer3.mlp'") != std::string::npos);
  CHECK(last_record().cause == "no luck");
  CHECK(h.stats().bytes == 0);
  a.then = nullptr;
  REQUIRE(velo_recompute_restore(h, second, nullptr) == VELO_OK);
  CHECK(h.value(second) == value);
  CHECK(b.calls == 1);
}

TEST_CASE("an allocator without memory leaves regions as they were") {
  host h(std::uint64_t{4} << 20);
  host::made a, big;
  const std::int64_t first = h.declare(a, "a", {from_host(&x)});
  const std::uint64_t before = h.stats().bytes;
  std::int64_t index = -1;
  CHECK(h.add(big, "big", {from(first)}, &index, first, {1 << 20, 64 << 20}) == VELO_ERR_MEMORY);
  CHECK(index == -1);
  CHECK(h.stats().bytes == before);
  CHECK(h.stats().regions == 1);
  REQUIRE(velo_recompute_release(h, first, nullptr) == VELO_OK);
  void* hog = nullptr;
  REQUIRE(h.pool().allocate(4 << 20, &hog) == VELO_OK);
  CHECK(velo_recompute_restore(h, first, nullptr) == VELO_ERR_MEMORY);
  CHECK(a.calls == 0);
  velo_pool_free(h.pool(), hog, 4 << 20, nullptr);
  CHECK(velo_recompute_restore(h, first, nullptr) == VELO_OK);
  CHECK(velo_recompute_end(h, first, nullptr) == VELO_OK);  // nothing takes from it
  CHECK(h.pool().stats().bytes_live == 0);
}

TEST_CASE("a long chain is restored without recursion, and ends without a trace") {
  host h;
  constexpr int length = 20000;
  std::vector<host::made> m(length);
  std::int64_t last = -1;
  for (int i = 0; i < length; ++i) {
    const std::int64_t index = h.declare(m[i], "link", {i == 0 ? from_host(&x) : from(last)});
    if (i > 0) REQUIRE(velo_recompute_release(h, last, nullptr) == VELO_OK);
    last = index;
  }
  for (std::int64_t i = 0; i < last; ++i) REQUIRE(velo_recompute_end(h, i, nullptr) == VELO_OK);
  const std::uint64_t value = h.value(last);
  REQUIRE(velo_recompute_release(h, last, nullptr) == VELO_OK);
  REQUIRE(velo_recompute_restore(h, last, nullptr) == VELO_OK);
  CHECK(h.value(last) == value);
  REQUIRE(velo_recompute_end(h, last, nullptr) == VELO_OK);
  CHECK(h.pool().stats().bytes_live == 0);
}

TEST_CASE("memory goes back in the order of the stream, on which the function works") {
  const velo::testing::live_context context;
  const velo_stream stream = context.new_stream();
  host h;
  host::made m;
  const std::int64_t a = h.declare(m, "a", {from_host(&x)});
  REQUIRE(velo_recompute_release(h, a, stream) == VELO_OK);
  REQUIRE(velo_recompute_restore(h, a, stream) == VELO_OK);
  CHECK(m.stream == stream);
  REQUIRE(velo_recompute_end(h, a, stream) == VELO_OK);
  REQUIRE(velo_stream_synchronize(stream) == VELO_OK);
  const velo_event no_stream = context.new_event();
  CHECK(velo_recompute_release(h, a, reinterpret_cast<velo_stream>(no_stream)) == VELO_ERR_HANDLE);
}

TEST_CASE("regions that make no sense are refused by the field") {
  host h;
  host::made m;
  const std::int64_t a = h.declare(m, "a", {from_host(&x)});
  std::int64_t index = -1;
  const auto refused = [&](const std::vector<velo_recompute_input>& inputs, std::int64_t parent,
                           const std::vector<std::uint64_t>& outputs, const char* argument) {
    CHECK_REFUSED(h.add(m, "b", inputs, &index, parent, outputs), VELO_ERR_ARGUMENT, argument);
  };
  refused({from(a), from(a + 1)}, -1, {64}, "region.inputs[1].region");  // itself
  refused({from(-2)}, -1, {64}, "region.inputs[0].region");
  refused({from(a, 2)}, -1, {64}, "region.inputs[0].output");
  refused({from(a, -1)}, -1, {64}, "region.inputs[0].output");
  refused({}, 7, {64}, "region.parent");
  CHECK_REFUSED(h.add(m, "b", {from_host(&x), from_host(nullptr)}, &index, -1, {64}), VELO_ERR_NULL,
                "region.inputs[1].memory");
  refused({}, -1, {64, 0}, "region.output_bytes[1]");
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  CHECK_REFUSED(velo_recompute_add(h, &region, nullptr, &index), VELO_ERR_NULL, "region.name");
  region.name = "b";
  CHECK_REFUSED(velo_recompute_add(h, &region, nullptr, &index), VELO_ERR_NULL, "region.restore");
  region.restore = &host::restore;
  region.input_count = 1;
  CHECK(velo_recompute_add(h, &region, nullptr, &index) == VELO_ERR_NULL);
  region.input_count = INT64_MAX;
  CHECK(velo_recompute_add(h, &region, nullptr, &index) == VELO_ERR_ARGUMENT);
  CHECK(index == -1);
  CHECK(h.stats().regions == 1);
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  velo_recompute none = nullptr;
  CHECK(velo_recompute_create(&desc, &none) == VELO_ERR_NULL);
  velo_allocator half = VELO_ALLOCATOR_INIT;
  desc.allocator = &half;
  CHECK_REFUSED(velo_recompute_create(&desc, &none), VELO_ERR_NULL, "desc.allocator.allocate");
}
