// Words are escaped where they enter the text.
#include "examples/decoder/report/svg_text.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace decoder {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

svg_text::svg_text(double width, double height) {
  put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
      "font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" font-size=\"13\">",
      width, height, width, height);
  put("<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>", width, height);
}

void svg_text::put(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text_ += line;
  text_ += '\n';
}

void svg_text::label(double x, double y, const char* color, const char* anchor,
                     const std::string& words, const char* more) {
  put("<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" text-anchor=\"%s\" %s>", x, y, color, anchor, more);
  text_.pop_back();  // the line's end
  text_ += escaped(words) + "</text>\n";
}

void svg_text::rectangle(double x, double y, double width, double height, const char* color,
                         const std::string& title) {
  put("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s>", x, y, width,
      height, color, title.empty() ? "/" : "");
  if (title.empty()) return;
  text_.pop_back();  // the line's end
  text_ += "<title>" + escaped(title) + "</title></rect>\n";
}

std::string svg_text::end() {
  text_ += "</svg>\n";
  return std::move(text_);
}

double tick_step(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (rough <= nice * power) return nice * power;
  }
  return 10 * power;
}

}  // namespace decoder
