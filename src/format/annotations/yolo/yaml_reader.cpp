// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yaml_reader.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>

namespace feedline::format {
namespace {

std::unexpected<Error> wrong(const std::string& what, std::size_t line) {
  return data_error("not the YAML file of a dataset: " + what + " in line " + std::to_string(line + 1), "format");
}

// Owns memory allocated by libyaml.
class Document {
 public:
  Document() { is_ready_ = yaml_parser_initialize(&parser_) == 1; }
  ~Document() {
    if (is_loaded_) yaml_document_delete(&document_);
    if (is_ready_) yaml_parser_delete(&parser_);
  }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  Result<void> load(std::string_view text) {
    if (!is_ready_) return data_error("not enough memory to read the YAML file", "format");
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    is_loaded_ = yaml_parser_load(&parser_, &document_) == 1;
    if (is_loaded_) return {};
    const bool has_problem = parser_.problem != nullptr;
    return wrong(has_problem ? parser_.problem : "the YAML file cannot be read", parser_.problem_mark.line);
  }
  const yaml_node_t* root() { return yaml_document_get_root_node(&document_); }
  const yaml_node_t* node(int number) { return yaml_document_get_node(&document_, number); }

 private:
  yaml_parser_t parser_;
  yaml_document_t document_;
  bool is_ready_ = false, is_loaded_ = false;
};

// Converts a YAML 1.1 integer to the form that Python prints: "8" for "010", "255" for "0xff", "1000" for "1_000".
std::optional<std::string> integer_of(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  std::string_view rest = digits;
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  int base = 10;
  if (rest.starts_with("0x")) {
    base = 16;
    rest.remove_prefix(2);
  } else if (rest.starts_with("0b")) {
    base = 2;
    rest.remove_prefix(2);
  } else if (rest.size() > 1 && rest.front() == '0') {
    base = 8;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
  if (rest.empty() || error != std::errc() || end != rest.data() + rest.size()) return {};
  return (is_negative && value > 0 ? "-" : "") + std::to_string(value);
}

// nullopt: null.
std::optional<std::string> text_of(const yaml_node_t& node) {
  const std::string_view text(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  if (node.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return std::string(text);
  const auto is_among = [text](std::span<const std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  static constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 9> kTrue{"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  static constexpr std::array<std::string_view, 9> kFalse{"no",    "No",  "NO",  "false", "False",
                                                          "FALSE", "off", "Off", "OFF"};
  if (is_among(kNull)) return {};
  if (is_among(kTrue)) return "True";
  if (is_among(kFalse)) return "False";
  const auto integer = integer_of(text);
  return integer ? *integer : std::string(text);
}

YamlValue unread(std::string what) {
  YamlValue value;
  value.kind = YamlValue::Kind::kUnread;
  value.text = std::move(what);
  return value;
}

bool is_scalar(const yaml_node_t* node) { return node != nullptr && node->type == YAML_SCALAR_NODE; }

YamlValue value_of(Document& document, const yaml_node_t& node) {
  YamlValue value;
  if (node.type == YAML_SCALAR_NODE) {
    const auto text = text_of(node);
    if (!text) return value;
    value.kind = YamlValue::Kind::kText;
    value.text = *text;
    return value;
  }
  if (node.type == YAML_SEQUENCE_NODE) {
    value.kind = YamlValue::Kind::kList;
    const auto& items = node.data.sequence.items;
    for (const yaml_node_item_t* item = items.start; item < items.top; ++item) {
      const yaml_node_t* const one = document.node(*item);
      if (!is_scalar(one)) return unread("a list of values that are not strings");
      value.list.push_back(text_of(*one).value_or("None"));
    }
    return value;
  }
  value.kind = YamlValue::Kind::kMapping;
  const auto& pairs = node.data.mapping.pairs;
  for (const yaml_node_pair_t* pair = pairs.start; pair < pairs.top; ++pair) {
    const yaml_node_t *const key = document.node(pair->key), *const one = document.node(pair->value);
    if (!is_scalar(key) || !is_scalar(one)) return unread("a mapping of values that are not strings");
    value.map.emplace_back(text_of(*key).value_or("None"), text_of(*one).value_or("None"));
  }
  return value;
}

}  // namespace

Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text) {
  Document document;
  FEEDLINE_CHECK_OK(document.load(text));
  std::map<std::string, YamlValue> values;
  const yaml_node_t* const root = document.root();
  if (root == nullptr || (root->type == YAML_SCALAR_NODE && !text_of(*root))) return values;  // an empty file
  if (root->type != YAML_MAPPING_NODE) return wrong("not a mapping of keys to values", root->start_mark.line);
  const auto& pairs = root->data.mapping.pairs;
  for (const yaml_node_pair_t* pair = pairs.start; pair < pairs.top; ++pair) {
    const yaml_node_t* const key = document.node(pair->key);
    if (!is_scalar(key)) continue;  // ignored, because no such key is needed
    const std::string name = text_of(*key).value_or("None");
    const auto [location, is_new] = values.emplace(name, value_of(document, *document.node(pair->value)));
    if (!is_new) return wrong("the key '" + name + "' is repeated", key->start_mark.line);
  }
  return values;
}

}  // namespace feedline::format
