// Memory of ranks that are processes lies in a file that the others can map.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "examples/decoder/memory/run_memory.hpp"

TEST_CASE("other processes can read the buffers of a shared pool where they lie") {
  decoder::run_memory memory({}, VELO_POOL_SHARED);
  const decoder::buffer one = memory.take(100000, VELO_PURPOSE_ACTIVATION);
  const std::string text = "read from the file";
  std::memcpy(one.data(), text.data(), text.size());
  std::int32_t file = -1;
  std::uint64_t offset = 0;
  REQUIRE(velo_pool_locate(memory.pool(), one.data(), &file, &offset) == VELO_OK);
  std::string found(text.size(), ' ');
  REQUIRE(::pread(file, found.data(), found.size(), static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(found.size()));
  CHECK(found == text);

  decoder::run_memory own;
  const decoder::buffer other = own.take(100000, VELO_PURPOSE_ACTIVATION);
  CHECK(velo_pool_locate(own.pool(), other.data(), &file, &offset) == VELO_ERR_UNSUPPORTED);
}
