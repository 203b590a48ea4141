// What a person sees of a run: one line that moves on a terminal, plain lines elsewhere.
//
// Rank 0 only; other ranks hold a silent one. Progress and messages go to stdout, warnings to
// stderr. Compute thread; time is passed in.
#pragma once

#include <string>

#include "proto/ids.h"
#include "trainer/loop/progress_line.h"

namespace lrun::loop {

class Display {
 public:
  struct Options {
    bool is_silent = false;    // not rank 0
    bool has_progress = true;  // false: messages only
  };
  explicit Display(Options options);
  ~Display();

  // Shows the state if it is time to: ten times a second on a terminal, else every ten seconds.
  void progress(Instant now, const ProgressState& state);
  // A line that stays.
  void message(const std::string& line);
  void warning(const std::string& line);

 private:
  void clear_line();

  Options options_;
  bool is_terminal_ = false;
  bool has_colour_ = false;
  bool line_is_open_ = false;
  Instant next_{};
};

}  // namespace lrun::loop
