// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/registry.h"

namespace feedline::format {

// Expands braces as bash does: "{000..146}" (keeping zeros; also "{a..e}" and a step "..2"), "{a,b}", several groups
// and nested groups; the leftmost group varies slowest. Text without braces is returned as is. kConfig: unbalanced
// braces, braces without a range or a list (bash would take them literally), or an absurd number of names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

// True if the text denotes several names.
bool is_list(const std::string& text);

// "a::b" is a, then b. If there are several parts, Feedline's indexes among them are skipped.
std::vector<std::string> split_list(const std::string& text);

// Every part of a "::" list, with braces and then wildcards (glob.h) expanded, unless a file has that exact name.
// kConfig: an empty name, or a pattern without matches. with_folders: see expand_glob().
Result<std::vector<std::string>> names_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what, bool with_folders = false);
// The same for files. what: a noun such as "tar file". kConfig: a folder is among them.
Result<std::vector<std::string>> shards_of(const std::string& source, const storage::Storage& storage,
                                           std::string_view what);
// The first of these names, for detecting the format; the pattern itself if nothing matches, or if the storage is
// remote, which is not listed for this.
std::string first_of_list(const std::string& source, const storage::Storage& storage);

// A storage backend and the name of a source within the backend.
struct LocatedSource {
  std::shared_ptr<const storage::Storage> storage;
  std::string source;
};
// Resolves a source as the user wrote it, whose parts may be URLs: "file:///a.tar::file:///b.tar" is "/a.tar::/b.tar"
// of the local storage. Reads nothing. kConfig: no storage backend supports a part, or the parts are in different
// backends.
using OpenUrl = std::function<Result<storage::Location>(const std::string& url)>;
Result<LocatedSource> locate(const std::string& source, const OpenUrl& open = storage::open);
// The same for a source that may be "pipe:" and a command (storage/pipe); several commands share one storage.
Result<LocatedSource> locate_allowing_commands(const std::string& source);

}  // namespace feedline::format
