// A directory for one test, and the shortest ways to put files into it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "examples/decoder/failure.hpp"

struct temporary {
  temporary() {
    char pattern[] = "/tmp/pretrain-test-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~temporary() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }

  std::string path;
};

inline std::string put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline std::string get(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The sentence with which a call is refused.
template <class F>
std::string refusal_of(F&& call) {
  try {
    call();
  } catch (const decoder::failure& f) {
    return f.what();
  }
  return "accepted";
}

// Text that differs everywhere and compresses a little.
inline std::string some_text(std::size_t bytes, unsigned seed = 1) {
  std::string text;
  while (text.size() < bytes) {
    seed = seed * 1664525u + 1013904223u;
    text += "the word " + std::to_string(seed >> 16) + (seed & 0x40000 ? ", and\n" : " is ");
  }
  text.resize(bytes);
  return text;
}
