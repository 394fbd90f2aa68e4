// A locale whose decimal point is a comma, for the length of a scope. It is made on the spot, with
// its table of characters, so that no machine has to have one installed, nor the sources of any.
#pragma once

#include <catch2/catch.hpp>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/core/environment.hpp"
#include "tests/temporary_folder.hpp"

namespace velo::testing {

class comma_locale {
 public:
  comma_locale() {
    const std::string source = folder_.put("source",
                                           "comment_char %\nescape_char /\nLC_NUMERIC\n"
                                           "decimal_point \",\"\nthousands_sep \".\"\n"
                                           "grouping 3;3\nEND LC_NUMERIC\n");
    std::ostringstream characters;
    characters << "<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\nCHARMAP\n";
    for (int c = 0; c < 128; ++c) {
      char line[64];
      std::snprintf(line, sizeof line, "<U%04X> /x%02x\n", c, c);
      characters << line;
    }
    characters << "END CHARMAP\n";
    const std::string make = "localedef -c -i " + source + " -f " +
                             folder_.put("characters", characters.str()) + " " +
                             folder_.at("comma");
    // It warns of what it lacks.
    (void)!std::system((make + " >" + folder_.at("log") + " 2>&1").c_str());
    const environment places("LOCPATH", folder_.path().c_str());
    REQUIRE(std::setlocale(LC_NUMERIC, "comma") != nullptr);
    REQUIRE(std::strtod("0.5", nullptr) == 0);
  }
  ~comma_locale() { std::setlocale(LC_NUMERIC, "C"); }
  comma_locale(const comma_locale&) = delete;

 private:
  const temporary_folder folder_;
};

}  // namespace velo::testing
