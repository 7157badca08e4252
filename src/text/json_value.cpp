// SPDX-License-Identifier: Apache-2.0
#include "text/json_value.h"

#include <cstddef>

#include "text/json_reader.h"

namespace feedline::text {
namespace {

constexpr std::size_t kMaxValues = 1'000'000;

class Parser {
 public:
  explicit Parser(std::string_view text) : json_(text) {}

  bool document(JsonValue& value) { return this->value(value) && json_.finish(); }

 private:
  using Kind = JsonReader::Kind;

  bool value(JsonValue& out) {
    if (++values_ > kMaxValues) return false;
    switch (json_.peek()) {
      case Kind::kObject:
        out.kind = JsonValue::Kind::kObject;
        return json_.object(
            [&](const std::string& name) { return value(out.members.emplace_back(name, JsonValue{}).second); });
      case Kind::kArray:
        out.kind = JsonValue::Kind::kArray;
        return json_.array([&] { return value(out.items.emplace_back()); });
      case Kind::kString:
        out.kind = JsonValue::Kind::kText;
        return json_.take_string(out.text);
      case Kind::kNumber:
        return scalar(out, JsonValue::Kind::kNumber);
      case Kind::kBool:
        return scalar(out, JsonValue::Kind::kBool);
      case Kind::kNull:
        return json_.null();
      case Kind::kNone:
        break;
    }
    return false;
  }

  bool scalar(JsonValue& out, JsonValue::Kind kind) {
    const auto written = json_.raw();
    out.kind = kind;
    out.text = written.value_or("");
    return written.has_value();
  }

  JsonReader json_;
  std::size_t values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member)
    if (member->first == name) return &member->second;
  return nullptr;
}

std::optional<JsonValue> parse_json(std::string_view text) {
  JsonValue value;
  if (!Parser(text).document(value)) return {};
  return value;
}

}  // namespace feedline::text
