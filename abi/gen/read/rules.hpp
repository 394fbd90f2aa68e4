// Rules that every part of the spec shares: names, releases, C types. Checks throw through the node
// they are about.
#pragma once

#include <set>
#include <string>

#include "abi/gen/model.hpp"
#include "abi/gen/read/json.hpp"

namespace velo::gen {

// lower_case_name; no keyword of C or C++ and none of the names every args struct has.
void check_name(const node& at, const std::string& name);
// "1.0" -> 100
unsigned parse_release(const node& at);
// One of `words`, else a message that lists them.
void check_word(const node& at, const std::string& word, std::initializer_list<const char*> words);
// Not seen before; remembers it.
void check_new(const node& at, std::set<std::string>& seen, const std::string& name);
// A sentence for people: not empty, no line breaks, no comment ends, ASCII.
void check_doc(const node& at, const std::string& doc);

// An enumerator; `since` is that of its enumeration where it says nothing else.
enumerator read_enumerator(const node& at, unsigned since);

}  // namespace velo::gen
