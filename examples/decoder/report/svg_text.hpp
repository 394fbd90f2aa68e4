// What the pictures of a run share: the text of an SVG as it grows, and round steps of an axis.
#pragma once

#include <string>

namespace decoder {

class svg_text {
 public:
  // Begins a picture of this size, in pixels, with a white ground.
  svg_text(double width, double height);

  // Appends elements; `format` is printf's, without line ends; at most 511 bytes.
  __attribute__((format(printf, 2, 3))) void put(const char* format, ...);
  // Words at a place; anchor: "start", "middle", "end"; more: further attributes.
  void label(double x, double y, const char* color, const char* anchor, const std::string& words,
             const char* more = "");
  void rectangle(double x, double y, double width, double height, const char* color,
                 const std::string& title = "");

  std::string end();  // the whole picture; nothing may follow

 private:
  std::string text_;
};

// A round step that cuts `range` into about `count` parts: 1, 2 or 5 times a power of ten.
double tick_step(double range, int count);

}  // namespace decoder
