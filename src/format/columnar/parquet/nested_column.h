// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nested columns: lists of structs, lists of text, and maps. Their rows are assembled from the levels of their leaves,
// as in Dremel (Melnik et al., 2010).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/nested_writer.h"
#include "format/columnar/parquet/page_rows.h"
#include "format/columnar/parquet/parquet_metadata.h"

namespace feedline::format {

struct NestedNode {
  enum class Kind : std::uint8_t { kLeaf, kStruct, kList, kMap };
  Kind kind = Kind::kLeaf;
  std::string name;         // of a member of a struct
  unsigned definition = 0;  // the lowest definition level at which this node is not null
  unsigned elements = 0;    // for lists and maps: the lowest definition level at which they have an element
  unsigned repetition = 0;  // for lists and maps: the repetition level of further elements
  std::size_t leaf = 0;     // for leaves: index of the leaf in the schema
  std::vector<NestedNode> children = {};  // of a list: its element; of a map: key and value
};

// The nodes of lists and maps that are not in other lists.
struct NestedRoot {
  std::string name;  // "conversation.turns" for a member of a struct
  NestedNode node;
};

// Returns the lists and maps of a schema. Requires: a schema that is a tree.
std::vector<NestedRoot> find_nested(const std::vector<ParquetNode>& schema);

// A nested column and its leaves, in the order of the schema.
struct NestedColumn {
  NestedNode node;
  std::vector<ParquetColumn> leaves;
};

// The values of one leaf in one row.
struct NestedLeaf {
  const ParquetColumn* column = nullptr;
  std::vector<PageRows::Entry> entries = {};
  std::vector<std::span<const std::byte>> values = {};
  std::vector<std::shared_ptr<const void>> pins = {};  // own the values
};

// Writes a row. `leaves` are those of the node, in the order of the schema. Fails with kData if their levels contradict
// each other or a text is not UTF-8. Returns false if the list itself is null.
Result<bool> write_nested(const NestedNode& node, std::span<const NestedLeaf> leaves, NestedWriter& writer);

}  // namespace feedline::format
