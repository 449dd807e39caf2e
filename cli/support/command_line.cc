// SPDX-License-Identifier: Apache-2.0
#include "support/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

namespace carillon::cli {
namespace {

// nan is in every range of CLI11.
CLI::Validator is_number() {
  return {[](const std::string& text) {
            return text.find_first_of("nN") == std::string::npos ? "" : text + " is no number";
          },
          ""};
}

// CLI11 makes large numbers of negative ones, and the largest of those that are too large.
CLI::Validator is_unsigned() {
  return {[](const std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = error == std::errc() && end == text.data() + text.size();
            return whole ? "" : text + " is no number from 0 to " + std::to_string(UINT64_MAX);
          },
          ""};
}

constexpr const char* kFilled = "filled";

// What scripts give by --option "$VARIABLE", and the variable is empty or not set.
Option filled(CLI::Option* option) {
  const CLI::Validator has_value(
      [](const std::string& text) {
        return text.empty() ? "its value is empty; give one, or leave the option out" : "";
      },
      "", kFilled);
  return Option(option->nonpositional() ? option->check(has_value) : option);
}

}  // namespace

Option Option::with_default() const { return Option(option_->capture_default_str()); }

Option Option::may_be_empty() const {
  option_->get_validator(kFilled)->active(false);
  return *this;
}

Option Option::required() const { return Option(option_->required()); }

Option Option::in_range(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::in_range(unsigned least, unsigned most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::in_range(std::int64_t least, std::int64_t most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::in_range(double least, double most) const {
  return Option(option_->check(CLI::Range(least, most) & is_number()));
}

Option Option::one_of(std::initializer_list<const char*> values) const {
  return Option(option_->check(CLI::IsMember(values)));
}

Option Option::with_unit() const { return Option(option_->transform(CLI::AsSizeValue(false))); }

Option Option::comma_separated() const { return Option(option_->delimiter(',')); }

Option Option::values(int least, int most) const { return Option(option_->expected(least, most)); }

Option Option::value_each_time() const { return Option(option_->expected(1)->take_all()); }

Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }

Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }

Option Option::excludes(const char* other) const {
  return Option(option_->excludes(std::string(other)));
}

bool Option::given() const { return option_->count() > 0; }

Option Command::option(const std::string& names, std::string& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::int32_t& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::int64_t& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::uint16_t& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::uint32_t& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::uint64_t& value,
                       const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, value, help);
  const Option made = filled(option);
  option->check(is_unsigned());
  return made;
}

Option Command::option(const std::string& names, double& value, const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::vector<std::string>& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::vector<std::int32_t>& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::vector<std::uint32_t>& value,
                       const std::string& help) const {
  return filled(app_->add_option(names, value, help));
}

Option Command::integer(const std::string& names,
                        const std::function<void(const std::int32_t&)>& take,
                        const std::string& help) const {
  return filled(app_->add_option_function<std::int32_t>(names, take, help));
}

Option Command::number(const std::string& names, const std::function<void(const double&)>& take,
                       const std::string& help) const {
  return filled(app_->add_option_function<double>(names, take, help));
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}

Command Command::subcommand(const std::string& name, const std::string& summary) const {
  return Command(app_->add_subcommand(name, summary));
}

void Command::require_subcommand() const { app_->require_subcommand(1); }

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::hide() const { app_->group(""); }

void Command::when_parsed(std::function<void()> action) const { app_->callback(std::move(action)); }

const std::string& Command::name() const { return app_->get_name(); }

std::vector<Command> Command::subcommands() const {
  std::vector<Command> all;
  for (CLI::App* const app : app_->get_subcommands({})) all.emplace_back(app);
  return all;
}

bool Command::takes_value(const std::string& option) const {
  const CLI::Option* const found = std::as_const(*app_).get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_max() > 0;
}

bool Command::given() const { return app_->parsed(); }

bool Command::given(const std::string& option) const { return app_->count(option) > 0; }

CommandLine::CommandLine(const std::string& name, const std::string& summary,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

Command CommandLine::top() const { return Command(app_.get()); }

bool CommandLine::parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw WrongArguments(error.what());
    app_->exit(error);
    return false;
  }
  return true;
}

}  // namespace carillon::cli
