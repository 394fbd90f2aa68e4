// Reads settings from JSON and from flags, and refuses mistakes with their place.
#include "examples/decoder/configuration/configuration.hpp"

#include <jansson.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "examples/decoder/configuration/json_places.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "tools/velo/closest_name.hpp"

namespace decoder {
namespace {

using json_owner = std::unique_ptr<json_t, void (*)(json_t*)>;

json_owner own(json_t* json) {
  return {json, json_decref};
}

const char* kind(const json_t* json) {
  switch (json_typeof(json)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "an array";
    case JSON_STRING:
      return "a string";
    case JSON_INTEGER:
      return "an integer";
    case JSON_REAL:
      return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
      return "a boolean";
    default:
      return "null";
  }
}

std::string shown(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.15g", number);
  return buffer;
}

// A flag's text as the JSON that a file would hold in its place. Text that is no number stays a
// string, which is then refused where a number belongs.
json_owner flag_json(const std::string& text, bool text_wanted) {
  if (!text_wanted) {
    json_t* scalar = json_loadb(text.data(), text.size(), JSON_DECODE_ANY, nullptr);
    if (scalar) return own(scalar);
  }
  require_json_memory();
  json_owner string = own(json_stringn_nocheck(text.data(), text.size()));
  require_json_memory();
  return string;
}

std::string underscored(std::string flag) {
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

constexpr std::size_t most_shown = 40;

bool is_plain(char c) {
  return c >= 32 && c < 127;
}

// The value that was found: a short plain text is quoted, anything else named by its kind.
std::string described(const json_t* got) {
  const std::string text = json_is_string(got) ? json_string_value(got) : "";
  const bool plain = std::all_of(text.begin(), text.end(), is_plain);
  return text.empty() || text.size() > most_shown || !plain ? kind(got) : '"' + text + '"';
}

// The beginning of a name that a file has, with "?" for each byte that is no plain text.
std::string shown(const std::string& name) {
  std::string beginning = name.substr(0, most_shown);
  for (char& c : beginning)
    if (!is_plain(c)) c = '?';
  return name.size() > most_shown ? beginning + ".." : beginning;
}

template <class Value>
[[noreturn]] void expected(const std::string& origin, const std::string& name, const char* what,
                           Value* got) {
  fail("%s: %s must be %s, not %s", origin.c_str(), name.c_str(), what, described(got).c_str());
}

}  // namespace

configuration::option* configuration::find(const std::string& name) {
  auto found = std::find_if(options_.begin(), options_.end(),
                            [&](const option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

std::vector<std::string> configuration::names(const std::string& section) const {
  std::vector<std::string> all;
  for (const option& each : options_)
    if (section.empty() || each.section == section) all.push_back(each.name);
  return all;
}

// The end of the sentence about a key that its section does not have.
std::string configuration::place_of(const std::string& key) const {
  for (const option& each : options_)
    if (each.name == key) return "; it belongs to \"" + each.section + "\"";
  return command::did_you_mean(key, names());
}

void configuration::require_flag(const std::string& flag,
                                 const std::vector<std::string>& others) const {
  std::vector<std::string> known = names();
  known.insert(known.end(), others.begin(), others.end());
  if (std::find(known.begin(), known.end(), underscored(flag)) != known.end()) return;
  std::string meant = command::did_you_mean(underscored(flag), known, "--");
  if (meant.empty()) meant = "; --help lists them";
  const std::vector<std::string> inside = names(flag);
  if (!flag.empty() && !inside.empty()) {
    meant = "; the settings of " + flag + " are";
    for (const std::string& name : inside) meant += " --" + name;
  }
  fail("--%s: no such flag%s", flag.c_str(), meant.c_str());
}

const configuration::option& configuration::at(const char* name) const {
  return *const_cast<configuration*>(this)->find(name);
}

void configuration::read_file(const std::string& path) {
  read_text(read_whole_file(path), path);
}

void configuration::read_text(const std::string& text, const std::string& name,
                              const char* member) {
  if (text.rfind("\xef\xbb\xbf", 0) == 0)
    fail("%s: expected JSON, got a byte order mark before it", name.c_str());
  json_error_t error;
  const json_owner root = own(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
  require_json_memory();
  if (!root) fail("%s:%d:%d: %s", name.c_str(), error.line, error.column, error.text);
  const auto places = json_places(text);
  const auto origin = [&](const std::string& path) {
    const auto found = places.find(member ? member + ("." + path) : path);
    const place p = found == places.end() ? place{} : found->second;
    return name + ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
  };
  json_t* settings = member ? json_object_get(root.get(), member) : root.get();
  if (!json_is_object(settings)) {
    const std::string where = settings && !member ? origin("") : name;
    fail("%s: %s must be an object, not %s", where.c_str(), member ? member : "the configuration",
         settings ? kind(settings) : "missing");
  }

  const char* section;
  json_t* members;
  json_object_foreach(settings, section, members) {
    if (names(section).empty() || !*section) {
      std::vector<std::string> sections;
      for (const option& each : options_) sections.push_back(each.section);
      fail("%s: no section is called \"%s\"%s", origin(section).c_str(), shown(section).c_str(),
           command::did_you_mean(section, sections).c_str());
    }
    if (!json_is_object(members)) expected(origin(section), section, "an object", members);
    const char* key;
    json_t* value;
    json_object_foreach(members, key, value) {
      const std::string path = std::string(section) + "." + key;
      option* which = find(key);
      if (!which || which->section != section) {
        fail("%s: section \"%s\" has no setting \"%s\"%s", origin(path).c_str(), section,
             shown(key).c_str(), place_of(key).c_str());
      }
      take(*which, value, origin(path));
    }
  }
}

void configuration::set(const std::string& flag, const std::string& text) {
  require_flag(flag);
  option* which = find(underscored(flag));
  const std::string origin = "--" + which->name;
  if (auto list = std::get_if<std::vector<std::string>*>(&which->value)) {
    // The first flag replaces what a file or the default says, further ones add.
    if (which->origin != origin) (*list)->clear();
    (*list)->push_back(text);
    which->origin = origin;
    return;
  }
  take(*which, flag_json(text, std::holds_alternative<std::string*>(which->value)).get(), origin);
}

void configuration::adopt(const configuration& other, const std::string& section) {
  for (size_t i = 0; i < options_.size(); ++i) {
    option& mine = options_[i];
    if (mine.section != section) continue;
    mine.origin = other.options_[i].origin;
    std::visit([&](auto* value) { *value = *std::get<decltype(value)>(other.options_[i].value); },
               mine.value);
  }
}

void configuration::reset(const char* name) {
  const configuration untouched;
  option& mine = *find(name);
  const option& initial = untouched.at(name);
  std::visit([&](auto* value) { *value = *std::get<decltype(value)>(initial.value); }, mine.value);
  mine.origin = initial.origin;
}

void configuration::bound(const option& which, double number, const std::string& origin) {
  if (number >= which.low && number <= which.high) return;
  fail("%s: %s must be from %s to %s, not %s", origin.c_str(), which.name.c_str(),
       shown(which.low).c_str(), shown(which.high).c_str(), shown(number).c_str());
}

void configuration::take(option& which, json_t* json, const std::string& origin) {
  if (auto number = std::get_if<std::int64_t*>(&which.value)) {
    if (!json_is_integer(json)) expected(origin, which.name, "an integer", json);
    bound(which, static_cast<double>(json_integer_value(json)), origin);
    **number = json_integer_value(json);
  } else if (auto real = std::get_if<double*>(&which.value)) {
    if (!json_is_number(json)) expected(origin, which.name, "a number", json);
    bound(which, json_number_value(json), origin);
    **real = json_number_value(json);
  } else if (auto flag = std::get_if<bool*>(&which.value)) {
    if (!json_is_boolean(json)) expected(origin, which.name, "true or false", json);
    **flag = json_is_true(json);
  } else if (auto string = std::get_if<std::string*>(&which.value)) {
    if (!json_is_string(json)) expected(origin, which.name, "a string", json);
    **string = json_string_value(json);
  } else {
    auto& list = *std::get<std::vector<std::string>*>(which.value);
    if (!json_is_array(json)) expected(origin, which.name, "an array of strings", json);
    list.clear();
    size_t index;
    json_t* element;
    json_array_foreach(json, index, element) {
      if (!json_is_string(element)) expected(origin, which.name, "an array of strings", element);
      list.emplace_back(json_string_value(element));
    }
  }
  which.origin = origin;
}

void configuration::refuse(const char* name, const char* why, const char* other) const {
  const option& first = at(name);
  std::string sentence = first.name + " = " + text(first) + " " + why, place = first.origin;
  if (other) {
    const option& second = at(other);
    sentence += " " + second.name + " = " + text(second);
    if (place == "default") {
      place = second.origin;
    } else if (second.origin != "default") {
      sentence += " (" + second.origin + ")";
    }
  }
  fail("%s: %s", place.c_str(), sentence.c_str());
}

bool configuration::has_own(const configuration& other, const char* name) const {
  return at(name).origin != other.at(name).origin;
}

void configuration::require_same(const configuration& other, const std::string& section,
                                 const std::string& whose) const {
  for (size_t i = 0; i < options_.size(); ++i) {
    const option &mine = options_[i], &theirs = other.options_[i];
    if (mine.section != section || text(mine) == text(theirs)) continue;
    if (mine.name == "paths")
      continue;  // paths may differ as long as the text does not: it has a checksum
    fail("%s: %s = %s, but %s has %s", mine.origin.c_str(), mine.name.c_str(), text(mine).c_str(),
         whose.c_str(), text(theirs).c_str());
  }
}

}  // namespace decoder
