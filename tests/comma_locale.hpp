// A locale whose decimal point is a comma, for the length of a scope. It is made on the spot, with
// its table of characters, so that no machine has to have one installed, nor the sources of any.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/core/environment.hpp"

namespace velo::testing {

class comma_locale {
 public:
  comma_locale() {
    REQUIRE(mkdtemp(&folder_[0]) != nullptr);
    std::ofstream(folder_ + "/source") << "comment_char %\nescape_char /\nLC_NUMERIC\n"
                                          "decimal_point \",\"\nthousands_sep \".\"\n"
                                          "grouping 3;3\nEND LC_NUMERIC\n";
    std::ofstream characters(folder_ + "/characters");
    characters << "<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\nCHARMAP\n";
    for (int c = 0; c < 128; ++c) {
      char line[64];
      std::snprintf(line, sizeof line, "<U%04X> /x%02x\n", c, c);
      characters << line;
    }
    characters << "END CHARMAP\n";
    characters.close();
    const std::string make = "localedef -c -i " + folder_ + "/source -f " + folder_ +
                             "/characters " + folder_ + "/comma";
    (void)!std::system((make + " >" + folder_ + "/log 2>&1").c_str());  // warns of what it lacks
    const environment places("LOCPATH", folder_.c_str());
    REQUIRE(std::setlocale(LC_NUMERIC, "comma") != nullptr);
    REQUIRE(std::strtod("0.5", nullptr) == 0);
  }
  ~comma_locale() {
    std::setlocale(LC_NUMERIC, "C");
    (void)!std::system(("rm -r " + folder_).c_str());
  }
  comma_locale(const comma_locale&) = delete;

 private:
  std::string folder_ = "/tmp/velo_comma_XXXXXX";
};

}  // namespace velo::testing
