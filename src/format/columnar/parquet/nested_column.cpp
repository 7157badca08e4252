// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/nested_column.h"

#include <utility>

namespace feedline::format {
namespace {

constexpr std::int64_t kConvertedMap = 1, kConvertedMapKeyValue = 2, kConvertedList = 3;
constexpr std::int64_t kLogicalMap = 2, kLogicalList = 3;

// Converts the nodes of a schema, which are in depth-first order, to trees.
class NestedWalk {
 public:
  explicit NestedWalk(const std::vector<ParquetNode>& nodes) : nodes_(nodes) {}

  // Adds the lists and maps below the next node.
  void find(const std::string& name, unsigned definition, bool is_root, std::vector<NestedRoot>& roots) {
    const ParquetNode& node = nodes_[next_];
    const bool is_list = node.repetition == Repetition::kRepeated || is_annotated_list(next_) || is_map(next_);
    if (!is_root && is_list) return roots.push_back({name, build(definition)}), void();
    ++next_;
    if (node.type) return ++leaf_, void();
    if (!is_root && node.repetition == Repetition::kOptional) ++definition;
    for (std::uint64_t i = 0; i < node.children; ++i)
      find(is_root ? nodes_[next_].name : name + "." + nodes_[next_].name, definition, false, roots);
  }

 private:
  // A group whose only child is a repeated group or leaf.
  bool is_annotated_list(std::size_t at) const {
    const ParquetNode& node = nodes_[at];
    return node.children == 1 && (node.converted == kConvertedList || node.logical == kLogicalList) &&
           nodes_[at + 1].repetition == Repetition::kRepeated;
  }
  bool is_map(std::size_t at) const {
    const ParquetNode& node = nodes_[at];
    return node.children == 1 &&
           (node.converted == kConvertedMap || node.converted == kConvertedMapKeyValue ||
            node.logical == kLogicalMap) &&
           nodes_[at + 1].repetition == Repetition::kRepeated && nodes_[at + 1].children == 2;
  }

  // Converts the next node, whose parent is present from this definition level on.
  NestedNode build(unsigned definition) {
    const std::size_t at = next_;
    const ParquetNode& node = nodes_[at];
    if (node.repetition == Repetition::kRepeated) {  // a list without an annotation
      NestedNode list{.kind = NestedNode::Kind::kList, .name = node.name, .definition = definition};
      list.elements = definition + 1;
      list.repetition = ++repetition_;
      list.children.push_back(build_present(list.elements));
      --repetition_;
      return list;
    }
    if (node.repetition == Repetition::kOptional) ++definition;
    if (is_map(at) || is_annotated_list(at)) return build_annotated(definition);
    return build_present(definition);
  }

  // Converts the next node, which is present from this definition level on; its own repetition has been counted.
  NestedNode build_present(unsigned definition) {
    const ParquetNode& node = nodes_[next_++];
    NestedNode made{.name = node.name, .definition = definition};
    if (node.type) {
      made.leaf = leaf_++;
      return made;
    }
    made.kind = NestedNode::Kind::kStruct;
    for (std::uint64_t i = 0; i < node.children; ++i) made.children.push_back(build(definition));
    return made;
  }

  NestedNode build_annotated(unsigned definition) {
    const bool is_of_pairs = is_map(next_);
    const std::string name = nodes_[next_++].name;
    NestedNode made{.kind = is_of_pairs ? NestedNode::Kind::kMap : NestedNode::Kind::kList, .name = name};
    made.definition = definition;
    made.elements = definition + 1;
    made.repetition = ++repetition_;
    const ParquetNode& repeated = nodes_[next_];
    // By the format's rules for old files, a repeated group is itself the element if it has several members or the name
    // "array" or NAME_tuple.
    const bool is_element = repeated.type || (!is_of_pairs && repeated.children != 1) || repeated.name == "array" ||
                            repeated.name == name + "_tuple";
    if (is_of_pairs || !is_element) {
      ++next_;
      for (std::uint64_t i = 0; i < repeated.children; ++i) made.children.push_back(build(made.elements));
    } else {
      made.children.push_back(build_present(made.elements));
    }
    --repetition_;
    return made;
  }

  const std::vector<ParquetNode>& nodes_;
  std::size_t next_ = 0, leaf_ = 0;
  unsigned repetition_ = 0;
};

// Assembles a row. Each leaf has a cursor; the entries of the first leaf below a node decide whether it is present.
class Assembly {
 public:
  Assembly(std::span<const NestedLeaf> leaves, NestedWriter& writer) : writer_(writer) {
    for (const NestedLeaf& leaf : leaves) cursors_.push_back({&leaf});
  }

  Result<bool> row(const NestedNode& node) {
    FEEDLINE_TRY(const bool is_present, append(node, 0));
    for (const Cursor& cursor : cursors_)
      if (cursor.entry != cursor.leaf->entries.size() || cursor.value != cursor.leaf->values.size()) return damaged();
    return is_present;
  }

