// The facts of the refusals that a case of the sweep has met, compared with those committed in
// sweep_facts.txt: function, code, argument and numbers. Words may change, facts may not.
//
// A line of the file stands for all refusals of a case with the same facts. Functions that the file
// does not name are new and pass; a fact that is missing fails the case by its line. A dtype or a
// device has no numbers: one release prints "float32 on cpu:0", another prints its fields.
//
// VELO_SWEEP_RECORDS=<path> appends every record to a file, words included, to be compared between
// two builds. VELO_SWEEP_FACTS=<path> appends the facts, to be sorted into a new sweep_facts.txt.
#pragma once

#include <catch2/catch.hpp>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "velo/velo.h"

namespace velo::testing {

// The decimal numbers of a text, each after a space. Digits in names, as in "float32", and in
// addresses, as in "0x7f5a", do not count.
inline std::string numbers_of(const char* text) {
  std::string all;
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (const char* at = text; *at != 0;) {
    if (!in_word(*at)) {
      ++at;
      continue;
    }
    const char* begin = at;
    while (in_word(*at) || (*at == '.' && std::isdigit(static_cast<unsigned char>(at[1])))) ++at;
    const std::string word(begin, at);
    if (word.find_first_not_of("0123456789.") != std::string::npos) continue;
    if (word.size() > 12 && word.size() < 16) continue;  // an address, read as an integer
    all += begin > text && begin[-1] == '-' ? " -" : " ";
    all += word;
  }
  return all;
}

class sweep_facts {
 public:
  explicit sweep_facts(const char* name) : name_(name) { current() = this; }
  ~sweep_facts() { current() = nullptr; }
  sweep_facts(const sweep_facts&) = delete;
  sweep_facts& operator=(const sweep_facts&) = delete;

  // Takes the record of a call that has failed, if a case keeps facts.
  static void note() {
    if (current() == nullptr) return;
    velo_error_info info = VELO_ERROR_INFO_INIT;
    REQUIRE(velo_last_error(&info) == VELO_OK);
    current()->add(info);
  }

  void check(const char* file) const {
    if (const char* path = std::getenv("VELO_SWEEP_FACTS")) {
      std::ofstream to(path, std::ios::app);
      for (const std::string& fact : facts_) to << fact << '\n';
    }
    std::ifstream from(file);
    REQUIRE(from.is_open());
    int known = 0;
    for (std::string line; std::getline(from, line);) {
      if (line.rfind(std::string(name_) + ": ", 0) != 0) continue;
      ++known;
      INFO("no longer met: " << line);
      CHECK(facts_.count(line) == 1);
    }
    CHECK(known > 10);
  }

 private:
  static sweep_facts*& current() {
    static sweep_facts* kept = nullptr;
    return kept;
  }

  void add(const velo_error_info& info) {
    if (info.code == VELO_ERR_TIMEOUT) return;  // depends on how busy the machine is
    const char* code = "";
    velo_status_describe(info.code, &code, nullptr);
    std::string fact = std::string(name_) + ": " + info.function + " " + code;
    if (info.argument[0] != 0) fact += std::string(" ") + info.argument;
    // Names of types have numbers in them; the release and the number of operators are no facts of
    // a refusal.
    if (info.code != VELO_ERR_DTYPE && info.code != VELO_ERR_DEVICE && info.code != VELO_ERR_ABI &&
        std::strcmp(info.function, "velo_op_name") != 0) {
      const std::string numbers = numbers_of(info.expected) + ";" + numbers_of(info.got);
      if (numbers.size() > 1) fact += " |" + numbers;
    }
    facts_.insert(fact);
    if (const char* path = std::getenv("VELO_SWEEP_RECORDS")) {
      std::ofstream to(path, std::ios::app);
      to << name_ << ": " << info.function << ": " << code << ": " << info.argument << ": expected "
         << info.expected << ", got " << info.got << '\n';
    }
  }

  const char* const name_;
  std::set<std::string> facts_;
};

}  // namespace velo::testing
