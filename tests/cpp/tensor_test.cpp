// tensor_view and bfloat16: descriptions that carry their own sizes, independent of the library.
#include "velo/tensor.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "velo/bfloat16.hpp"

namespace {

TEST_CASE("a view made from a pointer and sizes is compact and of the pointer's dtype") {
  float data[24] = {};
  const velo::tensor_view view(data, {2, 3, 4});
  const velo_tensor& tensor = view;
  CHECK(tensor.data == data);
  CHECK(tensor.ndim == 3);
  CHECK(tensor.dtype.code == VELO_DTYPE_FLOAT);
  CHECK(tensor.dtype.bits == 32);
  CHECK(tensor.dtype.lanes == 1);
  CHECK(tensor.strides == nullptr);
  CHECK(tensor.device.type == VELO_DEVICE_CPU);
  CHECK(tensor.shape[0] == 2);
  CHECK(tensor.shape[2] == 4);
  CHECK(view.numel() == 24);
  CHECK(view.stride(0) == 12);
  CHECK(view.stride(2) == 1);
}

TEST_CASE("a copy describes the same memory with sizes of its own") {
  float data[6] = {};
  velo::tensor_view copy;
  {
    const velo::tensor_view original(data, {2, 3}, {1, 2});
    copy = original;
    CHECK(copy.get()->shape != original.get()->shape);
  }
  CHECK(copy.get()->data == data);
  CHECK(copy.get()->shape[1] == 3);
  REQUIRE(copy.get()->strides != nullptr);
  CHECK(copy.get()->strides[1] == 2);
  const velo::tensor_view again(copy);
  CHECK(again.get()->strides != copy.get()->strides);
  CHECK(again.stride(0) == 1);
}

TEST_CASE("element types map to DLPack's dtypes") {
  const auto same = [](velo_dtype a, int code, int bits) {
    return a.code == code && a.bits == bits && a.lanes == 1;
  };
  CHECK(same(velo::dtype<velo::bfloat16>, VELO_DTYPE_BFLOAT, 16));
  CHECK(same(velo::dtype<const float>, VELO_DTYPE_FLOAT, 32));
  CHECK(same(velo::dtype<double>, VELO_DTYPE_FLOAT, 64));
  CHECK(same(velo::dtype<int64_t>, VELO_DTYPE_INT, 64));
  CHECK(same(velo::dtype<uint8_t>, VELO_DTYPE_UINT, 8));
  CHECK(same(velo::dtype<bool>, VELO_DTYPE_BOOL, 8));
}

TEST_CASE("transposing exchanges sizes and strides and leaves the data") {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const velo::tensor_view view(data, {2, 3});
  const velo::tensor_view transposed = view.transposed(0, 1);
  CHECK(transposed.size(0) == 3);
  CHECK(transposed.size(1) == 2);
  CHECK(transposed.stride(0) == 1);
  CHECK(transposed.stride(1) == 3);
  CHECK(transposed.data<float>() == data);
}

TEST_CASE("sizes and strides of different lengths make a view that calls refuse") {
  float data[6] = {};
  const velo::tensor_view view(data, {2, 3}, {1});
  CHECK(view.rank() == -1);
}

TEST_CASE("a rank above eight is kept, so that the library can refuse it") {
  float data[1] = {};
  const velo::tensor_view view(data, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(view.rank() == 9);
  CHECK(view.numel() == 1);
}

TEST_CASE("bfloat16 rounds to nearest even") {
  const auto bits = [](float value) { return velo::bfloat16(value).bits; };
  CHECK(bits(1.0f) == 0x3f80);
  CHECK(bits(1.0f + 1.0f / 256) == 0x3f80);          // a tie: the even neighbor is below
  CHECK(bits(1.0f + 3.0f / 256) == 0x3f82);          // a tie: the even neighbor is above
  CHECK(bits(1.0f + 1.0f / 256 + 1e-6f) == 0x3f81);  // just past the tie
  CHECK(bits(-0.0f) == 0x8000);
  CHECK(bits(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(bits(std::numeric_limits<float>::max()) == 0x7f80);  // rounds up to infinity
}

TEST_CASE("bfloat16 keeps every NaN a NaN") {
  uint32_t word = 0x7f800001u;  // a NaN whose kept bits alone would read as infinity
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  CHECK(std::isnan(static_cast<float>(velo::bfloat16(value))));
}

TEST_CASE("every bfloat16 survives the way through float") {
  for (uint32_t i = 0; i < 65536; ++i) {
    velo::bfloat16 value;
    value.bits = static_cast<uint16_t>(i);
    const float wide = value;
    if (std::isnan(wide)) continue;
    REQUIRE(velo::bfloat16(wide).bits == i);
  }
}

}  // namespace
