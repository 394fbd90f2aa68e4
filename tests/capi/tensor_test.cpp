// Managed tensors: made, handed over, released once, also after their context.
#include "velo/tensor.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "tests/context.hpp"
#include "tests/host_memory.hpp"
#include "tests/refusals.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

TEST_CASE("a made tensor is compact, aligned, writable, and gives its bytes back") {
  const live_context context;
  const std::uint64_t before = context.stats().bytes_allocated;
  const std::int64_t shape[] = {3, 5, 7};
  velo_managed_tensor* made = nullptr;
  REQUIRE(velo_tensor_create(context, &bf16, 3, shape, &made) == VELO_OK);
  CHECK(made->version.major == 1);
  CHECK(made->flags == 0);
  CHECK(made->tensor.ndim == 3);
  CHECK(made->tensor.shape != shape);
  CHECK(std::memcmp(made->tensor.shape, shape, sizeof shape) == 0);
  REQUIRE(made->tensor.strides != nullptr);
  CHECK(made->tensor.strides[0] == 35);
  CHECK(made->tensor.strides[2] == 1);
  CHECK(reinterpret_cast<std::uintptr_t>(made->tensor.data) % 64 == 0);
  std::uint64_t bytes = 0;
  REQUIRE(velo_tensor_extent(&made->tensor, &bytes) == VELO_OK);
  CHECK(bytes == 3 * 5 * 7 * 2);
  std::memset(made->tensor.data, 1, bytes);
  CHECK(context.stats().bytes_allocated > before + bytes);
  velo_tensor_release(made);
  CHECK(context.stats().bytes_allocated == before);
}

TEST_CASE("a tensor may be released after its context") {
  host_memory host;
  const velo_allocator allocator = host.allocator();
  velo_managed_tensor* made = nullptr;
  {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.allocator = &allocator;
    const live_context context(desc);
    const std::int64_t shape[] = {1000};
    REQUIRE(velo_tensor_create(context, &f32, 1, shape, &made) == VELO_OK);
  }
  CHECK(host.bytes > 4000);
  std::memset(made->tensor.data, 0, 4000);
  made->deleter(made);
  CHECK(host.bytes == 0);
}

TEST_CASE("scalars and empty tensors are tensors") {
  const live_context context;
  velo_managed_tensor* made = nullptr;
  REQUIRE(velo_tensor_create(context, &f32, 0, nullptr, &made) == VELO_OK);
  std::uint64_t bytes = 9;
  CHECK(velo_tensor_extent(&made->tensor, &bytes) == VELO_OK);
  CHECK(bytes == 4);
  velo_tensor_release(made);
  const std::int64_t shape[] = {std::int64_t{1} << 40, 0, std::int64_t{1} << 40};
  REQUIRE(velo_tensor_create(context, &f32, 3, shape, &made) == VELO_OK);
  CHECK(velo_tensor_extent(&made->tensor, &bytes) == VELO_OK);
  CHECK(bytes == 0);
  velo_tensor_release(made);
  velo_tensor_release(nullptr);
}

TEST_CASE("what cannot be made is refused by name, and nothing is handed out") {
  const live_context context;
  velo_managed_tensor* const untouched = reinterpret_cast<velo_managed_tensor*>(0x40);
  velo_managed_tensor* made = untouched;
  const std::int64_t good[] = {2, 3}, negative[] = {2, -3},
                     vast[] = {std::int64_t{1} << 31, std::int64_t{1} << 31, 4},
                     large[] = {std::int64_t{1} << 55};
  struct request {
    velo_dtype dtype;
    std::int32_t ndim;
    const std::int64_t* shape;
  };
  const auto create = [&](const request& r) {
    return velo_tensor_create(context, &r.dtype, r.ndim, r.shape, &made);
  };
  check_refusals(
      request{f32, 2, good}, create,
      {{[&](request& r) { r.shape = negative; }, VELO_ERR_SHAPE, "shape[1]"},
       {[&](request& r) { r.shape = nullptr; }, VELO_ERR_NULL, "shape"},
       {[&](request& r) { r.ndim = 3, r.shape = vast; }, VELO_ERR_SHAPE, "shape"},
       {[&](request& r) { r.ndim = 1, r.shape = large; }, VELO_ERR_MEMORY, ""},
       {[&](request& r) { r.ndim = 9; }, VELO_ERR_RANK, "ndim"},
       {[&](request& r) { r.ndim = -1; }, VELO_ERR_RANK, "ndim"},
       {[&](request& r) { r.dtype.code = 9; }, VELO_ERR_DTYPE, "dtype"},
       {[&](request& r) { r.dtype.lanes = 4; }, VELO_ERR_DTYPE, "dtype"},
       {[&](request& r) { r.dtype.bits = 12; }, VELO_ERR_DTYPE, "dtype"},
       {[&](request& r) { r.dtype.code = VELO_DTYPE_BFLOAT; }, VELO_ERR_DTYPE, "dtype"}});
  CHECK_REFUSED(velo_tensor_create(context, &f32, 2, good, nullptr), VELO_ERR_NULL, "tensor");
  CHECK_REFUSED(velo_tensor_create(nullptr, &f32, 2, good, &made), VELO_ERR_NULL, "context");
  CHECK(made == untouched);
}

