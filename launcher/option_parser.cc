#include "launcher/option_parser.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace lrun::launcher {
namespace {

using Values = std::map<std::string, OptionValue, std::less<>>;
template <class Value>
using OrError = std::variant<Value, UsageError>;

std::string dashed(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string variable_name(std::string_view prefix, std::string_view option) {
  std::string out(prefix);
  for (const char c : option) {
    out += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

std::vector<std::string_view> all_names(std::span<const OptionSpec> table) {
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : table) {
    names.push_back(spec.name);
    if (!spec.second_name.empty()) names.push_back(spec.second_name);
  }
  return names;
}

bool has_name(const OptionSpec& spec, std::string_view name) {
  return spec.name == name || (!spec.second_name.empty() && spec.second_name == name);
}

UsageError unknown_option(std::span<const OptionSpec> table, std::string_view name) {
  std::string sentence = "unknown option --" + std::string(name);
  const std::string nearest = nearest_name(name, all_names(table));
  sentence +=
      nearest.empty() ? "; `lrun --help` lists all options" : "; did you mean --" + nearest + "?";
  return {sentence};
}

// By full name, else by a prefix that only one option has.
OrError<const OptionSpec*> find_long(std::span<const OptionSpec> table, std::string_view name) {
  std::vector<const OptionSpec*> candidates;
  for (const OptionSpec& spec : table) {
    if (has_name(spec, name)) return &spec;
    if (spec.name.starts_with(name) || spec.second_name.starts_with(name))
      candidates.push_back(&spec);
  }
  if (candidates.size() == 1 && !name.empty()) return candidates.front();
  if (candidates.size() > 1 && !name.empty()) {
    std::string sentence = "option --" + std::string(name) + " is ambiguous: it may be";
    for (const OptionSpec* spec : candidates) sentence += " --" + std::string(spec->name);
    return UsageError{sentence + "; write it out"};
  }
  return unknown_option(table, name);
}

OrError<std::string> checked_text(const OptionSpec& spec, const std::string& text,
                                  const std::string& place) {
  if (spec.kind == OptionKind::Value) return text;
  const std::optional<bool> truth = parse_truth(text);
  if (!truth) return UsageError{place + "='" + text + "' is no truth value; write 1 or 0"};
  return std::string(*truth ? "1" : "0");
}

// Defaults first, then PET_, then LRUN_: each later one wins.
OrError<Values> from_variables(std::span<const OptionSpec> table, const Environment& environment) {
  Values values;
  for (const OptionSpec& spec : table) {
    std::string text(spec.kind == OptionKind::Switch ? "0" : spec.default_text);
    OptionValue value{std::move(text), Origin::Default, "default"};
    const auto take = [&](std::string_view prefix, Origin origin) -> std::optional<UsageError> {
      const std::string variable = variable_name(prefix, spec.name);
      const auto found = environment.find(variable);
      if (found == environment.end()) return std::nullopt;
      auto checked = checked_text(spec, found->second, variable);
      if (auto* error = std::get_if<UsageError>(&checked)) return *error;
      value = {std::get<std::string>(checked), origin, variable};
      return std::nullopt;
    };
    if (spec.reads_pet) {
      if (auto error = take("PET_", Origin::PetVariable)) return *error;
    }
    if (auto error = take("LRUN_", Origin::LrunVariable)) return *error;
    values.emplace(spec.name, std::move(value));
  }
  return values;
}

// Reads options from `words` into `values`; owns the position.
class WordReader {
 public:
  WordReader(std::span<const OptionSpec> table, std::span<const std::string> words, Values& values)
      : table_(table), words_(words), values_(values) {}

  // Reads up to the program. Returns the number of words read, or the first error.
  OrError<std::size_t> read() {
    while (position_ < words_.size()) {
      const std::string& word = words_[position_];
      if (word == "--") return position_ + 1;
      if (word.size() < 2 || word[0] != '-') return position_;
      const auto error = word[1] == '-' ? read_long(word.substr(2)) : read_short(word);
      if (error) return *error;
    }
    return position_;
  }

 private:
  std::optional<UsageError> read_long(const std::string& body) {
    const std::size_t equals = body.find('=');
    auto found = find_long(table_, dashed(body.substr(0, equals)));
    if (auto* error = std::get_if<UsageError>(&found)) return *error;
    const OptionSpec& spec = *std::get<const OptionSpec*>(found);
    ++position_;
    if (equals != std::string::npos) return set(spec, body.substr(equals + 1));
    return set_from_next_word(spec);
  }

  // `-r3`, `-r 3`, `-h`.
  std::optional<UsageError> read_short(const std::string& word) {
    const auto spec = std::find_if(table_.begin(), table_.end(), [&](const OptionSpec& candidate) {
      return candidate.letter != 0 && candidate.letter == word[1];
    });
    if (spec == table_.end()) {
      return UsageError{"unknown option " + word + "; `lrun --help` lists all options"};
    }
    ++position_;
    if (word.size() > 2) {
      const std::size_t skip = word[2] == '=' ? 3 : 2;
      return set(*spec, word.substr(skip));
    }
    return set_from_next_word(*spec);
  }

  std::optional<UsageError> set_from_next_word(const OptionSpec& spec) {
    if (spec.kind == OptionKind::Switch) return set(spec, "1");
    if (position_ == words_.size()) {
      return UsageError{"option --" + std::string(spec.name) + " needs a value: --" +
                        std::string(spec.name) + "=" + std::string(spec.metavar)};
    }
    return set(spec, words_[position_++]);
  }

  std::optional<UsageError> set(const OptionSpec& spec, const std::string& text) {
    const std::string place = "--" + std::string(spec.name);
    auto checked = checked_text(spec, text, place);
    if (auto* error = std::get_if<UsageError>(&checked)) return *error;
    values_[std::string(spec.name)] = {std::get<std::string>(checked), Origin::CommandLine, place};
    return std::nullopt;
  }

  std::span<const OptionSpec> table_;
  std::span<const std::string> words_;
  Values& values_;
  std::size_t position_ = 0;
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// Breaks `text` into lines of at most `width`, indented by `indent` after the first.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  const std::size_t width = columns > indent + 20 ? columns - indent : 20;
  std::string out;
  std::size_t line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (line > 0 && line + 1 + end > width) {
      out += '\n' + std::string(indent, ' ');
      line = 0;
    } else if (line > 0) {
      out += ' ';
      ++line;
    }
    out += text.substr(0, end);
    line += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::variant<CommandLine, UsageError> parse_command_line(std::span<const OptionSpec> table,
                                                         std::span<const std::string> words,
                                                         const Environment& environment) {
  auto values = from_variables(table, environment);
  if (auto* error = std::get_if<UsageError>(&values)) return *error;
  auto& known = std::get<Values>(values);
  auto read = WordReader(table, words, known).read();
  if (auto* error = std::get_if<UsageError>(&read)) return *error;
  const auto program = words.subspan(std::get<std::size_t>(read));
  return CommandLine{ParsedOptions(std::move(known)), {program.begin(), program.end()}};
}

std::string nearest_name(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::optional<bool> parse_truth(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view yes : {"1", "true", "t", "yes", "y", "on"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "f", "no", "n", "off"}) {
    if (lower == no) return false;
  }
  const bool is_integer =
      !lower.empty() && lower.find_first_not_of("0123456789") == std::string::npos;
  if (is_integer) return lower.find_first_not_of('0') != std::string::npos;
  return std::nullopt;
}

std::string help_for(std::span<const OptionSpec> table, std::size_t columns) {
  constexpr std::size_t kIndent = 8;
  std::string out;
  for (const OptionSpec& spec : table) {
    out += "  ";
    if (spec.letter != 0) out += std::string("-") + spec.letter + ", ";
    out += "--" + std::string(spec.name);
    if (spec.kind == OptionKind::Value) out += "=" + std::string(spec.metavar);
    if (!spec.second_name.empty()) out += ", --" + std::string(spec.second_name);
    if (!spec.default_text.empty()) out += "  (" + std::string(spec.default_text) + ")";
    out += '\n' + std::string(kIndent, ' ') + wrapped(spec.help, kIndent, columns) + '\n';
  }
  return out;
}

}  // namespace lrun::launcher
