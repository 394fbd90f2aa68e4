// Sets (or with nullptr removes) an environment variable for the length of a scope.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace velo::testing {

class environment {
 public:
  environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    assign(value);
  }
  ~environment() { assign(before_ ? before_->c_str() : nullptr); }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  void assign(const char* value) {
    if (value != nullptr) {
      setenv(name_.c_str(), value, 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> before_;
};

// No variable that velo reads is set.
struct bare_environment {
  environment threads{"VELO_THREADS", nullptr}, isa{"VELO_ISA", nullptr},
      level{"VELO_LEVEL", nullptr}, closures{"VELO_CLOSURES", nullptr}, log{"VELO_LOG", nullptr};
};

}  // namespace velo::testing
