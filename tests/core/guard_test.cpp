// The guard at the C boundary and the error record: whatever is thrown becomes a status with its
// facts.
#include "core/handle/guard.hpp"

#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/text/json.hpp"

using namespace velo::core;

TEST_CASE("a failure leaves its facts and the function's name in the record") {
  const velo_status status =
      guard("velo_test", [] { fail(VELO_ERR_SHAPE, "args.gamma", "[4096]", "[4095]", "because"); });
  CHECK(status == VELO_ERR_SHAPE);
  const velo_error_info& record = last_record();
  CHECK(record.code == VELO_ERR_SHAPE);
  CHECK(std::string(record.function) == "velo_test");
  CHECK(std::string(record.argument) == "args.gamma");
  CHECK(std::string(record.expected) == "[4096]");
  CHECK(std::string(record.got) == "[4095]");
  CHECK(std::string(record.cause) == "because");
  CHECK(record.rank == -1);
  char sentence[512];
  record_text(record, sentence, sizeof sentence);
  CHECK(std::string(sentence) == "velo_test: args.gamma: expected [4096], got [4095]: because");
}

TEST_CASE("foreign exceptions become statuses") {
  CHECK(guard("velo_test", [] { throw 42; }) == VELO_ERR_INTERNAL);
  CHECK(std::string(last_record().cause) == "an exception of unknown type");
  CHECK(guard("velo_test", [] { throw std::bad_alloc(); }) == VELO_ERR_MEMORY);
  CHECK(guard("velo_test", [] { throw std::runtime_error("disk on fire"); }) == VELO_ERR_INTERNAL);
  CHECK(std::string(last_record().cause) == "disk on fire");
  CHECK(std::string(last_record().argument).empty());
}

TEST_CASE("a success leaves the record alone") {
  guard("velo_first", [] { fail(VELO_ERR_RANK, "x", "2", "3"); });
  CHECK(guard("velo_second", [] {}) == VELO_OK);
  CHECK(last_record().code == VELO_ERR_RANK);
  CHECK(std::string(last_record().function) == "velo_first");
}

TEST_CASE("a failure that carries its function keeps it") {
  failure kept;
  kept.code = VELO_ERR_IO;
  kept.rank = 3;
  copy_text(kept.function, sizeof kept.function, "velo_queued");
  CHECK(guard("velo_stream_synchronize", [&] { throw failure(kept); }) == VELO_ERR_IO);
  CHECK(std::string(last_record().function) == "velo_queued");
  char sentence[512];
  record_text(last_record(), sentence, sizeof sentence);
  CHECK(std::string(sentence) == "velo_queued (rank 3)");
}

TEST_CASE("each thread has its own record, empty at first") {
  guard("velo_here", [] { fail(VELO_ERR_RANK, "x", "2", "3"); });
  velo_error_info there{};
  std::thread([&] { there = last_record(); }).join();
  CHECK(there.code == VELO_OK);
  CHECK(there.rank == -1);
  CHECK(last_record().code == VELO_ERR_RANK);
}

TEST_CASE("texts are cut at a character") {
  char buffer[6];
  copy_text(buffer, sizeof buffer,
            "abcd\xc3\xa4");  // the last character is two bytes and does not fit
  CHECK(std::string(buffer) == "abcd");
  copy_text(buffer, sizeof buffer, "abc\xc3\xa4");
  CHECK(std::string(buffer) == "abc\xc3\xa4");
  copy_text(buffer, sizeof buffer, nullptr);
  CHECK(std::string(buffer).empty());
}
TEST_CASE("control characters do not reach a record") {
  guard("velo_read", [] { fail(VELO_ERR_PARSE, "text", "a name", "a\n\x1b[31m\x7f"); });
  CHECK(last_record().got == std::string("a??[31m?"));
}
TEST_CASE("bytes that are not UTF-8 do not reach a record") {
  char buffer[16];
  const auto copied = [&](const char* source) {
    copy_text(buffer, sizeof buffer, source);
    return std::string(buffer);
  };
  CHECK(copied("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z") ==
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
  CHECK(copied("\xff"
               "a") == "?a");
  CHECK(copied("\x80\xbf"
               "a") == "??a");
  CHECK(copied("\xc3") == "?");
  CHECK(copied("\xe2\x82") == "??");
  CHECK(copied("\xc0\xaf") == "??");
  CHECK(copied("\xe0\x80\xaf") == "???");
  CHECK(copied("\xed\xa0\x80") == "???");
  CHECK(copied("\xf4\x90\x80\x80") == "????");
  std::string json;
  velo::core::append_json_string(json, "\xff\xc3\xa4");
  CHECK(json == "\"?\xc3\xa4\"");
}
