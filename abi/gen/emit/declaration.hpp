// Reads the C types of functions as the spec writes them, "void (*)(void* user, int64_t tasks)":
// what such a function returns and takes. Its parameters may be such functions again.
#pragma once

#include <string>
#include <vector>

namespace velo::gen {

struct declared {
  std::string name, type;  // "task", "void (*)(void* task_user, int64_t index)"
};

struct signature {
  std::string result;
  std::vector<declared> parameters;
};

bool is_function(const std::string& type);
signature read_signature(const std::string& type);  // of one that is_function

}  // namespace velo::gen
