// The error record and the names of codes through the C API.
#include "velo/status.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>

#include "velo/context.h"

namespace {

void fail_once() {
  REQUIRE(velo_context_create(nullptr, nullptr) == VELO_ERR_NULL);
}

}  // namespace

TEST_CASE("the record names function and argument, and survives a success") {
  fail_once();
  REQUIRE(velo_status_describe(VELO_OK, nullptr, nullptr) == VELO_OK);
  velo_error_info info = VELO_ERROR_INFO_INIT;
  REQUIRE(velo_last_error(&info) == VELO_OK);
  CHECK(info.struct_size == sizeof info);
  CHECK(info.code == VELO_ERR_NULL);
  CHECK(info.rank == -1);
  CHECK(std::string(info.function) == "velo_context_create");
  CHECK(std::string(info.argument) == "context");
}

TEST_CASE("a shorter record is written no further than its size") {
  fail_once();
  unsigned char bytes[sizeof(velo_error_info) + 16];
  std::memset(bytes, 0x5a, sizeof bytes);
  const std::uint32_t size = 48;
  std::memcpy(bytes, &size, sizeof size);
  REQUIRE(velo_last_error(reinterpret_cast<velo_error_info*>(bytes)) == VELO_OK);
  CHECK(bytes[offsetof(velo_error_info, function)] == 'v');
  for (std::size_t i = size; i < sizeof bytes; ++i) REQUIRE(bytes[i] == 0x5a);
}

TEST_CASE("asking wrongly for the record does not change it") {
  fail_once();
  CHECK(velo_last_error(nullptr) == VELO_ERR_NULL);
  velo_error_info info = VELO_ERROR_INFO_INIT;
  for (const std::uint32_t size : {0u, 8u, 5000u, 0xffffffffu}) {
    info.struct_size = size;
    CHECK(velo_last_error(&info) == VELO_ERR_STRUCT);
  }
  CHECK(velo_error_text(nullptr, 10, nullptr) == VELO_ERR_NULL);
  info.struct_size = sizeof info;
  REQUIRE(velo_last_error(&info) == VELO_OK);
  CHECK(info.code == VELO_ERR_NULL);
  CHECK(std::string(info.function) == "velo_context_create");
}

TEST_CASE("the sentence is measured, written and cut") {
  fail_once();
  std::uint64_t needed = 0;
  REQUIRE(velo_error_text(nullptr, 0, &needed) == VELO_OK);
  std::string text(needed, '?');
  REQUIRE(velo_error_text(&text[0], needed, &needed) == VELO_OK);
  CHECK(text == std::string("velo_context_create: context: expected a pointer, got NULL") + '\0');
  char small[5];
  REQUIRE(velo_error_text(small, sizeof small, &needed) == VELO_OK);
  CHECK(std::string(small) == "velo");
  CHECK(needed == text.size());
}

TEST_CASE("every code has a name and a meaning of its own") {
  std::set<std::string> names, meanings;
  for (velo_status code = -5; code < 64; ++code) {
    const char *name = nullptr, *meaning = nullptr;
    const bool known = (code >= VELO_OK && code <= VELO_ERR_FULL) ||
                       (code >= VELO_ERR_MEMORY && code <= VELO_ERR_INTERNAL);
    const velo_status status = velo_status_describe(code, &name, &meaning);
    CHECK(status == (known ? VELO_OK : VELO_ERR_ARGUMENT));
    if (!known) {
      CHECK(name == nullptr);
      continue;
    }
    CHECK(names.insert(name).second);
    CHECK(meanings.insert(meaning).second);
  }
  const char* name = nullptr;
  REQUIRE(velo_status_describe(VELO_ERR_OVERLAP, &name, nullptr) == VELO_OK);
  CHECK(std::string(name) == "VELO_ERR_OVERLAP");
}
