// SPDX-License-Identifier: Apache-2.0
// Converts the fields of a schema to columns.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "format/columnar/arrow/arrow_schema.h"
#include "format/columnar/arrow/nested_value.h"
#include "format/columnar/tensor_type.h"

namespace feedline::format {
namespace {

// The lengths of the lists that enclose a field, outermost first, or kAnyLength for lists of different lengths.
using Extents = std::vector<std::int64_t>;

bool is_plain_list(const ArrowField& field) { return is_list(field.layout) && field.is_known && !field.dictionary; }

std::int64_t extent_of(const ArrowField& list) {
  return list.layout == ArrowLayout::kFixedList ? static_cast<std::int64_t>(list.list_size) : kAnyLength;
}

// The extension types that `datasets` defines for nested lists are read like their storage types.
bool is_nested_list_of_datasets(std::string_view extension) {
  return extension.starts_with("datasets.features.features.Array");
}

// Applies the field's extension type to the column, which has the storage type so far.
void apply_extension(const ArrowField& field, ColumnType& type) {
  if (field.extension.empty() || is_nested_list_of_datasets(field.extension)) return;
  if (is_tensor_type(field.extension)) return set_tensor(field.extension, field.parameters, type);
  if (field.extension == "arrow.json" && type.holds == Holds::kText) type.is_json = true;
  type.meaning = "extension type " + field.extension;
}

// Sets the column type for nested lists of numbers. Returns false if the elements are not numbers.
bool set_numbers(const ArrowField& top, Extents extents, ColumnType& type) {
  const ArrowField* at = &top;
  for (; is_plain_list(*at); at = &at->children.front()) extents.push_back(extent_of(*at));
  const bool is_inside = at != &top || !extents.empty();
  if (at->layout != ArrowLayout::kFixed || !at->dtype || (at->dictionary && is_inside)) return false;
  if (extents.size() > Shape::kMaxDims) return false;
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) type.lists = type.lists.with_front(*extent);
  type.holds = Holds::kNumbers;
  type.dtype = *at->dtype;
  type.unit = at->unit;
  type.meaning = at->meaning;
  return true;
}

ColumnType type_of(const ArrowField& field, std::string name, const Extents& around) {
  ColumnType type;
  type.name = std::move(name);
  for (std::size_t i = 0; i < around.size(); ++i) type.shown += "list of ";
  type.shown += field.shown;
  const bool is_bytes = is_binary(field.layout) || (field.layout == ArrowLayout::kFixed && !field.dtype);
  if (field.is_known && field.layout == ArrowLayout::kNothing && around.empty()) {
    type.holds = Holds::kNothing;
  } else if (field.is_known && is_bytes && around.empty()) {
    type.holds = field.is_text ? Holds::kText : Holds::kBytes;
  } else if (field.is_known) {
    set_numbers(field, around, type);
  }
  for (const ArrowField* at = &field;; at = &at->children.front()) {
    apply_extension(*at, type);
    if (!is_plain_list(*at)) return type;
  }
}

// A struct with the bytes and the path of a file, as `datasets` stores images and audio. The path may have any type: if
// no file has a path, the column's type is null.
bool is_file(const ArrowField& field) {
  const auto is_child = [](const ArrowField& child) { return child.name == "bytes" || child.name == "path"; };
  return field.children.size() == 2 && std::ranges::all_of(field.children, is_child) &&
         field.children[0].name != field.children[1].name &&
         std::ranges::any_of(field.children, [](const ArrowField& child) {
           return child.name == "bytes" && is_binary(child.layout) && !child.dictionary;
         });
}

std::string shown_nested(const ArrowField& field) {
  if (!field.is_known) return "map";
  const ArrowField& element = field.children.front();
  return element.layout == ArrowLayout::kStruct ? "list of structs"
         : !is_list(element.layout)             ? "list of values"
         : element.is_known                     ? "list of lists"
                                                : "list of maps";
}

class ColumnWalk {
 public:
  explicit ColumnWalk(std::vector<ArrowColumn>& columns) : columns_(columns) {}

