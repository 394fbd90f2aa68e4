// One line for one failure: of the ranks that a program has started as its processes, the first
// that knows why the run ends prints the reason, and the others print nothing.
//
// A pipe holds one byte; the process that reads it may print. A rank that only missed another one
// waits first, so that the rank that failed, or the starting program for a rank that was killed,
// comes before it. Not hot.
#pragma once

#include "examples/decoder/files/file.hpp"

namespace decoder {

// The pipe, in the program that starts ranks.
class first_line {
 public:
  first_line();                // throws failure
  void pass_on() const;        // in a child that becomes a rank
  void take() const noexcept;  // this program prints the line

 private:
  descriptor reads_, writes_;
};

// Whether this rank prints why it ends. is_cause: it did more than miss another rank. Without such
// a pipe, in a rank that another launcher has started: `otherwise`.
bool takes_first_line(bool is_cause, bool otherwise) noexcept;

}  // namespace decoder
