// Managed tensors: made, handed over, released once, also after their context.
#include "velo/tensor.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "tests/context.hpp"
#include "tests/record.hpp"
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
  struct counted {
    std::int64_t live = 0;
  } host;
  const velo_allocator allocator{
      sizeof(velo_allocator), 0, &host,
      [](void* user, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
        static_cast<counted*>(user)->live += static_cast<std::int64_t>(bytes);
        return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      },
      [](void* user, void* memory, std::uint64_t bytes, const velo_device*, void*) {
        static_cast<counted*>(user)->live -= static_cast<std::int64_t>(bytes);
        std::free(memory);
      }};
  velo_managed_tensor* made = nullptr;
  {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.allocator = &allocator;
    const live_context context(desc);
    const std::int64_t shape[] = {1000};
    REQUIRE(velo_tensor_create(context, &f32, 1, shape, &made) == VELO_OK);
  }
  CHECK(host.live > 4000);
  std::memset(made->tensor.data, 0, 4000);
  made->deleter(made);
  CHECK(host.live == 0);
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
  CHECK_REFUSED(velo_tensor_create(context, &f32, 2, negative, &made), VELO_ERR_SHAPE, "shape[1]");
  CHECK(velo_tensor_create(context, &f32, 9, good, &made) == VELO_ERR_RANK);
  CHECK(velo_tensor_create(context, &f32, -1, good, &made) == VELO_ERR_RANK);
  CHECK(velo_tensor_create(context, &f32, 2, nullptr, &made) == VELO_ERR_NULL);
  CHECK(velo_tensor_create(context, &f32, 2, good, nullptr) == VELO_ERR_NULL);
  CHECK(velo_tensor_create(context, &f32, 3, vast, &made) == VELO_ERR_SHAPE);
  CHECK(velo_tensor_create(context, &f32, 1, large, &made) == VELO_ERR_MEMORY);
  for (const velo_dtype bad :
       {velo_dtype{9, 32, 1}, velo_dtype{VELO_DTYPE_FLOAT, 32, 4},
        velo_dtype{VELO_DTYPE_FLOAT, 12, 1}, velo_dtype{VELO_DTYPE_BFLOAT, 32, 1}})
    CHECK(velo_tensor_create(context, &bad, 2, good, &made) == VELO_ERR_DTYPE);
  CHECK(velo_tensor_create(nullptr, &f32, 2, good, &made) == VELO_ERR_NULL);
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
  foreign.version.major = 2;
  CHECK(velo_tensor_import(context, &foreign, &untouched) == VELO_ERR_ABI);
  foreign.version.major = 1;
  foreign.tensor.device.type = 2;
  CHECK(velo_tensor_import(context, &foreign, &untouched) == VELO_ERR_DEVICE);
  foreign.tensor.device.type = VELO_DEVICE_CPU;
  shape[1] = -1;
  CHECK(velo_tensor_import(context, &foreign, &untouched) == VELO_ERR_SHAPE);
  shape[1] = 3;
  foreign.tensor.ndim = 9;
  CHECK(velo_tensor_import(context, &foreign, &untouched) == VELO_ERR_RANK);
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
  velo_tensor t = view_of(nullptr, f32, shape, wide);
  REQUIRE(velo_tensor_extent(&t, &bytes) == VELO_OK);
  CHECK(bytes == (2 * 10 + 3 * 2 + 1) * 4);
  t.strides = backward;
  REQUIRE(velo_tensor_extent(&t, &bytes) == VELO_OK);
  CHECK(bytes == (2 * 10 + 3 * 2 + 1) * 4);
  t.strides = same;
  REQUIRE(velo_tensor_extent(&t, &bytes) == VELO_OK);
  CHECK(bytes == 4);
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
