// Settings as text: --help, and the JSON that a checkpoint keeps.
#include <jansson.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/files/json_memory.hpp"

namespace decoder {
namespace {

std::string dumped(json_t* json, size_t flags) {
  char* raw = json_dumps(json, flags | JSON_ENCODE_ANY);
  std::string text = raw ? raw : "null";
  std::free(raw);
  require_json_memory();
  return text;
}

struct to_json {
  json_t* operator()(const std::int64_t* v) const { return json_integer(*v); }
  json_t* operator()(const double* v) const { return json_real(*v); }
  json_t* operator()(const bool* v) const { return json_boolean(*v); }
  json_t* operator()(const std::string* v) const {
    return json_stringn_nocheck(v->data(), v->size());
  }
  json_t* operator()(const std::vector<std::string>* v) const {
    json_t* list = json_array();
    for (const std::string& each : *v) json_array_append_new(list, (*this)(&each));
    return list;
  }
};

// Two columns, of which the second wraps under itself at 80 characters.
std::string row(const std::string& name, const std::string& words) {
  constexpr std::size_t indent = 22, width = 80;
  std::string all = "  --" + name, word;
  all.resize(std::max(all.size() + 1, indent), ' ');
  std::size_t column = all.size();
  std::istringstream each(words);
  while (each >> word) {
    const bool first = column == indent;
    if (!first && column + 1 + word.size() > width) {
      all += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      all += ' ';
      ++column;
    }
    all += word;
    column += word.size();
  }
  return all + "\n";
}

}  // namespace

std::string configuration::text(const option& which) {
  if (auto real = std::get_if<double*>(&which.value)) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.15g", **real);
    return buffer;
  }
  json_t* json = std::visit(to_json{}, which.value);
  std::string result = dumped(json, 0);
  json_decref(json);
  return result;
}

std::string configuration::common_text() const {
  const std::set<std::string> sections = {"model", "data", "optimizer", "schedule", "parallel"};
  const std::set<std::string> of_run = {"seed",           "zero",           "save_slice",
                                        "save_every",     "validate_every", "stop_after",
                                        "routing_record", "routing_replay"};
  std::string all;
  for (const option& each : options_)
    if (each.name != "paths" && each.name != "timeline" &&
        (sections.count(each.section) > 0 || of_run.count(each.name) > 0))
      all += each.name + " = " + text(each) + "\n";
  return all;
}

std::string configuration::json(std::optional<std::int64_t> started) const {
  json_t* root = json_object();
  for (const option& each : options_) {
    json_t* section = json_object_get(root, each.section.c_str());
    if (!section) {
      section = json_object();
      json_object_set_new(root, each.section.c_str(), section);
    }
    json_object_set_new(section, each.name.c_str(), std::visit(to_json{}, each.value));
  }
  if (started) json_object_set_new(json_object_get(root, "run"), "ranks", json_integer(*started));
  std::string result = dumped(root, JSON_INDENT(2)) + "\n";
  json_decref(root);
  return result;
}

std::string configuration::help() const {
  // The defaults without the quotes that JSON puts around text.
  const auto plain = [](const option& each) -> std::string {
    if (auto string = std::get_if<std::string*>(&each.value)) return **string;
    if (auto list = std::get_if<std::vector<std::string>*>(&each.value)) return (*list)->front();
    return text(each);
  };
  std::string result, section;
  for (const option& each : options_) {
    if (each.section != section) {
      section = each.section;
      result += "\n" + section + "\n";
    }
    const std::string shown = plain(each);
    result += row(each.name, each.help + " [" + (shown.empty() ? "none" : shown) + "]");
  }
  return result;
}

}  // namespace decoder
