// Shared by the tests of the velo command: the command run as a program, and its JSON read.
#pragma once

#include <jansson.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

struct outcome {
  int code;
  std::string out;
};

// `velo <words> 2><errors>`: standard error goes to the file `errors`, or with "&1" into `out`.
inline outcome run_velo(const std::string& words, const std::string& errors = "&1") {
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

// Checks that the command ends with 1, and that what it prints has the reason.
inline void check_refused(const std::string& words, const std::string& reason) {
  const outcome o = run_velo(words);
  INFO(words << "\n" << o.out);
  CHECK(o.code == 1);
  CHECK(o.out.find(reason) != std::string::npos);
}

// Members of a JSON object.
inline std::string text_of(const json_t* object, const char* key) {
  const char* text = json_string_value(json_object_get(object, key));
  return text != nullptr ? text : "";
}
inline json_int_t integer_of(const json_t* object, const char* key) {
  return json_integer_value(json_object_get(object, key));
}
inline double number_of(const json_t* object, const char* key) {
  return json_number_value(json_object_get(object, key));
}
inline std::string text_of(const json& object, const char* key) {
  return text_of(object.get(), key);
}
inline json_int_t integer_of(const json& object, const char* key) {
  return integer_of(object.get(), key);
}
inline double number_of(const json& object, const char* key) {
  return number_of(object.get(), key);
}

inline std::string contents_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}
