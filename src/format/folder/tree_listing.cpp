// SPDX-License-Identifier: Apache-2.0
#include "format/folder/tree_listing.h"

#include <cerrno>
#include <iterator>
#include <utility>
#include <vector>

#include "format/shards/each_shard.h"

namespace feedline::format {
namespace {

std::unexpected<Error> nothing_there(const std::string& root) {
  auto error = storage_error("no stored name begins with '" + root + "/'", ENOENT);
  error.error().where.shard = root;
  return error;
}

}  // namespace

Result<storage::Tree> list_tree(const storage::Storage& storage, const std::string& root) {
  using storage::Depth, storage::Tree;
  FEEDLINE_TRY(Tree tree, storage.list_below(root, Depth::kFolder));
  const std::vector<std::string> folders = std::move(tree.folders);
  tree.folders.clear();
  const auto look_into = [&](std::size_t i) { return storage.list_below(root + "/" + folders[i], Depth::kAll); };
  FEEDLINE_TRY(auto parts, each_shard<Tree>(folders.size(), look_into, shards_side_by_side(storage.is_remote())));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string front = folders[i] + "/";
    for (storage::StoredBelow& object : parts[i].objects) {
      object.path.insert(0, front);
      tree.objects.push_back(std::move(object));
    }
    for (const std::string& mark : parts[i].marks) tree.marks.push_back(front + mark);
    tree.marks.push_back(folders[i]);
    parts[i] = {};
  }
  if (tree.objects.empty() && tree.marks.empty()) return nothing_there(root);
  return tree;
}

}  // namespace feedline::format
