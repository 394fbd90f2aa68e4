// The context through the C API: creation, the inline stream, refusal of what is not its kind.
#include "velo/context.h"

#include <catch2/catch.hpp>
#include <string>

#include "velo/stream.h"
#include "velo/tensor.h"

namespace {

struct made_context {
  velo_context handle = nullptr;
  explicit made_context(const char* json = nullptr) {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.config_json = json;
    REQUIRE(velo_context_create(&desc, &handle) == VELO_OK);
  }
  ~made_context() { velo_context_destroy(handle); }
};

velo_error_info last() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  REQUIRE(velo_last_error(&info) == VELO_OK);
  return info;
}

}  // namespace

TEST_CASE("a context has one inline stream, which is always idle") {
  made_context context;
  velo_stream stream = nullptr, again = nullptr;
  REQUIRE(velo_context_stream(context.handle, &stream) == VELO_OK);
  REQUIRE(velo_context_stream(context.handle, &again) == VELO_OK);
  CHECK(stream == again);
  std::int32_t done = 0;
  CHECK(velo_stream_query(stream, &done) == VELO_OK);
  CHECK(done == 1);
  CHECK(velo_stream_synchronize(stream) == VELO_OK);
}

TEST_CASE("a handle of another kind is refused by name") {
  made_context context;
  velo_stream stream = nullptr;
  REQUIRE(velo_context_stream(context.handle, &stream) == VELO_OK);
  CHECK(velo_stream_synchronize(reinterpret_cast<velo_stream>(context.handle)) == VELO_ERR_HANDLE);
  CHECK(std::string(last().got) == "a context");
  CHECK(std::string(last().argument) == "stream");
  CHECK(std::string(last().function) == "velo_stream_synchronize");
  CHECK(velo_context_stream(nullptr, &stream) == VELO_ERR_NULL);
}

TEST_CASE("destroying a context destroys its streams and events") {
  velo_context context = nullptr;
  REQUIRE(velo_context_create(nullptr, &context) == VELO_OK);
  velo_stream own = nullptr, queue = nullptr;
  velo_event event = nullptr;
  REQUIRE(velo_context_stream(context, &own) == VELO_OK);
  REQUIRE(velo_stream_create(context, &queue) == VELO_OK);
  REQUIRE(velo_event_create(context, &event) == VELO_OK);
  velo_context_destroy(context);
  CHECK(velo_stream_synchronize(own) == VELO_ERR_HANDLE);
  CHECK(std::string(last().got) == "a destroyed stream");
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_HANDLE);
  CHECK(velo_event_synchronize(event, 0) == VELO_ERR_HANDLE);
  CHECK(std::string(last().got) == "a destroyed event");
  CHECK(velo_context_stream(context, &own) == VELO_ERR_HANDLE);
  CHECK(std::string(last().got) == "a destroyed context");
}
