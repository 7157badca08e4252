// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_json.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <set>

namespace feedline::text {
namespace {

constexpr std::size_t kMostJson = std::size_t{16} << 20;
constexpr int kDeepest = 64;

constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 9> kTrue{"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::array<std::string_view, 9> kFalse{"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};

std::unexpected<Error> wrong(const std::string& what, std::size_t line) {
  return data_error("not valid YAML: " + what + " in line " + std::to_string(line + 1), "format");
}

void append_quoted(std::string& json, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  json += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20)
      json.append("\\u00").append(1, kDigits[code >> 4U]).append(1, kDigits[code & 15U]);
    else
      json.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
  }
  json += '"';
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

  Result<std::string> json(std::string_view text) {
    if (!is_ready_) return data_error("not enough memory to read YAML", "format");
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    is_loaded_ = yaml_parser_load(&parser_, &document_) == 1;
    if (!is_loaded_)
      return wrong(parser_.problem != nullptr ? parser_.problem : "it cannot be read", parser_.problem_mark.line);
    const yaml_node_t* const root = yaml_document_get_root_node(&document_);
    if (root == nullptr) return std::string("null");
    FEEDLINE_CHECK_OK(append(*root, 0));
    return std::move(json_);
  }

 private:
  Result<void> append(const yaml_node_t& node, int depth) {
    if (depth > kDeepest || json_.size() > kMostJson) return wrong("the document is too large", node.start_mark.line);
    if (node.type == YAML_SCALAR_NODE) return append_scalar(node), Result<void>();
    if (node.type == YAML_SEQUENCE_NODE) {
      json_ += '[';
      const auto& items = node.data.sequence.items;
      for (const yaml_node_item_t* item = items.start; item < items.top; ++item) {
        if (item != items.start) json_ += ',';
        FEEDLINE_CHECK_OK(append(*yaml_document_get_node(&document_, *item), depth + 1));
      }
      json_ += ']';
      return {};
    }
    json_ += '{';
    std::set<std::string_view> keys;
    const auto& pairs = node.data.mapping.pairs;
    for (const yaml_node_pair_t* pair = pairs.start; pair < pairs.top; ++pair) {
      const yaml_node_t& key = *yaml_document_get_node(&document_, pair->key);
      if (key.type != YAML_SCALAR_NODE) return wrong("a key is not a scalar", key.start_mark.line);
      const std::string_view name = text_of(key);
      if (!keys.insert(name).second)
        return wrong("the key '" + std::string(name) + "' is repeated", key.start_mark.line);
      if (pair != pairs.start) json_ += ',';
      append_quoted(json_, name);
      json_ += ':';
      FEEDLINE_CHECK_OK(append(*yaml_document_get_node(&document_, pair->value), depth + 1));
    }
    json_ += '}';
    return {};
  }

  static std::string_view text_of(const yaml_node_t& node) {
    return {reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length};
  }

  void append_scalar(const yaml_node_t& node) {
    const std::string_view text = text_of(node);
    const auto is_among = [&](const auto& words) { return std::ranges::find(words, text) != words.end(); };
    if (node.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return append_quoted(json_, text);
    if (is_among(kNull))
      json_ += "null";
    else if (is_among(kTrue))
      json_ += "true";
    else if (is_among(kFalse))
      json_ += "false";
    else
      append_quoted(json_, text);
  }

  yaml_parser_t parser_;
  yaml_document_t document_;
  bool is_ready_ = false, is_loaded_ = false;
  std::string json_;
};

}  // namespace

Result<std::string> yaml_as_json(std::string_view yaml) { return Document().json(yaml); }

}  // namespace feedline::text
