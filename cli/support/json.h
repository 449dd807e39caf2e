// SPDX-License-Identifier: Apache-2.0
//
// A JSON value: what --json prints, and what other programs of carillon say. nlohmann/json reads
// its text and writes its strings and numbers, in json.cc alone.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace carillon::cli {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  ///< in the order in which they came

  /// null
  Json() noexcept;
  Json(std::nullptr_t) noexcept;
  Json(std::same_as<bool> auto truth) : Json(OfTruth{truth}) {}
  Json(std::signed_integral auto number) : Json(OfSigned{number}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T number) : Json(OfUnsigned{number}) {}
  Json(double number);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  template <typename T>
  Json(const std::vector<T>& list) : Json(Array(list.begin(), list.end())) {}
  Json(Array list);
  /// {{"name", value}, {"name", value}}: an object; any other list: an array.
  Json(std::initializer_list<Json> list);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();
  /// null if the text is not JSON.
  static Json parse(std::string_view text);

  /// Its text: in one line, or in many, each level `indent` further to the right.
  [[nodiscard]] std::string dump() const;
  [[nodiscard]] std::string dump(int indent) const;

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_object() const;
  /// What it is; a defect if it is something else.
  [[nodiscard]] bool truth() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::vector<double> numbers() const;

  /// Of an array.
  [[nodiscard]] bool empty() const;
  [[nodiscard]] Array::const_iterator begin() const;
  [[nodiscard]] Array::const_iterator end() const;
  const Json& operator[](std::size_t at) const;
  [[nodiscard]] const Json& front() const;
  [[nodiscard]] Json& back();
  void push_back(Json value);

  /// Of an object. A name that is not there is added to one that can be changed, which ends
  /// references to the values of other names, and is a defect of one that cannot.
  [[nodiscard]] const Object& members() const;
  [[nodiscard]] bool contains(std::string_view name) const;
  /// The value of that name, or nothing.
  [[nodiscard]] const Json* find(std::string_view name) const;
  const Json& operator[](std::string_view name) const;
  Json& operator[](std::string_view name);
  void erase(std::string_view name);
  /// Adds the other one's members; where names are the same, takes its values.
  void update(Json other);

  friend bool operator==(const Json& a, const Json& b);

 private:
  struct OfTruth {
    bool value;
  };
  struct OfSigned {
    std::int64_t value;
  };
  struct OfUnsigned {
    std::uint64_t value;
  };
  class Writer;
  explicit Json(OfTruth truth);
  explicit Json(OfSigned number);
  explicit Json(OfUnsigned number);  // as the same signed one, if there is one

  // Mutable: a list in braces is constant, and hands on its values all the same.
  mutable std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                       Array, Object>
      value_;
};

struct Json::Member {
  std::string name;
  Json value;
};

}  // namespace carillon::cli
