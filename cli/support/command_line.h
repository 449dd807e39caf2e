// SPDX-License-Identifier: Apache-2.0
//
// The command line: commands, and the options that each of them declares. CLI11 does the work, in
// command_line.cc alone.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace carillon::cli {

/// An option or flag of a command; a handle, as Command is one. What is said of it can be said in
/// one expression.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// --help shows the value that it has now.
  Option with_default() const;
  Option required() const;
  /// An option's value may be empty, as if the option were not there: others' may not.
  Option may_be_empty() const;
  /// The value is from `least` to `most`, and --help says so.
  Option in_range(int least, int most) const;
  Option in_range(unsigned least, unsigned most) const;
  Option in_range(std::int64_t least, std::int64_t most) const;
  Option in_range(double least, double most) const;  // nan is in none
  Option one_of(std::initializer_list<const char*> values) const;
  /// A number may have a unit: 64K.
  Option with_unit() const;
  /// Of a list: 1,2,3 are three values.
  Option comma_separated() const;
  /// Of a list: from `least` to `most` values in a row.
  Option values(int least, int most) const;
  /// Of a list: one value after each mention.
  Option value_each_time() const;
  Option needs(Option other) const;
  Option excludes(Option other) const;
  Option excludes(const char* other) const;

  /// After parsing: whether it stands on the command line.
  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

/// carillon, one of its commands, or one of theirs.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  /// `names`: "-n,--ranks", or "COLLECTIVE" for what needs no name. Parsing sets `value`.
  Option option(const std::string& names, std::string& value, const std::string& help) const;
  Option option(const std::string& names, std::int32_t& value, const std::string& help) const;
  Option option(const std::string& names, std::int64_t& value, const std::string& help) const;
  Option option(const std::string& names, std::uint16_t& value, const std::string& help) const;
  Option option(const std::string& names, std::uint32_t& value, const std::string& help) const;
  Option option(const std::string& names, std::uint64_t& value, const std::string& help) const;
  Option option(const std::string& names, double& value, const std::string& help) const;
  Option option(const std::string& names, std::vector<std::string>& value,
                const std::string& help) const;
  Option option(const std::string& names, std::vector<std::int32_t>& value,
                const std::string& help) const;
  Option option(const std::string& names, std::vector<std::uint32_t>& value,
                const std::string& help) const;
  /// Parsing calls `take` with the value.
  Option integer(const std::string& names, const std::function<void(const std::int32_t&)>& take,
                 const std::string& help) const;
  Option number(const std::string& names, const std::function<void(const double&)>& take,
                const std::string& help) const;
  Option flag(const std::string& names, bool& value, const std::string& help) const;

  Command subcommand(const std::string& name, const std::string& summary) const;
  void require_subcommand() const;
  /// The end of its --help.
  void footer(const std::string& text) const;
  /// --help of the command that it belongs to does not show it.
  void hide() const;
  /// Called when all its options have their values.
  void when_parsed(std::function<void()> action) const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::vector<Command> subcommands() const;
  /// Whether there is an option of this name that a value follows.
  [[nodiscard]] bool takes_value(const std::string& option) const;
  /// After parsing: whether it, or this option of its, stands on the command line.
  [[nodiscard]] bool given() const;
  [[nodiscard]] bool given(const std::string& option) const;

 private:
  CLI::App* app_;
};

/// Says what is wrong with the arguments.
struct WrongArguments : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Owns the commands and their options.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The program itself.
  [[nodiscard]] Command top() const;
  /// Sets what the options are declared with. False: --help or --version stood there, and has been
  /// answered. Throws WrongArguments.
  [[nodiscard]] bool parse(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace carillon::cli
