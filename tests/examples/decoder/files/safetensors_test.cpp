// The format round trip, and headers that lie.
#include "examples/decoder/files/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "examples/decoder/failure.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

namespace {

std::string with_header(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  return file + header + std::string(data_bytes, '\0');
}

std::string refusal(const std::string& bytes) {
  temporary t;
  return refusal_of([&] { safetensors_reader(put(t / "f", bytes)); });
}

std::string tensor(const char* dtype, const char* shape, const char* offsets) {
  return std::string(R"({"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

}  // namespace

TEST_CASE("tensors written are tensors read") {
  temporary t;
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, a2(6);
  std::vector<std::uint16_t> b = {7, 8}, b2(2);
  durable_file file(t / "f");
  write_safetensors(file,
                    {{"a", element::f32, {2, 3}, a.data()}, {"b", element::bf16, {2}, b.data()}},
                    {{"format", "pt"}});
  file.finish();
  const safetensors_reader reader(t / "f");
  reader.read_exactly(
      {{"a", element::f32, {2, 3}, a2.data()}, {"b", element::bf16, {2}, b2.data()}});
  CHECK(a == a2);
  CHECK(b == b2);
  CHECK(reader.entries().at("a").begin % 64 == 0);
  CHECK_THROWS_WITH(reader.read({"a", element::f32, {3, 2}, a2.data()}),
                    Contains("is F32 [2, 3], expected F32 [3, 2]"));
  CHECK_THROWS_WITH(reader.read({"b", element::f32, {1}, a2.data()}),
                    Contains("is BF16 [2], expected F32 [1]"));
  CHECK_THROWS_WITH(reader.read({"c", element::f32, {1}, a2.data()}), Contains("has no tensor c"));
  CHECK_THROWS_WITH(reader.read_exactly({{"a", element::f32, {2, 3}, a2.data()}}),
                    Contains("tensor b has no place"));
}

TEST_CASE("a well-formed header by another hand is accepted") {
  CHECK(refusal(with_header(R"({"a":)" + tensor("F32", "[2]", "[0,8]") + "}   ", 8)) == "accepted");
  CHECK(refusal(with_header("{}", 0)) == "accepted");
  CHECK(refusal(with_header(R"({"e":)" + tensor("BF16", "[0,5]", "[0,0]") + "}", 0)) == "accepted");
}

TEST_CASE("headers that lie are refused") {
  const std::string good = R"({"a":)" + tensor("F32", "[2]", "[0,8]") + "}";
  CHECK_THAT(refusal(""), Contains("too short"));
  CHECK_THAT(refusal(std::string(8, '\xff')), Contains("exceeds the file"));
  CHECK_THAT(refusal(with_header(good, 8).substr(0, 30)), Contains("exceeds the file"));
  CHECK_THAT(refusal(with_header(R"({"a":)", 0)), Contains("malformed header"));
  CHECK_THAT(refusal(with_header("[]", 0)), Contains("not an object"));
  CHECK_THAT(refusal(with_header(good, 7)), Contains("beyond the end"));
  CHECK_THAT(refusal(with_header(good, 9)), Contains("belong to none"));
  const auto one = [&](const std::string& t, std::size_t bytes) {
    return refusal(with_header(R"({"a":)" + t + "}", bytes));
  };
  CHECK_THAT(one("5", 0), Contains("must have dtype"));
  CHECK_THAT(one(tensor("I64", "[1]", "[0,8]"), 8), Contains("none of F32, BF16 and I32"));
  CHECK_THAT(one(tensor("F32", "[-1]", "[0,8]"), 8), Contains("malformed shape"));
  CHECK_THAT(one(tensor("F32", "[2.0]", "[0,8]"), 8), Contains("malformed shape"));
  CHECK_THAT(one(tensor("F32", "[3]", "[0,8]"), 8), Contains("disagree"));
  CHECK_THAT(one(tensor("F32", "[4611686018427387904, 4]", "[0,0]"), 0), Contains("too large"));
  CHECK_THAT(one(tensor("F32", "[2]", "[8,0]"), 8), Contains("malformed data_offsets"));
  CHECK_THAT(one(tensor("F32", "[2]", "[-8,0]"), 8), Contains("malformed data_offsets"));
  CHECK_THAT(one(tensor("F32", "[2]", "[0]"), 8), Contains("two data_offsets"));
  const auto two = [&](const char* first, const char* second, std::size_t bytes) {
    return refusal(with_header(
        R"({"a":)" + tensor("F32", "[2]", first) + R"(,"b":)" + tensor("F32", "[2]", second) + "}",
        bytes));
  };
  CHECK(two("[0,8]", "[8,16]", 16) == "accepted");
  CHECK(two("[8,16]", "[0,8]", 16) == "accepted");
  CHECK_THAT(two("[0,8]", "[4,12]", 12), Contains("overlap"));
  CHECK_THAT(two("[0,8]", "[12,20]", 20), Contains("between tensors"));
  CHECK_THAT(refusal(with_header(R"({"a":)" + tensor("F32", "[2]", "[0,8]") + R"(,"a":)" +
                                     tensor("F32", "[2]", "[0,8]") + "}",
                                 8)),
             Contains("malformed header"));
}
