// The tables of other systems' rules in the pages of sched and comm: each command works, or is
// refused with the words of its line; each line that works names a test of its results, which there
// is.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/model_configs.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

struct rule {
  std::string line, command, result;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}
// The first text in `text` between two marks; "" where there is none.
std::string between(const std::string& text, char mark) {
  const auto first = text.find(mark), last = text.find(mark, first + 1);
  return last == std::string::npos ? "" : text.substr(first + 1, last - first - 1);
}

std::vector<rule> rules_of(const std::string& page) {
  std::istringstream from(contents_of(VELO_SOURCE_FOLDER + page));
  std::vector<rule> all;
  std::string line;
  while (std::getline(from, line) && line.rfind("| feature | their rule |", 0) != 0) continue;
  std::getline(from, line);  // the rule below the head
  while (std::getline(from, line) && line.rfind("| ", 0) == 0) {
    std::istringstream cells(line.substr(1));
    std::string feature, asked, command, result;
    for (std::string* cell : {&feature, &asked, &command, &result}) std::getline(cells, *cell, '|');
    all.push_back({line, between(command, '`'), trimmed(result)});
  }
  return all;
}

// The texts of the tests in tests/folder, by names like `folder.file`.
std::map<std::string, std::string> tests_of(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(VELO_SOURCE_FOLDER "tests/" + folder)) {
    const std::string name = entry.path().filename().string(), end = "_test.cpp";
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0)
      all[fs::path(folder).filename().string() + "." + name.substr(0, name.size() - end.size())] =
          contents_of(entry.path().string());
  }
  return all;
}

// The models that commands name, in a folder where the commands run.
class workplace {
 public:
  workplace() {
    const std::string open = llama;
    put("llama.json", open + "}");
    put("tied.json", open + ", \"tie_word_embeddings\": true}");
    put("qwen3.json", std::string(open).replace(open.find("llama"), 5, "qwen3") + "}");
    put("mixtral.json", mixtral);
    put("deepseek_v3.json", deepseek);
  }
  outcome run(std::string command) const {
    REQUIRE(command.rfind("velo ", 0) == 0);
    command.erase(0, 5);
    for (const std::string& name : names_)
      if (const auto found = command.find(" " + name); found != std::string::npos)
        command.replace(found + 1, name.size(), folder_.at(name));
    return run_velo(command);
  }

 private:
  void put(const std::string& name, const std::string& text) {
    folder_.put(name, text);
    names_.push_back(name);
  }
  velo::testing::temporary_folder folder_;
  std::vector<std::string> names_;
};

// Whether a file has a test case whose name begins like this.
bool has_case(const std::string& file, const std::string& name) {
  const std::string mark = "TEST_CASE(";
  for (auto at = file.find(mark); at != std::string::npos; at = file.find(mark, at + 1)) {
    const auto begin = file.find_first_not_of(" \n", at + mark.size());
    if (file.compare(begin, name.size() + 1, '"' + name) == 0) return true;
  }
  return false;
}

void check(const workplace& w, const rule& one, const std::map<std::string, std::string>& tests) {
  INFO(one.line);
  const bool works = one.result.rfind("works", 0) == 0;
  if (works) {
    const auto file = tests.find(between(one.result, '`'));
    const std::string name = between(one.result, '"');
    REQUIRE(file != tests.end());
    CHECK(name.size() > 10);
    CHECK(has_case(file->second, name));
  }
  if (one.command.empty()) {
    CHECK(works);  // a refusal has a command that shows it
    return;
  }
  const outcome done = w.run(one.command);
  INFO(done.out);
  CHECK(done.code == (works ? 0 : 1));
  if (works) return;
  const std::string words = between(one.result, '"');
  REQUIRE(!words.empty());
  CHECK_THAT(done.out, Contains(words));
}

}  // namespace

TEST_CASE("rules of other systems are kept or not as the pages of sched and comm say") {
  const workplace w;
  for (const std::string folder : {"sched", "comm"}) {
    const std::vector<rule> all = rules_of(folder + "/README.md");
    CHECK(all.size() > 12);
    std::map<std::string, std::string> tests = tests_of(folder);
    tests.merge(tests_of("examples/decoder"));
    for (const rule& one : all) check(w, one, tests);
  }
}
