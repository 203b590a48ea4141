#include "trainer/train/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace lrun::train {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

template <class Number>
bool parse_number(const std::string& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_inside(const Key& key, double value) {
  return std::isfinite(value) && value >= key.min && value <= key.max;
}

bool assign_bool(bool* place, const std::string& text) {
  const bool yes = text == "true" || text == "True" || text == "yes" || text == "on";
  const bool no = text == "false" || text == "False" || text == "no" || text == "off";
  if (yes || no) *place = yes;
  return yes || no;
}

template <class Number>
bool assign_number(const Key& key, Number* place, const std::string& text) {
  Number number{};
  if (!parse_number(text, &number) || !is_inside(key, static_cast<double>(number))) return false;
  *place = number;
  return true;
}

bool assign_string(const Key& key, std::string* place, const std::string& text) {
  const bool is_known = std::ranges::find(key.one_of, text) != key.one_of.end();
  if (key.one_of.empty() ? text.empty() : !is_known) return false;
  *place = text;
  return true;
}

// The shortest text that reads back to the same double.
std::string spell_double(double value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string short_number(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

std::string with_bounds(const std::string& noun, const Key& key) {
  const bool has_min = key.min > std::numeric_limits<double>::lowest();
  const bool has_max = key.max < std::numeric_limits<double>::max();
  if (has_min && has_max)
    return noun + " from " + short_number(key.min) + " to " + short_number(key.max);
  if (has_min) return noun + " of at least " + short_number(key.min);
  return noun;
}

// Single-character edits between two words (Levenshtein 1966).
std::size_t distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

std::string last_word(const std::string& path) { return path.substr(path.rfind('.') + 1); }

constexpr double kCountMax = 1e12;
constexpr double kSizeMax = 1 << 20;

std::vector<Key> model_keys(Config::Model& model) {
  return {
      {.path = "model.name", .place = &model.name, .one_of = {"cnn", "mlp"}},
      {.path = "model.channels", .place = &model.channels, .min = 1, .max = 4096},
      {.path = "model.hidden", .place = &model.hidden, .min = 1, .max = kSizeMax},
      {.path = "model.dropout", .place = &model.dropout, .min = 0, .max = 0.99},
  };
}

std::vector<Key> data_keys(Config::Data& data) {
  return {
      {.path = "data.name", .place = &data.name, .one_of = {"fashion_mnist"}},
      {.path = "data.path", .place = &data.path},
      {.path = "data.leaf_size", .place = &data.leaf_size, .min = 1, .max = kSizeMax},
      {.path = "data.eval_batch_size", .place = &data.eval_batch_size, .min = 1, .max = kSizeMax},
      {.path = "data.validation_samples",
       .place = &data.validation_samples,
       .min = 0,
       .max = kCountMax},
      {.path = "data.prefetch_batches", .place = &data.prefetch_batches, .min = 0, .max = 1024},
  };
}

std::vector<Key> trainer_keys(Config::Trainer& trainer) {
  return {
      {.path = "trainer.default_root_dir", .place = &trainer.default_root_dir},
      {.path = "trainer.max_epochs", .place = &trainer.max_epochs, .min = 1, .max = 1e6},
      {.path = "trainer.max_steps", .place = &trainer.max_steps, .min = -1, .max = kCountMax},
      {.path = "trainer.limit_train_batches", .place = &trainer.limit_train_batches},
      {.path = "trainer.limit_val_batches", .place = &trainer.limit_val_batches},
      {.path = "trainer.limit_test_batches", .place = &trainer.limit_test_batches},
      {.path = "trainer.leaves", .place = &trainer.leaves, .min = 1, .max = 65536},
      {.path = "trainer.threads", .place = &trainer.threads, .min = 1, .max = 1024},
      {.path = "trainer.log_every_n_steps",
       .place = &trainer.log_every_n_steps,
       .min = 1,
       .max = kCountMax},
      {.path = "trainer.check_val_every_n_epoch",
       .place = &trainer.check_val_every_n_epoch,
       .min = 1,
       .max = kCountMax},
      {.path = "trainer.gradient_clip_val", .place = &trainer.gradient_clip_val, .min = 0},
      {.path = "trainer.enable_progress_bar", .place = &trainer.enable_progress_bar},
  };
}

std::vector<Key> optimizer_keys(Config::Optimizer& optimizer) {
  constexpr double kBetaMax = 0.999999999;
  return {
      {.path = "optimizer.name", .place = &optimizer.name, .one_of = {"adamw"}},
      {.path = "optimizer.lr", .place = &optimizer.lr, .min = 0, .max = 1e6},
      {.path = "optimizer.beta1", .place = &optimizer.beta1, .min = 0, .max = kBetaMax},
      {.path = "optimizer.beta2", .place = &optimizer.beta2, .min = 0, .max = kBetaMax},
      {.path = "optimizer.eps", .place = &optimizer.eps, .min = 0, .max = 1},
      {.path = "optimizer.weight_decay", .place = &optimizer.weight_decay, .min = 0, .max = 1e6},
  };
}

std::vector<Key> schedule_keys(Config::Schedule& schedule) {
  return {
      {.path = "schedule.name",
       .place = &schedule.name,
       .one_of = {"constant", "linear", "cosine"}},
      {.path = "schedule.warmup_steps",
       .place = &schedule.warmup_steps,
       .min = 0,
       .max = kCountMax},
      {.path = "schedule.floor", .place = &schedule.floor, .min = 0, .max = 1},
  };
}

std::vector<Key> checkpoint_keys(Config::Checkpoint& checkpoint) {
  return {
      {.path = "checkpoint.every_n_train_steps",
       .place = &checkpoint.every_n_train_steps,
       .min = 0,
       .max = kCountMax},
      {.path = "checkpoint.every_n_epochs",
       .place = &checkpoint.every_n_epochs,
       .min = 0,
       .max = kCountMax},
      {.path = "checkpoint.keep_last", .place = &checkpoint.keep_last, .min = 1, .max = kSizeMax},
  };
}

std::vector<Key> logging_keys(Config::Logging& logging) {
  return {
      {.path = "logging.csv", .place = &logging.csv},
      {.path = "logging.tensorboard", .place = &logging.tensorboard},
  };
}

}  // namespace

std::vector<Key> keys(Config& config) {
  std::vector<Key> all = {
      {.path = "seed", .place = &config.seed, .min = 0},
      {.path = "strategy", .place = &config.strategy, .one_of = {"ddp", "zero1"}},
  };
  for (const std::vector<Key>& section :
       {model_keys(config.model), data_keys(config.data), trainer_keys(config.trainer),
        optimizer_keys(config.optimizer), schedule_keys(config.schedule),
        checkpoint_keys(config.checkpoint), logging_keys(config.logging)}) {
    all.insert(all.end(), section.begin(), section.end());
  }
  return all;
}

std::string accepted(const Key& key) {
  return std::visit(
      Overloaded{
          [](bool*) -> std::string { return "true or false"; },
          [&](std::int64_t*) { return with_bounds("an integer", key); },
          [&](double*) { return with_bounds("a number", key); },
          [](loop::BatchLimit*) -> std::string {
            return "a number of batches (an integer of at least 0) or a fraction from 0.0 to 1.0";
          },
          [&](std::string*) -> std::string {
            if (key.one_of.empty()) return "a text that is not empty";
            std::string words = "one of";
            for (const std::string& word : key.one_of) {
              words += (word == key.one_of.front() ? " " : ", ") + word;
            }
            return key.one_of.size() == 1 ? key.one_of.front() : words;
          }},
      key.place);
}

bool assign(const Key& key, const std::string& text) {
  return std::visit(
      Overloaded{[&](bool* place) { return assign_bool(place, text); },
                 [&](std::int64_t* place) { return assign_number(key, place, text); },
                 [&](double* place) { return assign_number(key, place, text); },
                 [&](loop::BatchLimit* place) { return loop::parse_batch_limit(text, place); },
                 [&](std::string* place) { return assign_string(key, place, text); }},
      key.place);
}

std::string spell(const Key& key) {
  return std::visit(
      Overloaded{[](const bool* place) -> std::string { return *place ? "true" : "false"; },
                 [](const std::int64_t* place) { return std::to_string(*place); },
                 [](const double* place) { return spell_double(*place); },
                 [](const loop::BatchLimit* place) { return loop::to_string(*place); },
                 [](const std::string* place) { return *place; }},
      key.place);
}

std::map<std::string, std::string> flatten(const Config& config) {
  Config copy = config;
  std::map<std::string, std::string> values;
  for (const Key& key : keys(copy)) values[key.path] = spell(key);
  return values;
}

std::string nearest_key(const std::string& path) {
  Config config;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, path.size() / 3) + 1;
  for (const Key& key : keys(config)) {
    // A key written without its section is near too: max_epochs → trainer.max_epochs.
    const std::size_t away =
        std::min(distance(path, key.path), distance(path, last_word(key.path)) + 1);
    if (away < best_distance) {
      best_distance = away;
      best = key.path;
    }
  }
  return best;
}

}  // namespace lrun::train