 private:
  struct Cursor {
    const NestedLeaf* leaf;
    std::size_t entry = 0, value = 0;
    const PageRows::Entry* here() const { return entry < leaf->entries.size() ? &leaf->entries[entry] : nullptr; }
  };

  static std::unexpected<Error> damaged() {
    return data_error("the levels of the columns of a list contradict each other: the file is damaged", "format");
  }
  static std::size_t leaves_of(const NestedNode& node) {
    if (node.kind == NestedNode::Kind::kLeaf) return 1;
    std::size_t count = 0;
    for (const NestedNode& child : node.children) count += leaves_of(child);
    return count;
  }

  // All leaves below a node that is null or an empty list have one entry for it.
  Result<bool> skip(const NestedNode& node, std::size_t first, unsigned below) {
    for (std::size_t i = first; i < first + leaves_of(node); ++i) {
      const PageRows::Entry* const entry = cursors_[i].here();
      if (entry == nullptr || entry->definition >= below) return damaged();
      ++cursors_[i].entry;
    }
    return false;
  }

  // Appends a value. Returns false if it is null. Requires: `first` is the index of the node's first leaf.
  Result<bool> append(const NestedNode& node, std::size_t first) {
    const PageRows::Entry* const entry = cursors_[first].here();
    if (entry == nullptr) return damaged();
    if (entry->definition < node.definition) {
      writer_.null();
      return skip(node, first, node.definition);
    }
    FEEDLINE_CHECK_OK(append_present(node, first));
    return true;
  }

  Result<void> append_present(const NestedNode& node, std::size_t first) {
    switch (node.kind) {
      case NestedNode::Kind::kLeaf:
        return append_leaf(cursors_[first]);
      case NestedNode::Kind::kStruct:
        writer_.begin_object();
        for (const NestedNode& child : node.children) {
          FEEDLINE_CHECK_OK(writer_.key(std::as_bytes(std::span(child.name))));
          FEEDLINE_CHECK_OK(append(child, first));
          first += leaves_of(child);
        }
        writer_.end_object();
        return {};
      case NestedNode::Kind::kList:
      case NestedNode::Kind::kMap:
        return append_list(node, first);
    }
    return {};
  }

  Result<void> append_list(const NestedNode& node, std::size_t first) {
    const bool is_map = node.kind == NestedNode::Kind::kMap;
    is_map ? writer_.begin_object() : writer_.begin_list();
    if (cursors_[first].here()->definition < node.elements) {
      FEEDLINE_CHECK_OK(skip(node, first, node.elements));
    } else {
      FEEDLINE_CHECK_OK(append_elements(node, first));
    }
    is_map ? writer_.end_object() : writer_.end_list();
    return {};
  }

  Result<void> append_elements(const NestedNode& node, std::size_t first) {
    while (true) {
      if (node.kind == NestedNode::Kind::kMap) {
        FEEDLINE_CHECK_OK(append_pair(node, first));
      } else {
        FEEDLINE_CHECK_OK(append(node.children.front(), first));
      }
      const PageRows::Entry* const next = cursors_[first].here();
      if (next == nullptr || next->repetition < node.repetition) return {};
      if (next->repetition > node.repetition) return damaged();
    }
  }

  // The key of a map is a leaf.
  Result<void> append_pair(const NestedNode& node, std::size_t first) {
    Cursor& key = cursors_[first];
    if (key.here() == nullptr || key.here()->definition < node.children[0].definition ||
        key.value >= key.leaf->values.size())
      return damaged();
    ++key.entry;
    FEEDLINE_CHECK_OK(writer_.key(key.leaf->values[key.value++]));
    FEEDLINE_CHECK_OK(append(node.children[1], first + 1));
    return {};
  }

  Result<void> append_leaf(Cursor& cursor) {
    if (cursor.value >= cursor.leaf->values.size()) return damaged();
    ++cursor.entry;
    const std::span<const std::byte> value = cursor.leaf->values[cursor.value++];
    const ParquetColumn& column = *cursor.leaf->column;
    if (column.value == Holds::kNumbers) return writer_.number(column.type.dtype, value), Result<void>();
    if (column.value == Holds::kBytes) return writer_.bytes(value), Result<void>();
    return writer_.text(value);
  }

  NestedWriter& writer_;
  std::vector<Cursor> cursors_;
};

}  // namespace

std::vector<NestedRoot> find_nested(const std::vector<ParquetNode>& schema) {
  std::vector<NestedRoot> roots;
  NestedWalk(schema).find("", 0, true, roots);
  return roots;
}

Result<bool> write_nested(const NestedNode& node, std::span<const NestedLeaf> leaves, NestedWriter& writer) {
  return Assembly(leaves, writer).row(node);
}

}  // namespace feedline::format
