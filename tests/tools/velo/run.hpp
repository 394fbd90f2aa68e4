// Shared by the tests of the velo command: the command run as a program, and its JSON read.
#pragma once

#include <jansson.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>

struct outcome {
  int code;
  std::string out;
};

// `velo <words> 2><errors>`: standard error goes to the file `errors`, or with "&1" into `out`.
inline outcome run_velo(const std::string& words, const std::string& errors) {
  const std::string line = std::string(VELO_PROGRAM) + " " + words + " 2>" + errors;
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  outcome o{0, ""};
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) o.out.append(buffer, n);
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  o.code = WEXITSTATUS(status);
  return o;
}

using json = std::unique_ptr<json_t, void (*)(json_t*)>;
inline json parsed(const std::string& text) {
  INFO(text);
  json_error_t error;
  json all(json_loads(text.c_str(), 0, &error), [](json_t* node) { json_decref(node); });
  REQUIRE(all != nullptr);
  return all;
}