  void add(const ArrowField& field, const std::string& name) {
    if (field.layout == ArrowLayout::kStruct && !field.dictionary) return add_members(field, name);
    const std::size_t first = columns_.size();
    add_value(field, name);
    if (around_.empty() && is_list(field.layout)) add_nested(field, name, first);
  }
  std::vector<std::size_t>& path() { return path_; }
  // Adds the nested columns whose members are all columns by themselves.
  void add_on_request() { std::ranges::move(on_request_, std::back_inserter(columns_)); }

 private:
  void add_value(const ArrowField& field, const std::string& name) {
    const ArrowField* inside = &field;
    while (is_plain_list(*inside)) inside = &inside->children.front();
    if (inside == &field || inside->layout != ArrowLayout::kStruct || inside->dictionary) {
      columns_.push_back({type_of(field, name, around_), path_});
      return;
    }
    around_.push_back(extent_of(field));
    path_.push_back(0);
    add(field.children.front(), name);
    path_.pop_back();
    around_.pop_back();
  }

  // Adds a column for a list or map whose members are the columns from `first` on, in place of those members that
  // cannot be read by themselves; on request, if there are none.
  void add_nested(const ArrowField& field, const std::string& name, std::size_t first) {
    const auto members = columns_.begin() + static_cast<std::ptrdiff_t>(first);
    // not tensors whose shape does not match their lists
    const auto is_unread = [](const ArrowColumn& column) {
      return column.type.holds == Holds::kOther && column.type.lists.dims() == 0;
    };
    if (!may_be_nested(field)) return;
    const bool is_on_request = std::none_of(members, columns_.end(), is_unread);
    const bool is_tensor = !field.extension.empty() && !is_nested_list_of_datasets(field.extension);
    if (is_on_request && is_tensor) return;
    columns_.erase(std::remove_if(members, columns_.end(), is_unread), columns_.end());
    for (auto member = columns_.begin() + static_cast<std::ptrdiff_t>(first); member != columns_.end(); ++member) {
      member->type.is_member = !is_on_request;
      member->type.nested_form = name;
    }
    ArrowColumn made{{.name = name, .holds = Holds::kText, .shown = shown_nested(field)}, path_};
    made.type.is_json = made.type.is_nested = true;
    made.type.is_on_request = is_on_request;
    made.type.has_bytes = has_bytes(field);
    if (is_on_request) return on_request_.push_back(std::move(made));
    columns_.insert(columns_.begin() + static_cast<std::ptrdiff_t>(first), std::move(made));
  }

  void add_members(const ArrowField& field, const std::string& name) {
    const bool is_of_file = is_file(field);
    const std::size_t first = columns_.size();
    for (std::size_t i = 0; i < field.children.size(); ++i) {
      if (is_of_file && field.children[i].name == "path") continue;
      path_.push_back(i);
      add(field.children[i], is_of_file ? name : name + "." + field.children[i].name);
      path_.pop_back();
      if (is_of_file) columns_.back().type.is_file = true;
    }
    if (field.extension.empty()) return;
    for (std::size_t i = first; i < columns_.size(); ++i)
      columns_[i].type.meaning = "a member of the extension type " + field.extension;
  }

  std::vector<ArrowColumn>& columns_;
  std::vector<ArrowColumn> on_request_;
  std::vector<std::size_t> path_;
  Extents around_;
};

}  // namespace

bool is_list(ArrowLayout layout) {
  return layout == ArrowLayout::kList || layout == ArrowLayout::kLargeList || layout == ArrowLayout::kFixedList ||
         layout == ArrowLayout::kListView || layout == ArrowLayout::kLargeListView;
}

bool is_binary(ArrowLayout layout) {
  return layout == ArrowLayout::kBinary || layout == ArrowLayout::kLargeBinary || layout == ArrowLayout::kBinaryView;
}

void add_columns(const ArrowField& field, std::size_t number, std::vector<ArrowColumn>& columns) {
  ColumnWalk walk(columns);
  walk.path().push_back(number);
  walk.add(field, field.name);
  walk.add_on_request();
}

}  // namespace feedline::format
