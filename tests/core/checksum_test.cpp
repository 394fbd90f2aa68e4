// The checksum is the CRC-32 of zip, of any length and place, by the definition: one bit at a time.
#include "core/checksum.hpp"
#include "tests/random.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

using velo::core::checksum;
using velo::core::checksum_by_tables;

namespace {

std::uint32_t by_definition(const char* bytes, std::size_t count) {
  std::uint32_t sum = 0xffffffff;
  for (std::size_t i = 0; i < count; ++i) {
    sum ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

std::string random_bytes(std::size_t count) {
  std::string all;
  velo::testing::cheap_random draw(1);
  while (all.size() < count) all += static_cast<char>(draw() >> 24);
  return all;
}

}  // namespace

TEST_CASE("a checksum is that of zip, of every length and place") {
  CHECK(checksum("123456789", 9) == 0xcbf43926);
  CHECK(checksum_by_tables("123456789", 9) == 0xcbf43926);
  const std::string bytes = random_bytes(70000);
  for (std::size_t count = 0; count < 700; ++count)
    for (std::size_t begin : {0, 1, 7, 16}) {
      CAPTURE(count, begin);
      const std::uint32_t sum = by_definition(&bytes[begin], count);
      REQUIRE(checksum(&bytes[begin], count) == sum);
      REQUIRE(checksum_by_tables(&bytes[begin], count) == sum);
    }
  for (std::size_t count : {4096, 65536, 69999}) {
    const std::uint32_t sum = by_definition(bytes.data(), count);
    CHECK(checksum(bytes.data(), count) == sum);
    CHECK(checksum_by_tables(bytes.data(), count) == sum);
  }
}

TEST_CASE("a checksum sees every bit") {
  std::string bytes = random_bytes(4096);
  const std::uint32_t before = checksum(bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 37) {
    const char mask = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
    CHECK(checksum(bytes.data(), bytes.size()) != before);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
  }
  CHECK(checksum(bytes.data(), bytes.size()) == before);
}
