// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/nested_column.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {
namespace {

constexpr std::int64_t kMap = 1, kList = 3;

ParquetNode group(std::string name, Repetition repetition, std::uint64_t children, std::int64_t converted = -1) {
  ParquetNode node{.name = std::move(name), .repetition = repetition, .children = children};
  if (converted >= 0) node.converted = converted;
  return node;
}
ParquetNode text(std::string name, Repetition repetition) {
  return {.name = std::move(name), .type = ParquetType::kBytes, .repetition = repetition};
}
using enum Repetition;

// Shows a node as "name[definition,repetition: children]".
std::string shown(const NestedNode& node) {
  constexpr std::string_view kKinds[] = {"leaf", "struct", "list", "map"};
  std::string made(kKinds[static_cast<std::size_t>(node.kind)]);
  made += std::to_string(node.definition);
  if (node.elements > 0) made += "/" + std::to_string(node.elements) + "r" + std::to_string(node.repetition);
  if (node.children.empty()) return made;
  made += "(";
  for (const NestedNode& child : node.children) made += shown(child) + (&child == &node.children.back() ? ")" : " ");
  return made;
}

std::string nested(std::vector<ParquetNode> nodes, std::uint64_t children = 1) {
  nodes.insert(nodes.begin(), group("schema", kRequired, children));
  std::string made;
  for (const NestedRoot& root : find_nested(nodes)) made += root.name + ": " + shown(root.node) + ";";
  return made;
}

TEST(NestedColumn, ListsInEveryFormOfTheSpecification) {
  EXPECT_EQ(nested({group("a", kOptional, 1, kList), group("list", kRepeated, 1), text("element", kOptional)}),
            "a: list1/2r1(leaf3);");
  EXPECT_EQ(nested({group("a", kRequired, 1, kList), group("list", kRepeated, 1), text("element", kRequired)}),
            "a: list0/1r1(leaf1);");
  EXPECT_EQ(nested({group("a", kOptional, 1, kList), text("element", kRepeated)}), "a: list1/2r1(leaf2);");
  EXPECT_EQ(nested({group("a", kOptional, 1, kList), group("element", kRepeated, 2), text("x", kRequired),
                    text("y", kOptional)}),
            "a: list1/2r1(struct2(leaf2 leaf3));")
      << "a group of several members is the element";
  EXPECT_EQ(nested({group("a", kOptional, 1, kList), group("array", kRepeated, 1), text("x", kRequired)}),
            "a: list1/2r1(struct2(leaf2));");
  EXPECT_EQ(nested({group("a", kOptional, 1, kList), group("a_tuple", kRepeated, 1), text("x", kRequired)}),
            "a: list1/2r1(struct2(leaf2));");
  EXPECT_EQ(nested({text("a", kRepeated)}), "a: list0/1r1(leaf1);");
}

TEST(NestedColumn, MapsAndStructs) {
  EXPECT_EQ(nested({group("m", kOptional, 1, kMap), group("key_value", kRepeated, 2), text("key", kRequired),
                    group("value", kOptional, 1, kList), group("list", kRepeated, 1), text("element", kOptional)}),
            "m: map1/2r1(leaf2 list3/4r2(leaf5));");
  EXPECT_EQ(nested({group("s", kOptional, 2), text("name", kOptional), group("a", kOptional, 1, kList),
                    group("list", kRepeated, 1), text("element", kOptional)}),
            "s.a: list2/3r1(leaf4);");
}

// The list of structs {x, y} whose leaves have these entries: pairs of a repetition and a definition level.
struct Pairs {
  std::vector<std::pair<int, int>> levels;
  std::vector<std::string_view> values;
};
std::string assembled(const Pairs& x, const Pairs& y) {
  const std::vector<ParquetNode> nodes{group("schema", kRequired, 1), group("a", kOptional, 1, kList),
                                       group("element", kRepeated, 2), text("x", kOptional), text("y", kOptional)};
  const auto roots = find_nested(nodes);
  const ParquetColumn column;
  std::vector<NestedLeaf> leaves;
  for (const Pairs* const one : {&x, &y}) {
    NestedLeaf& leaf = leaves.emplace_back(&column);
    for (const auto& [repetition, definition] : one->levels)
      leaf.entries.push_back(
          {.repetition = static_cast<std::uint8_t>(repetition), .definition = static_cast<std::uint8_t>(definition)});
    for (const std::string_view value : one->values) leaf.values.push_back(std::as_bytes(std::span(value)));
  }
  NestedWriter writer(false);
  const auto is_present = write_nested(roots.front().node, leaves, writer);
  if (!is_present) return "error: " + is_present.error().what;
  return *is_present ? writer.take() : "null";
}

TEST(NestedColumn, RowsAreAssembledFromLevels) {
  EXPECT_EQ(assembled({{{0, 0}}, {}}, {{{0, 0}}, {}}), "null");
  EXPECT_EQ(assembled({{{0, 1}}, {}}, {{{0, 1}}, {}}), "[]");
  EXPECT_EQ(assembled({{{0, 3}, {1, 2}}, {"p"}}, {{{0, 2}, {1, 3}}, {"q"}}),
            R"([{"x": "p", "y": null}, {"x": null, "y": "q"}])");
}

TEST(NestedColumn, LevelsThatContradictEachOtherAreErrors) {
  constexpr std::string_view kWhat = "contradict each other";
  const Pairs two{{{0, 3}, {1, 3}}, {"p", "q"}};
  for (const Pairs& other : {Pairs{{{0, 3}}, {"p"}},                            // too few elements
                             Pairs{{{0, 3}, {1, 3}, {1, 3}}, {"p", "q", "r"}},  // too many
                             Pairs{{{0, 3}, {1, 3}}, {"p"}},                    // a value is missing
                             Pairs{{{0, 3}, {1, 3}}, {"p", "q", "r"}},          // one is left
                             Pairs{{{0, 0}}, {}}, Pairs{{{0, 1}}, {}}, Pairs{}}) {
    EXPECT_NE(assembled(two, other).find(kWhat), std::string::npos) << other.levels.size();
    EXPECT_NE(assembled(other, two).find(kWhat), std::string::npos) << other.levels.size();
  }
  EXPECT_NE(assembled({{{0, 3}, {2, 3}}, {"p", "q"}}, two).find(kWhat), std::string::npos) << "a deeper list";
}

}  // namespace
}  // namespace feedline::format
