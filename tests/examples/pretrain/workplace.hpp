// A directory with a text, where the program trains a tiny model; and what its log says.
#pragma once

#include <jansson.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/examples/decoder/temporary.hpp"
#include "tests/examples/pretrain/program.hpp"

// A run that must have ended with this code.
inline outcome ended(int code, outcome done) {
  INFO(done.text);
  REQUIRE(done.code == code);
  return done;
}

// Both checkpoints have the same weights and the same state of training; folders end in a slash.
inline void check_same_state(const std::string& one, const std::string& other) {
  for (const char* file : {"model.safetensors", "training_state.safetensors"}) {
    INFO(file);
    CHECK((get(one + file) == get(other + file)));
  }
}

// The number behind `words` in a text.
inline std::int64_t number_after(const std::string& text, const std::string& words) {
  INFO(text);
  const std::size_t at = text.find(words);
  REQUIRE(at != std::string::npos);
  return std::atoll(&text[at + words.size()]);
}

inline std::size_t count_of(const std::string& words, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
  return count;
}

// The words of a command line, none of which has spaces.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream from(line);
  return {std::istream_iterator<std::string>(from), std::istream_iterator<std::string>()};
}

struct workplace : temporary {
  workplace() { put(path + "/text", some_text(60000)); }

  outcome run(
      std::vector<std::string> more, const std::function<void()>& prepare = [] {}) const {
    return run_program(tiny(path, std::move(more)), prepare);
  }
  outcome run(std::vector<std::string> words, const std::vector<std::string>& more) const {
    words.insert(words.end(), more.begin(), more.end());
    return run(std::move(words));
  }

  // "step loss grad_norm" of every line of a log; the rest of a line is time.
  std::string losses(const std::string& log) const {
    std::istringstream lines(get(*this / log));
    std::string line, result;
    while (std::getline(lines, line)) {
      json_t* root = json_loads(line.c_str(), 0, nullptr);
      for (const char* key : {"step", "loss", "grad_norm", "val_bits_per_byte"}) {
        char buffer[64];
        if (const json_t* value = json_object_get(root, key)) {
          std::snprintf(buffer, sizeof buffer, "%.17g ", json_number_value(value));
          result += buffer;
        }
      }
      json_decref(root);
      result += '\n';
    }
    return result;
  }
};

inline std::vector<double> numbers(const std::string& text) {
  std::istringstream from(text);
  std::vector<double> all;
  for (double each; from >> each;) all.push_back(each);
  return all;
}

// Steps, losses, norms and validations within 1e-5 of each other.
inline void compare_logs(const std::string& one, const std::string& other) {
  const std::vector<double> expected = numbers(one), found = numbers(other);
  REQUIRE(expected.size() >= 3);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-5).margin(0));
}

// Mounts a disk of 64 KiB at a new folder; false: this process may not.
inline bool mount_small_disk(const std::string& path) {
  ::mkdir(path.c_str(), 0700);
  if (::mount("none", path.c_str(), "tmpfs", 0, "size=64k") == 0) return true;
  WARN("not tested: a full disk: no right to mount");
  return false;
}
