// Logging: by level, to the host's sink, one line at a time, never failing.
#include "core/text/log.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace velo::core;

namespace {

struct collected {
  std::vector<std::string> lines;
  static void sink(void* user, velo_log_level level, const char* component, const char* line) {
    static_cast<collected*>(user)->lines.push_back(std::string(log_level_name(level)) + "/" +
                                                   component + "/" + line);
  }
};

}  // namespace

TEST_CASE("only what the level lets through reaches the sink") {
  collected to;
  logger log(&collected::sink, &to);
  log.write(VELO_LOG_ERROR, "test", "unheard");
  log.set_level(VELO_LOG_WARN);
  log.write(VELO_LOG_ERROR, "test", "number %d", 1);
  log.write(VELO_LOG_WARN, "test", "number %d", 2);
  log.write(VELO_LOG_INFO, "test", "number %d", 3);
  CHECK(to.lines == std::vector<std::string>{"error/test/number 1", "warn/test/number 2"});
}

TEST_CASE("a long line is cut and a throwing sink is ignored") {
  collected to;
  logger log(&collected::sink, &to);
  log.set_level(VELO_LOG_DEBUG);
  log.write(VELO_LOG_DEBUG, "test", "%s", std::string(5000, 'x').c_str());
  REQUIRE(to.lines.size() == 1);
  CHECK(to.lines[0].size() < 1100);
  logger thrower([](void*, velo_log_level, const char*, const char*) { throw 1; }, nullptr);
  thrower.set_level(VELO_LOG_DEBUG);
  CHECK_NOTHROW(thrower.write(VELO_LOG_ERROR, "test", "line"));
}
