// The line and column of each value of a JSON text, for refusals of settings.
//
// jansson reports places for malformed text only; this walks a text that jansson has accepted and
// notes the beginning of every value. Linear in the text.
#pragma once

#include <map>
#include <string>

namespace decoder {

struct place {
  int line = 1, column = 1;  // from 1, in bytes
};

// Places by dotted path: "model.hidden". Elements of arrays carry their index: "data.paths[0]". The
// whole text is "".
std::map<std::string, place> json_places(const std::string& text);

}  // namespace decoder