TEST_CASE("a foreign tensor is checked, viewed, and its deleter called once") {
  const live_context context;
  float data[6] = {};
  std::int64_t shape[] = {2, 3};
  int deleted = 0;
  velo_managed_tensor foreign{
      {1, 3},
      &deleted,
      [](velo_managed_tensor* self) { ++*static_cast<int*>(self->manager_context); },
      VELO_MANAGED_READ_ONLY,
      view_of(data, f32, shape)};
  velo_tensor seen{};
  REQUIRE(velo_tensor_import(context, &foreign, &seen) == VELO_OK);
  CHECK(seen.data == data);
  CHECK(deleted == 0);

  velo_tensor untouched{};
  const std::int64_t negative[] = {2, -1};
  const auto import = [&](velo_managed_tensor m) {
    return velo_tensor_import(context, &m, &untouched);
  };
  using managed = velo_managed_tensor;
  check_refusals(
      foreign, import,
      {{[](managed& m) { m.version.major = 2; }, VELO_ERR_ABI, "managed.version"},
       {[](managed& m) { m.tensor.device.type = 2; }, VELO_ERR_DEVICE, "managed.tensor.device"},
       {[&](managed& m) { m.tensor.shape = negative; }, VELO_ERR_SHAPE, "managed.tensor.shape[1]"},
       {[](managed& m) { m.tensor.ndim = 9; }, VELO_ERR_RANK, "managed.tensor.ndim"}});
  CHECK(untouched.data == nullptr);
  velo_tensor_release(&foreign);
  CHECK(deleted == 1);
  foreign.deleter = nullptr;
  velo_tensor_release(&foreign);
  foreign.deleter = [](velo_managed_tensor*) { throw 1; };
  velo_tensor_release(&foreign);  // the host's exception ends here
  CHECK(deleted == 1);
}

TEST_CASE("the extent follows strides of either sign and refuses what overflows") {
  std::uint64_t bytes = 0;
  const std::int64_t shape[] = {3, 4}, wide[] = {10, 2}, backward[] = {-10, 2}, same[] = {0, 0},
                     vast[] = {std::numeric_limits<std::int64_t>::max() / 2, 1},
                     lowest[] = {std::numeric_limits<std::int64_t>::min(), 1};
  velo_tensor t = view_of(nullptr, f32, shape);
  constexpr std::uint64_t spread = (2 * 10 + 3 * 2 + 1) * 4;
  for (const auto& [strides, extent] :
       {std::pair{wide, spread}, {backward, spread}, {same, std::uint64_t{4}}}) {
    t.strides = strides;
    REQUIRE(velo_tensor_extent(&t, &bytes) == VELO_OK);
    CHECK(bytes == extent);
  }
  bytes = 77;
  t.strides = vast;
  CHECK(velo_tensor_extent(&t, &bytes) == VELO_ERR_SHAPE);
  t.strides = lowest;
  CHECK(velo_tensor_extent(&t, &bytes) == VELO_ERR_SHAPE);
  CHECK(velo_tensor_extent(nullptr, &bytes) == VELO_ERR_NULL);
  CHECK(velo_tensor_extent(&t, nullptr) == VELO_ERR_NULL);
  t.ndim = -2;
  CHECK(velo_tensor_extent(&t, &bytes) == VELO_ERR_RANK);
  CHECK(bytes == 77);
}

TEST_CASE("two int4 share a byte, and rows begin at whole bytes") {
  const live_context context;
  const std::int64_t shape[] = {3, 10}, odd[] = {4, 5};
  velo_managed_tensor* made = nullptr;
  REQUIRE(velo_tensor_create(context, &i4, 2, shape, &made) == VELO_OK);
  std::uint64_t bytes = 0;
  REQUIRE(velo_tensor_extent(&made->tensor, &bytes) == VELO_OK);
  CHECK(bytes == 15);
  velo_tensor_release(made);
  CHECK(velo_tensor_create(context, &i4, 2, odd, &made) == VELO_ERR_SHAPE);
  CHECK(velo_tensor_create(context, &i4, 0, nullptr, &made) == VELO_ERR_SHAPE);
}
