// SPDX-License-Identifier: Apache-2.0
#include "support/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace carillon::cli {
namespace {

using Parsed = nlohmann::ordered_json;

Json from_parsed(const Parsed& parsed) {
  switch (parsed.type()) {
    case Parsed::value_t::boolean: return parsed.get<bool>();
    case Parsed::value_t::number_integer: return parsed.get<std::int64_t>();
    case Parsed::value_t::number_unsigned: return parsed.get<std::uint64_t>();
    case Parsed::value_t::number_float: return parsed.get<double>();
    case Parsed::value_t::string: return parsed.get_ref<const std::string&>();
    case Parsed::value_t::array: {
      Json array = Json::array();
      for (const Parsed& each : parsed) array.push_back(from_parsed(each));
      return array;
    }
    case Parsed::value_t::object: {
      Json object = Json::object();
      for (const auto& [name, value] : parsed.items()) object[name] = from_parsed(value);
      return object;
    }
    default: return nullptr;  // there are no others in a text, but where it is none
  }
}

template <typename Value>
const Value& require(const Value* value, const char* what) {
  if (value == nullptr) throw std::logic_error(std::string("a JSON value is ") + what);
  return *value;
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(std::nullptr_t) noexcept : value_(nullptr) {}
Json::Json(double number) : value_(number) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(Array list) : value_(std::move(list)) {}
Json::Json(OfTruth truth) : value_(truth.value) {}
Json::Json(OfSigned number) : value_(number.value) {}
Json::Json(OfUnsigned number) : value_(number.value) {
  if (std::in_range<std::int64_t>(number.value)) value_ = static_cast<std::int64_t>(number.value);
}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Json> list) : value_(Array()) {
  const bool named = std::all_of(list.begin(), list.end(), [](const Json& item) {
    const Array* const pair = std::get_if<Array>(&item.value_);
    return pair != nullptr && pair->size() == 2 &&
           std::holds_alternative<std::string>(pair->front().value_);
  });
  if (!named) {
    Array& array = std::get<Array>(value_);
    array.reserve(list.size());
    for (const Json& item : list) array.emplace_back().value_.swap(item.value_);
    return;
  }
  Object& object = value_.emplace<Object>();
  object.reserve(list.size());
  for (const Json& item : list) {
    Array& pair = std::get<Array>(item.value_);
    std::string& name = std::get<std::string>(pair.front().value_);
    if (!contains(name)) object.push_back({std::move(name), std::move(pair.back())});
  }
}

Json Json::array() { return Json(Array()); }

Json Json::object() {
  Json object;
  object.value_ = Object();
  return object;
}

Json Json::parse(std::string_view text) { return from_parsed(Parsed::parse(text, nullptr, false)); }

// Writes a value; `indent` < 0: in one line.
class Json::Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& json) { std::visit(*this, json.value_); }
  [[nodiscard]] const std::string& text() const { return text_; }

  void operator()(std::nullptr_t) { text_ += "null"; }
  void operator()(bool truth) { text_ += truth ? "true" : "false"; }
  void operator()(std::int64_t number) { text_ += std::to_string(number); }
  void operator()(std::uint64_t number) { text_ += std::to_string(number); }
  void operator()(double number) { text_ += Parsed(number).dump(); }
  void operator()(const std::string& text) {  // a file's name need not be UTF-8
    text_ += Parsed(text).dump(-1, ' ', false, Parsed::error_handler_t::replace);
  }
  void operator()(const Array& array) {
    write_list('[', array, ']', [this](const Json& item) { write(item); });
  }
  void operator()(const Object& object) {
    write_list('{', object, '}', [this](const Member& member) {
      (*this)(member.name);
      text_ += indent_ < 0 ? ":" : ": ";
      write(member.value);
    });
  }

 private:
  template <typename List, typename Write>
  void write_list(char open, const List& list, char close, Write write_item) {
    text_ += open;
    ++level_;
    for (const auto& item : list) {
      if (&item != &list.front()) text_ += ',';
      new_line();
      write_item(item);
    }
    --level_;
    if (!list.empty()) new_line();
    text_ += close;
  }
  void new_line() {
    if (indent_ < 0) return;
    text_ += '\n';
    text_.append(level_ * static_cast<std::size_t>(indent_), ' ');
  }

  int indent_;
  std::size_t level_ = 0;
  std::string text_;
};

std::string Json::dump() const { return dump(-1); }

std::string Json::dump(int indent) const {
  Writer writer(indent);
  writer.write(*this);
  return writer.text();
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }

bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

bool Json::truth() const { return require(std::get_if<bool>(&value_), "neither true nor false"); }

double Json::number() const {
  if (const auto* const integer = std::get_if<std::int64_t>(&value_)) {
    return static_cast<double>(*integer);
  }
  return require(std::get_if<double>(&value_), "no number");
}

std::int64_t Json::integer() const {
  return require(std::get_if<std::int64_t>(&value_), "no integer");
}

const std::string& Json::text() const {
  return require(std::get_if<std::string>(&value_), "no text");
}

std::vector<double> Json::numbers() const {
  std::vector<double> all;
  for (const Json& each : *this) all.push_back(each.number());
  return all;
}

bool Json::empty() const { return require(std::get_if<Array>(&value_), "no array").empty(); }

Json::Array::const_iterator Json::begin() const {
  return require(std::get_if<Array>(&value_), "no array").begin();
}

Json::Array::const_iterator Json::end() const {
  return require(std::get_if<Array>(&value_), "no array").end();
}

const Json& Json::operator[](std::size_t at) const {
  return require(std::get_if<Array>(&value_), "no array").at(at);
}

const Json& Json::front() const { return (*this)[0]; }

Json& Json::back() { return std::get<Array>(value_).back(); }

void Json::push_back(Json value) { std::get<Array>(value_).push_back(std::move(value)); }

const Json::Object& Json::members() const {
  return require(std::get_if<Object>(&value_), "no object");
}

bool Json::contains(std::string_view name) const { return find(name) != nullptr; }

const Json* Json::find(std::string_view name) const {
  const Object& object = members();
  const auto at = std::find_if(object.begin(), object.end(),
                               [&](const Member& member) { return member.name == name; });
  return at == object.end() ? nullptr : &at->value;
}

const Json& Json::operator[](std::string_view name) const {
  return require(find(name), "an object without a name that it should have");
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  Object& object = std::get<Object>(value_);
  const auto at = std::find_if(object.begin(), object.end(),
                               [&](const Member& member) { return member.name == name; });
  if (at != object.end()) return at->value;
  return object.emplace_back(Member{std::string(name), {}}).value;
}

void Json::erase(std::string_view name) {
  std::erase_if(std::get<Object>(value_),
                [&](const Member& member) { return member.name == name; });
}

void Json::update(Json other) {
  for (Member& member : std::get<Object>(other.value_)) {
    (*this)[member.name] = std::move(member.value);
  }
}

bool operator==(const Json::Member& a, const Json::Member& b) {
  return a.name == b.name && a.value == b.value;
}

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

}  // namespace carillon::cli
