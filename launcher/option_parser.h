// Command lines as torchrun reads them: options from a table, then the program and its words.
//
// Owns the grammar (two spellings, `=`, prefixes, switches, variables) and where each value came
// from. Refuses to know what the options mean; launcher/run_options does. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/worker_env.h"

namespace lrun::launcher {

enum class OptionKind { Switch, Value };

// One row of the table. `--name`, `--na_me` and unambiguous prefixes of it mean the same.
struct OptionSpec {
  std::string_view name;  // dashed, without the leading dashes
  OptionKind kind = OptionKind::Value;
  char letter = 0;                // `-r`; 0: none
  std::string_view metavar;       // in the help: "MIN:MAX"
  std::string_view default_text;  // empty: none
  std::string_view help;          // one or two sentences
  std::string_view second_name;   // another name for the same option; empty: none
  bool reads_pet = false;         // PET_<NAME>, as torchrun has it, beside LRUN_<NAME>
};

// Where a value came from, in order of precedence.
enum class Origin { CommandLine, LrunVariable, PetVariable, Default };

struct OptionValue {
  std::string text;
  Origin origin = Origin::Default;
  std::string place;  // "--nnodes", "LRUN_NNODES", "PET_NNODES" or "default"
};

// Every option of the table has a value; switches are "0" or "1".
class ParsedOptions {
 public:
  explicit ParsedOptions(std::map<std::string, OptionValue, std::less<>> values)
      : values_(std::move(values)) {}
  const OptionValue& at(std::string_view name) const { return values_.find(name)->second; }
  const std::string& text(std::string_view name) const { return at(name).text; }
  bool is_on(std::string_view name) const { return at(name).text == "1"; }
  bool is_given(std::string_view name) const { return at(name).origin != Origin::Default; }

 private:
  std::map<std::string, OptionValue, std::less<>> values_;
};

// One line for the user: the value, what is accepted and the fix.
struct UsageError {
  std::string sentence;
};

struct CommandLine {
  ParsedOptions options;
  std::vector<std::string> program;  // the program and its words; may be empty
};

// Options end at the first word that is no option, or after `--`. The last of a repeated option
// wins. `help` and `version` need not be in the table's callers' way: they are ordinary switches.
std::variant<CommandLine, UsageError> parse_command_line(std::span<const OptionSpec> table,
                                                         std::span<const std::string> words,
                                                         const Environment& environment);

// The known name closest to `word` (edit distance at most a third of its length), or empty.
std::string nearest_name(std::string_view word, std::span<const std::string_view> known);

// "true", "yes", "on", "1", "t", "y" and their opposites, any case; other integers: non-zero is on.
std::optional<bool> parse_truth(std::string_view text);

// Help text for a terminal of `columns`.
std::string help_for(std::span<const OptionSpec> table, std::size_t columns);

}  // namespace lrun::launcher
